"""Every export, loaded by the program that it is for.

Neo4j's importer is no Python package: `neo4j_import` holds a folder to its manual's rules for the headers
of CSV files, and to what the importer checks. WordNet as a whole is slow.
"""

import csv
import json
import re
import sqlite3
import sys
from collections import Counter
from contextlib import closing

import networkx
import pandas
import pyoxigraph
import pytest
import rdflib
import wn
import wn.lmf
import wn.similarity
import wn.validate

import kgkit
from kb_builders.wordnet import WordNetBuilder
from kgkit.building import Alias, Entity, Triple
from kgkit.building.records import StoredRecords
from kgkit.exchange import FORMATS
from kgkit.exchange.rdf_terms import ALIASES, KIND, LABELS
from kgkit.exchange.wn_lmf_names import IN_SYNSET, INVERSES
from tests.exchange_helpers import odd_records, written
from tests.mini_wordnet import mini_wordnet
from tests.small_kb import build, facts_kb, surfaces_kb


def sparse(folder):
    """Build a KB that says nothing of itself: no version, licence or language."""
    entities = [Entity("a", "A"), Entity("b", "B"), Entity("c")]
    return build(folder, [*entities, Alias("A", "a"), Alias("A", "b"), Triple("a", "near", "b")])


def mini(folder):
    kgkit.build_kb(WordNetBuilder(), mini_wordnet(folder / "source"), name="mini", home=folder)
    return kgkit.open_kb("mini", home=folder)


KBS = {
    "facts": facts_kb, "mini": mini, "sparse": sparse, "surfaces": surfaces_kb,
    "odd": lambda folder: build(folder, odd_records(), inverses={"is_a": "has_kind"}),
}  # fmt: skip


@pytest.fixture(params=KBS)
def kb(request, tmp_path):
    (tmp_path / "kb").mkdir()
    with KBS[request.param](tmp_path / "kb") as kb:
        yield kb


def figures(kb):
    """Return the numbers of entities, aliases and triples of a KB."""
    records = StoredRecords(kb)
    return len(kb), sum(1 for _ in records.aliases()), sum(1 for _ in records.triples())


# -- the programs: each returns the same numbers -----------------------------------


def in_rdflib(path, syntax):
    graph = rdflib.Graph().parse(path, format=syntax)
    predicates = Counter(str(predicate) for predicate in graph.predicates())
    return rdf_figures(predicates)


def in_pyoxigraph(path, syntax):
    store = pyoxigraph.Store()
    formats = {"nt": pyoxigraph.RdfFormat.N_TRIPLES, "turtle": pyoxigraph.RdfFormat.TURTLE}
    store.bulk_load(path=path, format=formats[syntax])
    return rdf_figures(Counter(quad.predicate.value for quad in store))


def rdf_figures(predicates):
    known = ("urn:kgkit:vocabulary:", *(str(each) for each in (rdflib.RDF, rdflib.RDFS, rdflib.SKOS)))
    relations = sum(count for predicate, count in predicates.items() if not predicate.startswith(known))
    return predicates[KIND], predicates[ALIASES[0]], relations, predicates[LABELS[0]]


def in_networkx(path):
    graph = networkx.read_graphml(path, force_multigraph=True)
    return graph.number_of_nodes(), graph.number_of_edges()


_PROPERTY = re.compile(
    r"[^:]+(?::(?:int|long|float|double|boolean|byte|short|char|string|point|date|localtime|time"
    r"|localdatetime|datetime|duration)(?:\[\])?)?"
)
_ROLE = re.compile(r":LABEL|:TYPE|:IGNORE|[^:]*:ID(?:\([^()]+\))?|:(?:START|END)_ID(?:\([^()]+\))?")


def neo4j_rows(path):
    """Yield the rows of a table as dictionaries; its header has to be one of Neo4j's."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        header = next(rows)
        assert len({*header}) == len(header)
        assert all(_ROLE.fullmatch(name) or _PROPERTY.fullmatch(name) for name in header), header
        for row in rows:
            assert len(row) == len(header), row
            for name, value in zip(header, row, strict=True):
                if name.endswith(":double"):
                    float(value)
            yield dict(zip(header, row, strict=True))


def space_of(name):
    return name.partition("(")[2].removesuffix(")")


def neo4j_import(nodes, relationships):
    """Return the numbers of nodes and relationships that `neo4j-admin database import` would take.

    An id is one node's in its space; no id, label or type is empty; relationships join nodes that are there.
    """
    ids = {}
    for path in nodes:
        for row in neo4j_rows(path):
            (column,) = (name for name in row if ":ID" in name)
            assert row[column] and row[column] not in ids.setdefault(space_of(column), set())
            ids[space_of(column)].add(row[column])
            assert all(row[":LABEL"].split(";"))
    count = 0
    for path in relationships:
        for row in neo4j_rows(path):
            assert row[":TYPE"]
            ends = [name for name in row if name.startswith((":START_ID", ":END_ID"))]
            assert len(ends) == 2 and all(row[name] in ids[space_of(name)] for name in ends)
            count += 1
    return sum(map(len, ids.values())), count


@pytest.fixture
def wordnets(tmp_path, monkeypatch):
    """The data of the package `wn` in a folder of its own."""
    monkeypatch.setattr(wn.config, "data_directory", tmp_path / "wn")


def in_wn(path):
    """Add a lexicon to `wn`; return it as a wordnet."""
    wn.add(path, progress_handler=None)
    (lexicon,) = wn.lexicons()
    return wn.Wordnet(lexicon.specifier())


# -- small ones --------------------------------------------------------------------


@pytest.mark.parametrize(("name", "syntax"), [("ntriples", "nt"), ("turtle", "turtle")])
@pytest.mark.parametrize("load", [in_rdflib, in_pyoxigraph])
@pytest.mark.filterwarnings("ignore")  # rdflib says which texts are no numbers
def test_rdf(kb, name, syntax, load, tmp_path):
    path = written(kb, FORMATS[name], tmp_path)
    labels = sum(1 for entity in kb if entity.label)
    assert load(path, syntax) == (*figures(kb), labels)


def test_graphml(kb, tmp_path):
    entities, _, triples = figures(kb)
    assert in_networkx(written(kb, FORMATS["graphml"], tmp_path)) == (entities, triples)


def test_neo4j(kb, tmp_path):
    folder = written(kb, FORMATS["neo4j"], tmp_path)
    entities, aliases, triples = figures(kb)
    surfaces = len({alias.surface for alias in StoredRecords(kb).aliases()})
    tables = ("nodes.csv", "surfaces.csv"), ("relationships.csv", "means.csv")
    nodes, relationships = ([folder / name for name in names] for names in tables)
    assert neo4j_import(nodes, relationships) == (entities + surfaces, triples + aliases)


@pytest.mark.usefixtures("wordnets")
def test_wn_lmf(kb, tmp_path):
    path = written(kb, FORMATS["wn-lmf"], tmp_path)
    wordnet = in_wn(path)
    (lexicon,) = wn.lmf.load(path, progress_handler=None)["lexicons"]
    found = wn.validate.validate(lexicon, select=["E"], progress_handler=None)
    assert {code: check["items"] for code, check in found.items() if check["items"]} == {}
    assert len(wordnet.synsets()) == len(lexicon["synsets"])
    assert wordnet.lexicons()[0].version == (kb.manifest.source.version or "unversioned")
    with kgkit.open_kb(kgkit.import_kb(path, "again", home=tmp_path).name, home=tmp_path) as again:
        assert again.manifest.source.version == kb.manifest.source.version


SENSES = {"1": "Earth", "2": "earth", "3": "soil"}


@pytest.mark.usefixtures("wordnets")
def test_a_sense_that_no_alias_names_is_a_sense_of_its_synset(tmp_path):
    records = [
        Entity("planet", "Earth", kind="synset", pos="n"), Entity("soil", "soil", kind="synset", pos="n"),
        *(Entity(key, label, kind="lemma", pos="n") for key, label in SENSES.items()),
        Alias("Earth", "planet", 2, "1"), Alias("earth", "planet", 0, "1"), Alias("soil", "soil", 1, "3"),
        Triple("1", IN_SYNSET, "planet"), Triple("2", IN_SYNSET, "planet"), Triple("3", IN_SYNSET, "soil"),
        Triple("2", "derivation", "3"), Triple("3", "derivation", "2"), Triple("planet", "related", "3"),
    ]  # fmt: skip
    with build(tmp_path, records) as kb:
        wordnet = in_wn(written(kb, FORMATS["wn-lmf"], tmp_path))
        assert {each.metadata()["identifier"] for each in wordnet.synsets()} == {"planet", "soil"}
        words = {each.metadata()["identifier"]: each.word().lemma() for each in wordnet.senses()}
        assert words == SENSES
        (two,) = (each for each in wordnet.senses() if each.metadata()["identifier"] == "2")
        assert [each.metadata()["identifier"] for each in two.get_related("derivation")] == ["3"]
        again = kgkit.import_kb(tmp_path / "small-wn-lmf.xml", "again", home=tmp_path)
        assert again.manifest.counts.entities == {"synset": 2, "lemma": 3}


SENSE_SHAPES = {
    "two of one label": [("a", "bank", "s1"), ("b", "bank", "s1")],
    "a chain": [("a", "bank", "b"), ("b", "shore", "s1")],
    "a sense of a sense that an alias names": [("a", "bank", "c")],
}


@pytest.mark.parametrize("shape", SENSE_SHAPES)
def test_no_entity_is_lost_whatever_lies_in_a_synset(tmp_path, shape):
    triples = SENSE_SHAPES[shape]
    entities = {key: label for key, label, _ in triples} | {"s1": "the synset", "c": "coast"}
    records = [
        *(Entity(key, label, kind="synset" if key == "s1" else "lemma", pos="n")
          for key, label in entities.items()),
        Alias("coast", "s1", 1, "c"),
        *(Triple(key, IN_SYNSET, synset) for key, _, synset in triples),
    ]  # fmt: skip
    with build(tmp_path, records) as kb:
        in_wn(written(kb, FORMATS["wn-lmf"], tmp_path))
        again = kgkit.import_kb(tmp_path / "small-wn-lmf.xml", "again", home=tmp_path)
    with kgkit.open_kb("again", tmp_path) as kb:
        assert {entity.key for entity in kb} == entities.keys()
    assert sum(again.manifest.counts.entities.values()) == len(entities)


def read_table(path, header):
    return pandas.read_csv(
        path, sep="\t", quoting=csv.QUOTE_NONE, lineterminator="\n", header=header,
        keep_default_na=False, dtype=str,
    )  # fmt: skip


def test_three_columns_are_read_by_pandas(kb, tmp_path):
    path = written(kb, FORMATS["tsv"], tmp_path)
    _, _, triples = figures(kb)
    if triples:
        assert read_table(path, header=None).shape == (triples, 3)


def test_kgtk_is_read_by_pandas_as_its_manual_says(kb, tmp_path):
    path = written(kb, FORMATS["kgtk"], tmp_path)
    table = read_table(path, header=0)
    assert [*table.columns] == ["id", "node1", "label", "node2"]
    assert (table[["node1", "label", "node2"]] != "").all(axis=None)
    ids = table["id"][table["id"] != ""]
    assert ids.is_unique


def test_json_lines_are_read_by_json(kb, tmp_path):
    lines = written(kb, FORMATS["jsonl"], tmp_path).read_bytes().split(b"\n")[:-1]
    records = [json.loads(line) for line in lines]
    numbers = [sum(1 for each in records if name in each) for name in ("attributes", "alias", "subject")]
    keys = sum(1 for each in records if "key" in each and "alias" not in each)
    assert (keys, *numbers[1:]) == figures(kb)


# -- WordNet -----------------------------------------------------------------------


@pytest.fixture
def wordnet(wordnet_build):
    with kgkit.open_kb("wordnet", home=wordnet_build.parents[3]) as kb:
        yield kb


@pytest.mark.slow
@pytest.mark.usefixtures("wordnets")
def test_wordnet_in_wn(wordnet, tmp_path):
    """Exports 117,659 synsets and adds them to a database."""
    ours = in_wn(written(wordnet, FORMATS["wn-lmf"], tmp_path))
    kinds = wordnet.manifest.counts.entities
    assert (
        (len(ours.synsets()), len(ours.senses())) == (kinds["synset"], kinds["lemma"]) == (117_659, 206_949)
    )
    words = {(alias.surface, wordnet[alias.key].pos) for alias in StoredRecords(wordnet).aliases()}
    # A further spelling of a sense is a form of its word.
    assert words <= {(str(form), word.pos) for word in ours.words() for form in word.forms()}
    relations = sum(
        2 if INVERSES.get(triple.relation) and triple.subject != triple.object else 1
        for triple in StoredRecords(wordnet).triples()
        if triple.relation != IN_SYNSET
    )
    tables = ("synset_relations", "sense_relations", "sense_synset_relations")
    with closing(sqlite3.connect(wn.config.database_path)) as database:  # its objects join those of one name
        counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    assert sum(counts) == relations
    dog, cat = (
        next(
            synset for synset in ours.synsets(word, "n") if synset.metadata()["identifier"] == f"{word}.n.01"
        )
        for word in ("dog", "cat")
    )
    assert wn.similarity.path(dog, cat) == 0.2
    assert wn.similarity.wup(dog, cat) == pytest.approx(6 / 7)
