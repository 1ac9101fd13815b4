"""The grouping, in the SQL that DuckDB and Spark have in common.

Each query makes a table of the tables before it; `records` is what `columns` describes.
Those in `tables` that begin with ROWS_ are read in the order they ask for.
"""

from typing import Final

from kgkit.building.engines.columns import (
    ALIAS,
    ATTRIBUTE,
    BAD,
    ENTITY,
    FORM,
    OCCURRENCES,
    REDIRECT,
    TRIPLE,
)

BAD_RECORDS: Final = f"SELECT count(*), min_by(a, place) FROM records WHERE what = {BAD}"

# -- keys -------------------------------------------------------------------

STATED_KEYS: Final = f"""
    SELECT a AS key, min(place) AS place, max(place) AS last_place, count(*) AS times
    FROM records WHERE what = {ENTITY} GROUP BY a
"""

DUPLICATE_KEY: Final = "SELECT key, place, last_place FROM keys_told WHERE times > 1 ORDER BY place LIMIT 1"

KEYS_IN_ORDER: Final = "SELECT key FROM keys_told ORDER BY place"
"""From which `ids` is numbered."""

STATED_REDIRECTS: Final = f"""
    SELECT a AS source, min_by(b, place) AS target, min(place) AS place
    FROM records WHERE what = {REDIRECT} GROUP BY a
"""

SECOND_REDIRECTS: Final = f"""
    SELECT count(*) FROM records r JOIN redirects_told t ON r.a = t.source
    WHERE r.what = {REDIRECT} AND r.b <> t.target
"""

HOPS: Final = """
    SELECT t.source, t.target, t.place FROM redirects_told t LEFT JOIN ids i ON t.source = i.key
    WHERE i.key IS NULL
"""
"""A redirect of an entity's own key is none."""

JUMPS: Final = "SELECT source, target FROM hops"

OPEN_JUMPS: Final = "SELECT count(*) FROM jumps j JOIN hops h ON j.target = h.source"

LONGER_JUMPS: Final = """
    SELECT j.source, coalesce(n.target, j.target) AS target
    FROM jumps j LEFT JOIN jumps n ON j.target = n.source
"""
"""Twice as far: a chain of n redirects is followed to its end in log2(n) steps."""

RESOLVED: Final = "SELECT j.source AS key, i.id FROM jumps j JOIN ids i ON j.target = i.key"

LOST_REDIRECTS: Final = """
    SELECT j.source, h.target, o.source IS NOT NULL AS looping, h.place
    FROM jumps j JOIN hops h ON j.source = h.source
    LEFT JOIN ids i ON j.target = i.key LEFT JOIN hops o ON j.target = o.source
    WHERE i.key IS NULL
"""

KEYS: Final = "SELECT key, id FROM ids UNION ALL SELECT key, id FROM resolved"

ROWS_OF_KEYS: Final = "SELECT key, id FROM keys ORDER BY key"

# -- entities ---------------------------------------------------------------

ROWS_OF_ENTITIES: Final = f"""
    SELECT i.id, r.b AS kind, r.c AS pos, r.body FROM records r JOIN ids i ON r.a = i.key
    WHERE r.what = {ENTITY} ORDER BY i.id, r.place
"""

ATTRIBUTES: Final = f"""
    SELECT s.id AS entity, r.b AS name, r.c AS value, r.place,
           CASE WHEN o.id <> s.id THEN o.id END AS object
    FROM records r JOIN keys s ON r.a = s.key
    LEFT JOIN keys o ON r.c = o.key AND r.count > 0
    WHERE r.what = {ATTRIBUTE}
"""
"""What names the entity itself is no edge: the attribute that gives its name."""

STATED_ATTRIBUTES: Final = f"SELECT count(*) FROM records WHERE what = {ATTRIBUTE}"

STORED_ATTRIBUTES: Final = "SELECT count(*) FROM attributes"

ROWS_OF_ATTRIBUTES: Final = """
    SELECT entity, name, value FROM attributes WHERE object IS NULL ORDER BY entity, place
"""

# -- facts ------------------------------------------------------------------

STATED_RELATIONS: Final = f"""
    SELECT name, min(place) AS place FROM (
        SELECT b AS name, place FROM records WHERE what = {TRIPLE}
        UNION ALL SELECT name, place FROM attributes WHERE object IS NOT NULL
    ) told GROUP BY name ORDER BY 2, 1
"""

FACTS: Final = f"""
    SELECT u.subject, r.number AS relation, u.object, min(u.place) AS place, count(*) AS times FROM (
        SELECT s.id AS subject, t.b AS name, o.id AS object, t.place
        FROM records t JOIN keys s ON t.a = s.key JOIN keys o ON t.c = o.key WHERE t.what = {TRIPLE}
        UNION ALL SELECT entity AS subject, name, object, place FROM attributes WHERE object IS NOT NULL
    ) u JOIN relations r ON u.name = r.name
    GROUP BY u.subject, r.number, u.object
"""

STATED_TRIPLES: Final = f"SELECT count(*) FROM records WHERE what = {TRIPLE}"

STORED_FACTS: Final = "SELECT count(*), coalesce(sum(times), 0) FROM facts"

EDGES_OF_ATTRIBUTES: Final = "SELECT count(*) FROM attributes WHERE object IS NOT NULL"

LOST_TRIPLES: Final = f"""
    SELECT t.a, t.b, t.c FROM records t LEFT JOIN keys s ON t.a = s.key LEFT JOIN keys o ON t.c = o.key
    WHERE t.what = {TRIPLE} AND (s.key IS NULL OR o.key IS NULL) ORDER BY t.place
"""

FACTS_BY_RELATION: Final = """
    SELECT relation, count(*), sum(CASE WHEN subject <= object THEN 1 ELSE 0 END) FROM facts
    GROUP BY relation
"""

UNMATCHED_FACTS: Final = """
    SELECT count(*) FROM facts f LEFT JOIN facts g
    ON f.subject = g.object AND f.object = g.subject AND g.relation = {inverse}
    WHERE f.relation = {relation} AND g.subject IS NULL
"""

OUTWARD: Final = "SELECT subject AS entity, relation, object AS other, place, 0 AS block FROM facts"

TURNED: Final = """
    SELECT object AS entity, relation, subject AS other, place, {block} AS block FROM facts
    WHERE relation = {relation}
"""

ROWS_OUTWARD: Final = "SELECT entity, relation, other, block FROM ({told}) told ORDER BY entity, block, place"

ROWS_INCOMING: Final = """
    SELECT object AS entity, relation, subject AS other FROM facts {condition} ORDER BY object, place
"""

# -- aliases ----------------------------------------------------------------

MEANINGS: Final = f"""
    SELECT coalesce(r.folded, r.a) AS name, r.a AS surface, k.id AS entity, s.id AS sense,
           sum(r.count) AS counted, min(r.place) AS place, count(*) AS times
    FROM records r JOIN keys k ON r.b = k.key LEFT JOIN keys s ON r.c = s.key
    WHERE r.what = {ALIAS} GROUP BY r.a, r.folded, k.id, s.id
"""

STATED_ALIASES: Final = f"""
    SELECT count(*), count(CASE WHEN coalesce(folded, a) = '' THEN 1 END) FROM records WHERE what = {ALIAS}
"""

STORED_ALIASES: Final = "SELECT coalesce(sum(times), 0) FROM meanings"

LOST_SENSES: Final = f"""
    SELECT count(*) FROM records r LEFT JOIN keys s ON r.c = s.key
    WHERE r.what = {ALIAS} AND r.c IS NOT NULL AND s.key IS NULL
"""

LOST_ALIASES: Final = f"""
    SELECT r.a, r.b FROM records r LEFT JOIN keys k ON r.b = k.key
    WHERE r.what = {ALIAS} AND k.key IS NULL ORDER BY r.place
"""

NAMES: Final = "SELECT DISTINCT name FROM meanings WHERE name <> ''"

OFTEN: Final = "HAVING sum(counted) = 0 OR sum(counted) >= {min_count}"

NAMES_OFTEN: Final = f"""
    SELECT DISTINCT name FROM (
        SELECT name FROM meanings WHERE name <> '' GROUP BY name, entity {OFTEN}
    ) pairs
"""

NAMES_OF_ENTITIES: Final = """
    SELECT entity, name FROM meanings WHERE name <> '' GROUP BY entity, name {having} ORDER BY entity, name
"""

NUMBER_OF_NAMES: Final = "SELECT count(*) FROM ({names}) names"

ROWS_OF_ALIASES: Final = """
    SELECT name, surface, entity, sense, counted, place FROM meanings WHERE name <> '' ORDER BY name
"""

# -- occurrences ------------------------------------------------------------

NUMBER_OF_OCCURRENCES: Final = f"SELECT count(*) FROM records WHERE what = {OCCURRENCES}"

STATED_OCCURRENCES: Final = f"""
    SELECT coalesce(folded, a) AS name, sum(count) AS times, sum(linked) AS linked
    FROM {{records}} WHERE what = {OCCURRENCES} GROUP BY coalesce(folded, a)
"""

UNITED_OCCURRENCES: Final = """
    SELECT what, a, folded, count, linked FROM records
    UNION ALL SELECT what, a, folded, count, linked FROM counted
"""
"""With what was counted in texts."""

ROWS_OF_OCCURRENCES: Final = """
    SELECT o.name, o.times, o.linked FROM occurrences o JOIN ({names}) n ON o.name = n.name
    WHERE o.times > 0 ORDER BY o.name
"""

LOST_OCCURRENCES: Final = f"""
    SELECT count(*)
    FROM (SELECT DISTINCT coalesce(folded, a) AS name FROM records WHERE what = {OCCURRENCES}) o
    LEFT JOIN ({{names}}) n ON o.name = n.name WHERE n.name IS NULL
"""

# -- forms ------------------------------------------------------------------

ROWS_OF_FORMS: Final = f"""
    SELECT folded, b AS lemma, c AS pos, min(place) AS place FROM records WHERE what = {FORM}
    GROUP BY folded, b, c ORDER BY folded, 4
"""

VARIANTS: Final = "SELECT DISTINCT writing, name FROM variants ORDER BY writing, name"
