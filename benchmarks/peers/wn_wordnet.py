"""wn: a WN-LMF file of the same WordNet, `wn.add` of it, and look-ups."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.timing import passes

LEXICON = "bench:3.0"

# Pointer symbols of wninput(5WN) and the relations of WN-LMF that say the same.
RELATIONS = {
    "!": "antonym", "@": "hypernym", "@i": "instance_hypernym", "~": "hyponym", "~i": "instance_hyponym",
    "#m": "holo_member", "#s": "holo_substance", "#p": "holo_part",
    "%m": "mero_member", "%s": "mero_substance", "%p": "mero_part",
    "=": "attribute", "+": "derivation", "*": "entails", ">": "causes", "^": "also", "$": "similar",
    "&": "similar", "<": "participle", "\\": "pertainym",
    ";c": "domain_topic", ";r": "domain_region", ";u": "exemplifies",
    "-c": "has_domain_topic", "-r": "has_domain_region", "-u": "is_exemplified_by",
}  # fmt: skip
CATEGORIES = {"n": "n", "v": "v", "a": "a", "s": "a", "r": "r"}  # a satellite is pointed at as an adjective


class Row(NamedTuple):
    """One synset of a data file; a pointer is (symbol, target, source word, target word), 0: the synset."""

    offset: str
    pos: str
    words: list[str]
    pointers: list[tuple[str, str, int, int]]
    gloss: str


def rows(wordnet: Path) -> Iterator[Row]:
    """Read the four data files, as wndb(5WN) describes them."""
    for name in ("noun", "verb", "adj", "adv"):
        with (wordnet / f"data.{name}").open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("  "):
                    continue  # the licence
                data, _, gloss = line.partition(" | ")
                fields = data.split()
                count = int(fields[3], 16)
                words = [re.sub(r"\((?:a|p|ip)\)$", "", word) for word in fields[4 : 4 + 2 * count : 2]]
                start = 5 + 2 * count
                stop = start + 4 * int(fields[start - 1])
                pointers = [
                    (symbol, target + pos, int(ends[:2], 16), int(ends[2:], 16))
                    for symbol, target, pos, ends in zip(
                        *(fields[start + i : stop : 4] for i in range(4)), strict=True
                    )
                ]
                yield Row(fields[0], fields[2], words, pointers, gloss.strip())


def write_lmf(wordnet: str, out: str) -> None:
    """Write the WordNet of the folder *wordnet* with wn's own writer, sense relations included."""
    from wn import lmf

    records = list(rows(Path(wordnet)))
    pos_of = {row.offset + CATEGORIES[row.pos]: row.pos for row in records}

    def synset_id(target: str) -> str:
        return f"bench-{target[:-1]}-{pos_of[target]}"

    entries: dict[tuple[str, str], dict[str, Any]] = {}
    synsets = []
    for row in records:
        me = synset_id(row.offset + CATEGORIES[row.pos])
        relations: dict[int, list[dict[str, Any]]] = {}
        for symbol, target, source, word in row.pointers:
            end = synset_id(target) + (f"-{word}" if word else "")
            relation = {"relType": RELATIONS[symbol], "target": end, "meta": None}
            relations.setdefault(source, []).append(relation)
        definition, *examples = split_gloss(row.gloss)
        synsets.append(
            {
                "id": me,
                "ili": "",
                "partOfSpeech": row.pos,
                "definitions": [{"text": definition, "meta": None}],
                "examples": [{"text": example, "meta": None} for example in examples],
                "relations": relations.get(0, []),
                "meta": None,
            }
        )
        for number, written in enumerate(row.words, start=1):
            form = written.replace("_", " ")
            entry = entries.setdefault(
                (form, row.pos),
                {
                    "id": f"bench-entry-{len(entries)}",
                    "lemma": {"writtenForm": form, "partOfSpeech": row.pos},
                    "senses": [],
                    "meta": None,
                },
            )
            entry["senses"].append(
                {"id": f"{me}-{number}", "synset": me, "relations": relations.get(number, []), "meta": None}
            )
    lexicon: Any = {
        "id": "bench", "version": "3.0", "label": "WordNet", "language": "en", "email": "nobody@example.org",
        "license": "https://wordnet.princeton.edu/license-and-commercial-use",
        "entries": list(entries.values()), "synsets": synsets, "meta": None,
    }  # fmt: skip
    unfinished = Path(out).with_suffix(".part")
    lmf.dump({"lmf_version": "1.1", "lexicons": [lexicon]}, unfinished)
    unfinished.rename(out)


def split_gloss(gloss: str) -> list[str]:
    """Return the definition and the quoted examples of a gloss."""
    definition = re.split(r";\s*(?=\")", gloss, maxsplit=1)[0]
    return [definition, *re.findall(r"\"([^\"]*)\"", gloss)]


def add(lmf: str, out: str) -> None:
    """Add the file *lmf* to the database in the folder *out*."""
    import wn
    from wn._config import config  # `wn.config` is the same object, which the package does not export

    Path(out).mkdir(parents=True, exist_ok=True)
    config.data_directory = out
    wn.add(lmf, progress_handler=None)


def look_up(what: str, keys: str, count: int) -> dict[str, float]:
    """Measure one kind of look-up; `related` has the synsets in hand, `neighbours` fetches them too."""
    import wn

    wordnet = wn.Wordnet(LEXICON)
    queries = json.loads(Path(keys).read_text())
    ids = [id_ for _, id_ in queries["synsets"][:count]]

    def entities(ids: list[str]) -> None:
        for id_ in ids:
            wordnet.synset(id_)

    def candidates(lemmas: list[str]) -> None:
        for lemma in lemmas:
            wordnet.synsets(lemma)

    def related(synsets: list[Any]) -> None:
        for synset in synsets:
            synset.get_related()

    def neighbours(ids: list[str]) -> None:
        for id_ in ids:
            wordnet.synset(id_).get_related()

    if what in ("lemmas", "polysemous"):
        return passes(candidates, queries[what][:count])
    if what == "related":
        return passes(related, [wordnet.synset(id_) for id_ in ids])
    return passes(entities if what == "entity" else neighbours, ids)
