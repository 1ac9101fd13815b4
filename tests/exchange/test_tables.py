"""KGTK, Neo4j, KGX and three columns, as others write them and as others read ours."""

import csv

import pytest

import kgkit
from kgkit.building.build import build_kb
from kgkit.exchange import FORMATS
from kgkit.exchange.kgtk import _plain, _symbol, _text
from tests.exchange_helpers import ODD_KEYS, imported, written


def by_name(kb, text):
    return [found.entity.key for found in kb.decode(kb.candidates(text))]


def facts(kb):
    return sorted((triple.subject, triple.relation, triple.object) for triple in kb.match())


def folder_kb(tmp_path, **tables):
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, content in tables.items():
        (folder / name.replace("__", ".")).write_text(content)
    build_kb("neo4j", folder, name="imported", home=tmp_path)
    return kgkit.open_kb("imported", home=tmp_path)


# -- KGTK -------------------------------------------------------------------

WIKIDATA = (
    "id\tnode1\tlabel\tnode2\n"
    "e1\tQ42\tlabel\t'Douglas Adams'@en\n"
    "e2\tQ42\talias\t'Douglas N. Adams'@en\n"
    "e3\tQ42\tdescription\t'English writer'@en\n"
    "# a comment\n"
    "\n"
    "e4\tQ42\tP31\tQ5\n"
    "e5\tQ5\tlabel\t'Mensch'@de\n"
    "e6\tQ5\tlabel\t'human'@en\n"
    "e7\tQ42\tP569\t^1952-03-11T00:00:00Z/11\n"
    "e8\tQ42\theight\t1.96\n"
    "e9\tQ42\talive\tFalse\n"
    'e10\tQ42\tquote\t"a \\"tab\\" \\t and a bar \\| here"\n'
    "e11\tQ42\trdf:type\tAuthor\n"
)


def test_a_wikidata_edge_file_is_read(tmp_path):
    with imported(WIKIDATA, "kgtk", tmp_path, "wikidata.tsv") as kb:
        adams = kb["Q42"]
        assert (adams.label, adams.description, adams.types) == (
            "Douglas Adams",
            "English writer",
            ("Author",),
        )
        assert adams.attributes == {
            "P569": "^1952-03-11T00:00:00Z/11",
            "height": 1.96,
            "alive": False,
            "quote": 'a "tab" \t and a bar | here',
        }
        assert kb["Q5"].label == "human"
        assert by_name(kb, "Mensch") == ["Q5"] and by_name(kb, "Douglas N. Adams") == ["Q42"]
        assert facts(kb) == [("Q42", "P31", "Q5")]


def test_labels_beside_the_nodes_and_other_names_of_columns_are_read(tmp_path):
    content = (
        "subject\tpredicate\tobject\tnode1;label\tnode2;label\trank\n"
        "Q1\tP31\tQ2\t'one'@en\t'two'@en\tnormal\n"
        "Q1\tP31\tQ3\t'one'@en\t\tnormal\n"
    )
    with imported(content, "kgtk", tmp_path, "edges.tsv") as kb:
        assert [kb[key].label for key in ("Q1", "Q2", "Q3")] == ["one", "two", "Q3"]
        assert facts(kb) == [("Q1", "P31", "Q2"), ("Q1", "P31", "Q3")]


def test_a_node_file_is_read(tmp_path):
    content = 'id\tlabel\trdf:type\tsize\nN1\t"Moe"\tPerson|Actor\t3\nN2\t"Larry"\tPerson\t\n'
    with imported(content, "kgtk", tmp_path, "nodes.tsv") as kb:
        assert (kb["N1"].label, kb["N1"].types, kb["N1"].attributes) == (
            "Moe",
            ("Person", "Actor"),
            {"size": 3},
        )
        assert by_name(kb, "Larry") == ["N2"]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_name_is_a_symbol_of_kgtk_whatever_it_is(key):
    symbol = _symbol(key)
    assert _plain(symbol) == key
    assert symbol[0] not in "0123456789+-.\"'^@!#"
    assert not set(symbol) & set("\t\n\r")
    assert symbol not in ("True", "False", "label", "alias", "description")
    assert symbol == symbol.strip(" ") or symbol.endswith("\\ ")


def test_strings_and_languages_are_told_apart():
    assert _text("'it''s'@en") == "it''s"
    assert _text('"say \\"so\\""') == 'say "so"'


def test_ours_has_kgtks_four_columns_and_counts_as_edges_of_edges(toy, tmp_path):
    lines = written(toy, FORMATS["kgtk"], tmp_path).read_text().splitlines()
    assert lines[0] == "id\tnode1\tlabel\tnode2"
    assert {line.count("\t") for line in lines} == {3}
    [at] = [place for place, line in enumerate(lines) if line.endswith('\tApple\talias\t"apple"')]
    alias = lines[at].partition("\t")[0]
    assert lines[at + 1] == f"\t{alias}\tkgkit:count\t60"


# -- Neo4j and KGX ----------------------------------------------------------


def test_neo4j_tables_of_others_are_read(tmp_path):
    with folder_kb(
        tmp_path,
        nodes__csv='id:ID,name,year:int,:LABEL\ntt1,"The ""Matrix""",1999,Movie;Film\ntt2,Speed,,Movie\n',
        relationships__csv=":START_ID,role,:END_ID,:TYPE\ntt1,Neo,tt2,SAME_ACTOR\n",
    ) as kb:
        assert (kb["tt1"].label, kb["tt1"].kind, kb["tt1"].types) == (
            'The "Matrix"',
            "Movie",
            ("Movie", "Film"),
        )
        assert kb["tt1"].attributes == {"year": "1999"}
        assert by_name(kb, "speed") == ["tt2"]
        assert facts(kb) == [("tt1", "SAME_ACTOR", "tt2")]


def test_kgx_tables_are_read(tmp_path):
    with folder_kb(
        tmp_path,
        my_nodes__tsv=(
            "id\tcategory\tname\tdescription\tsynonym\txref\n"
            'HGNC:11603\tbiolink:Gene|biolink:NamedThing\tTBX4\tA "gene".\tT-box 4|TBX-4\tNCBI:9496\n'
            "MONDO:1\tbiolink:Disease\tsyndrome\t\t\t\n"
        ),
        my_edges__tsv="id\tsubject\tpredicate\tobject\ne1\tHGNC:11603\tbiolink:related_to\tMONDO:1\n",
    ) as kb:
        gene = kb["HGNC:11603"]
        assert (gene.label, gene.description) == ("TBX4", 'A "gene".')
        assert gene.types == ("biolink:Gene", "biolink:NamedThing")
        assert gene.attributes == {"xref": "NCBI:9496"}
        assert by_name(kb, "t-box 4") == ["HGNC:11603"]
        assert facts(kb) == [("HGNC:11603", "biolink:related_to", "MONDO:1")]


def test_our_tables_have_the_headers_of_neo4j_admin(toy, tmp_path):
    folder = written(toy, FORMATS["neo4j"], tmp_path)
    rows = {path.name: list(csv.reader(path.read_text().splitlines())) for path in folder.glob("*.csv")}
    assert rows["nodes.csv"][0][:2] == [":ID(Entity)", ":LABEL"]
    assert rows["nodes.csv"][1][:3] == ["Apple", "Entity;page", "apple"]
    assert rows["relationships.csv"][0] == [":START_ID(Entity)", ":TYPE", ":END_ID(Entity)"]
    assert rows["means.csv"][0][:3] == [":START_ID(Surface)", ":TYPE", ":END_ID(Entity)"]
    surfaces = [row[0] for row in rows["surfaces.csv"][1:]]
    assert sorted(surfaces) == sorted(set(surfaces)) == sorted({row[0] for row in rows["means.csv"][1:]})
    nodes = {row[0] for row in rows["nodes.csv"]}
    assert {end for row in rows["relationships.csv"][1:] for end in (row[0], row[2])} <= nodes


# -- three columns ----------------------------------------------------------


def test_three_columns_make_entities_in_the_order_of_their_coming(tmp_path):
    with imported("b\tr\ta\nc\tr\tb\n", "tsv", tmp_path) as kb:
        assert [entity.key for entity in kb] == ["b", "a", "c"]
        assert by_name(kb, "A") == ["a"]
        assert facts(kb) == [("b", "r", "a"), ("c", "r", "b")]


def test_a_line_that_names_the_columns_is_no_triple(tmp_path):
    with imported("subject\tpredicate\tobject\nb\tr\ta\n", "tsv", tmp_path) as kb:
        assert [entity.key for entity in kb] == ["b", "a"]


def test_a_backslash_of_a_stranger_stays(tmp_path):
    with imported("C:\\data\tr\t\\alpha\n", "tsv", tmp_path) as kb:
        assert [entity.key for entity in kb] == ["C:\\data", "\\alpha"]
