"""KGTK, Neo4j, KGX and three columns, as others write them and as others read ours."""

import csv
import re

import pytest

import kgkit
from kgkit.building import Alias, Entity
from kgkit.building.build import build_kb
from kgkit.building.grouping import BAD_RECORDS
from kgkit.building.records import StoredRecords
from kgkit.errors import SourceError
from kgkit.exchange import FORMATS
from kgkit.exchange.kgtk import _plain, _symbol, _text
from tests.exchange_helpers import ODD_KEYS, imported, written
from tests.old_format import publish_as_format_2
from tests.small_kb import Given


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
        assert kb["tt1"].attributes == {"year": 1999}
        assert by_name(kb, "speed") == ["tt2"]
        assert facts(kb) == [("tt1", "SAME_ACTOR", "tt2")]


TYPED = {  # by heading: what is written, and what it is
    "n:int": {"041": 41, "-7": -7, " 5 ": 5, "+2147483647": 2147483647},
    "n:long": {"9223372036854775807": 2**63 - 1, "-9223372036854775808": -(2**63)},
    "n:byte": {"-128": -128},
    "n:short": {"32767": 32767},
    "n:float": {"1.70": 1.7, "-.5": -0.5, "3": 3.0, "1e3": 1000.0, "NaN": "NaN", "-Infinity": "-Infinity"},
    "n:double{}": {"2.": 2.0},
    "n:Boolean": {"true": True, "FALSE": False, " True": True},
    "n:char": {"é": "é", "7": "7"},
    "n:string": {"041": "041", "a;b": "a;b", "true": "true"},
    "n:date": {"2024-02-30": "2024-02-30"},
    "n:datetime{timezone:Europe/Warsaw}": {"2024-02-29T12:00": "2024-02-29T12:00"},
    "n:point{crs:WGS-84}": {'"{latitude:47, longitude:8}"': "{latitude:47, longitude:8}"},
    "n:string[]": {"a;b": ["a", "b"], "a": ["a"], "x y;;z": ["x y", "", "z"]},
    "n:int[]": {"1;02; 3": [1, 2, 3]},
    "n:boolean[]": {"true;false": [True, False]},
    "n": {"041": "041", "a;b": "a;b"},
    "a:b:int": {"5": 5},
    "n:integer": {"5": "5"},  # no type of Neo4j's: a name with a colon
}
NO_VALUES = {
    "n:int": ("1.5", "x", "1_000", "١", "2147483648", "0x1F"), "n:byte": ("128",), "n:short": ("-32769",),
    "n:long": ("9223372036854775808", "1" * 5000), "n:float": ("1,5", "x", "1e999", "1.5f"),
    "n:boolean": ("yes", "1"), "n:char": ("ab",), "n:int[]": ("1;x", "1;;2"),
}  # fmt: skip


@pytest.mark.parametrize("heading", TYPED)
def test_a_type_in_a_heading_says_what_the_values_are(heading, tmp_path):
    name = heading.rpartition(":")[0] if heading not in ("n", "n:integer") else heading
    name = "n" if "{" in heading else name
    written, values = [*TYPED[heading]], [*TYPED[heading].values()]
    fields = (text if text.startswith('"') else f'"{text}"' for text in written)
    rows = "".join(f"{number},{field}\n" for number, field in enumerate(fields))
    with folder_kb(tmp_path, nodes__csv=f":ID,{heading}\n{rows}none,\n") as kb:
        found = [kb[str(number)].attributes[name] for number in range(len(written))]
        assert found == values and [*map(type, found)] == [*map(type, values)]
        assert kb["none"].attributes == {}


@pytest.mark.parametrize("heading", NO_VALUES)
def test_a_value_that_is_not_of_its_type_is_one_error_or_left_out(heading, tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for value in NO_VALUES[heading]:
        (folder / "nodes.csv").write_text(f':ID,{heading},name\n1,,Ann\n2,"{value}",Bob\n3,,Cem\n')
        with pytest.raises(SourceError) as caught:
            build_kb("neo4j", folder, name="typed", home=tmp_path)
        assert caught.value.line == 3 and repr(heading) in str(caught.value)
        built = build_kb("neo4j", folder, name="typed", home=tmp_path, bad="skip")
        assert (built.manifest.entities, built.dropped[BAD_RECORDS]) == (2, 1)


@pytest.mark.parametrize(
    ("heading", "value", "surfaces"),
    [
        ("alias:string[]", "Annie;A. Lee", ["a lee", "annie"]),
        ("Synonyms:STRING[]", "Annie;;A. Lee;", ["a lee", "annie"]),
        ("synonym", "Annie;A. Lee", ["a lee", "annie"]),
        ("alt_label:string[]", "Annie", ["annie"]),
        ("also known as:string", "Lee; Ann", ["lee; ann"]),
        ("aliases:string[]", "", []),
        ("nickname:string[]", "Annie", []),
    ],
)
def test_columns_of_further_names_are_surfaces(heading, value, surfaces, tmp_path):
    with folder_kb(tmp_path, nodes__csv=f":ID,name,{heading}\n1,Anna,{value}\n") as kb:
        assert sorted(kb.surfaces()) == sorted(["anna", *surfaces])
        assert set(kb["1"].attributes) <= {"nickname"}


def test_names_in_a_list_are_the_label_and_further_names(tmp_path):
    with folder_kb(tmp_path, nodes__csv=":ID,name:string[],x:IGNORE\n1,Bern;Berna;Berne,y\n") as kb:
        assert (kb["1"].label, sorted(kb.surfaces())) == ("Bern", ["bern", "berna", "berne"])
        assert kb["1"].attributes == {}


def test_only_a_colon_makes_a_heading_leave_its_column_out(tmp_path):
    with folder_kb(tmp_path, nodes__csv=":ID,name,:IGNORE,n:IGNORE(X),IGNORE\n1,Bern,a,b,c\n") as kb:
        assert kb["1"].attributes == {"IGNORE": "c"}


def test_a_surface_of_an_older_build_is_one_node(tmp_path):
    records = [Alias("IRAK", "1", 9), Alias("irak", "2", 5), Alias("IRAK", "3", 1), *map(Entity, "123")]
    built = build_kb(Given(records, {}, 0, "alias"), tmp_path, name="new", home=tmp_path)
    older = publish_as_format_2(built.path, tmp_path, "old")
    manifest = older.folder / "manifest.json"
    manifest.write_text(re.sub('"language": ?""', '"language": "tr"', manifest.read_text()))
    with kgkit.open_kb("old", tmp_path) as kb:
        tables = FORMATS["neo4j"].files(StoredRecords(kb))
        assert b"".join(tables["surfaces.csv"]).split()[1:] == [b"IRAK,Surface", b"irak,Surface"]


def test_rows_of_every_table_that_cannot_be_read_can_be_left_out(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "nodes.csv").write_bytes(b":ID,name\n1,Ann\n2\n3,\xff\n4,Bob\n")
    (folder / "relationships.csv").write_text(":START_ID,:END_ID,:TYPE\n1,4,KNOWS\n1,,KNOWS\n1,4\n")
    built = build_kb("neo4j", folder, name="rows", home=tmp_path, bad="skip")
    assert (built.manifest.entities, built.manifest.triples, built.dropped) == (2, 1, {BAD_RECORDS: 4})


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
