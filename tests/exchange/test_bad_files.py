"""A file that is not what its format wants: one error, with its line if it has one, nothing published."""

import pytest

from kgkit.building.build import build_kb
from kgkit.errors import MissingExtra, NotThere, SourceError, UsageError
from kgkit.exchange import FORMATS, guess_format
from kgkit.home import Home
from tests.toys import run_python

XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.0.dtd">
<LexicalResource xmlns:dc="http://purl.org/dc/elements/1.1/">
"""
LEXICON = XML + b"<Lexicon id='x' label='X' language='en' email='' license='' version='1'>\n"
END = b"</Lexicon></LexicalResource>"

DEEP = 2_000 * "[" + 2_000 * "]"


def graphml(data, *, form="string", encoding="UTF-8"):
    return f"""<?xml version="1.0" encoding="{encoding}"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="size" for="node" attr.name="size" attr.type="{form}"/>
<graph edgedefault="directed">
<node id="A">
<data key="size">{data}</data>
</node>
</graph></graphml>""".encode("utf-8", "surrogatepass")


def kgtk_attributes(value):
    rows = ["id\tnode1\tlabel\tnode2", '\tkgkit:kb\tkgkit:head\t"{}"', '\tA\tkgkit:kind\t""']
    return "\n".join([*rows, f'\tA\tkgkit:attributes\t"{{\\"a\\": {value}}}"', ""]).encode()


def rdf_attributes(value):
    return f'<http://a/A> <urn:kgkit:vocabulary:attributes> "{{\\"a\\": {value}}}" .\n'.encode()


FILES = [  # builder, content, line, a part of the message
    ("ntriples", b"<http://a> <http://b> <http://c> .\n<http://a> <http://b c> .\n", 2, "Invalid IRI"),
    ("ntriples", b'<http://a> <http://b> "\xff" .\n', 1, "Invalid UTF-8"),
    ("ntriples", b"# nothing said\n", None, "no entity"),
    ("turtle", b"@prefix a: <http://a/> .\na:b a:c a:d .\na:b x:c .\n", 3, "prefix x: has not been declared"),
    ("kgtk", b"id\tnode1\tlabel\tnode2\ne\ta\tb\n", 2, "expected 4 fields, as the header has them, found 3"),
    ("kgtk", b"foo\tbar\n1\t2\n", 1, "neither node1 nor id, but foo, bar"),
    ("kgtk", b"node1\tlabel\nx\ty\n", 1, "without the column node2"),
    ("kgtk", b"id\tnode1\tlabel\tnode2\n\ta\tb\t\xff\n", 2, "not UTF-8"),
    ("tsv", b"a\tb\tc\na\tb\n", 2, "found 2 field"),
    ("tsv", b"a\tb\t\n", 1, "an empty field"),
    ("tsv", b"id\tnode1\tlabel\tnode2\n", 1, "--format kgtk reads it"),
    ("graphml", b"<graphml>\n<graph><node id='a'></graph></graphml>", 2, "mismatched tag"),
    ("graphml", b"<html/>", 1, "its root is <html>"),
    ("graphml", b"<graphml>\n<graph><node/></graph></graphml>", None, "a node without an id"),
    ("graphml", b"<graphml><graph><node id='a'><data key='k'/></node></graph></graphml>", None, "declared"),
    *(("graphml", graphml(data, form="long"), None, "node id='A'") for data in
      ("1" + 30 * "0", str(2**64), str(-(2**63) - 1))),
    ("graphml", graphml("&#xD800;"), 6, "reference to invalid character number"),
    ("graphml", graphml("\ud800"), 6, "not well-formed"),
    *(("graphml", graphml("é", encoding=encoding), line, "encoding") for line, encoding in
      ((1, "latin-9x"), (1, "UTF-16"), (1, "shift_jis"), (1, "rot13"), (1, "undefined"))),
    *((builder, wrap(value), line, message) for builder, wrap, line in (
        ("kgtk", kgtk_attributes, 4), ("ntriples", rdf_attributes, None), ("turtle", rdf_attributes, None),
    ) for value, message in (
        ("1" + 30 * "0", "integers lie between -2**63 and 2**64 - 1"), ("NaN", "malformed"),
        (DEEP, "nested too deeply"), (201 * "[" + 201 * "]", "200 deep"),
    )),
    ("kgtk", kgtk_attributes("1") + b'kgkit:a0\tA\talias\t"q"\n\tkgkit:a0\tkgkit:count\tNaN\n', 6, "is nan"),
    ("wn-lmf", XML.replace(b"UTF-8", b"latin-9x") + b"</LexicalResource>", 1, "DOCTYPE, in UTF-8"),
    (
        "wn-lmf",
        LEXICON + b"<LexicalEntry id='e'><Lemma writtenForm='w' partOfSpeech='n'/><Sense id='s' synset='y'>"
        b"<Count>1000000000000000000000000000000</Count></Sense></LexicalEntry><Synset id='y' ili=''/>" + END,
        None,
        "integers lie between -2**63 and 2**64 - 1",
    ),
    ("wn-lmf", b"<x/>", 1, "XML declaration and DOCTYPE"),
    ("wn-lmf", XML, 4, "no element found"),
    ("wn-lmf", XML + b"</LexicalResource>", None, "no lexicon"),
    ("wn-lmf", LEXICON + b"<Synset id='a' ili=''/>\n<Bogus/>" + END, 6, "unexpected element: Bogus"),
    ("wn-lmf", LEXICON + b"<Synset ili=''/>" + END, None, "lacks what it has to have"),
    ("wn-lmf", LEXICON + b"<Synset id='a' ili=''>\n" + END, 6, "mismatched tag"),
    (
        "wn-lmf",
        LEXICON + b"<LexicalEntry id='e'><Lemma writtenForm='w' partOfSpeech='n'/>"
        b"<Sense id='s' synset='gone'/></LexicalEntry>" + END,
        None,
        "'gone'",
    ),
]  # fmt: skip
FOLDERS = [  # tables, the one that is wrong, line, a part of the message
    ({}, "", None, "without a table of nodes"),
    ({"nodes.csv": b""}, "nodes.csv", 1, "is empty"),
    ({"nodes.csv": b"a,b\n1,2\n"}, "nodes.csv", 1, "without a column `:ID` or `id`"),
    ({"nodes.csv": b":ID,label\n1,2\n3\n"}, "nodes.csv", 3, "expected 2 fields"),
    ({"nodes.csv": b':ID,label\n1,"2\n3\n'}, "nodes.csv", 2, "unexpected end of data"),
    ({"nodes.csv": b":ID,label\n1,2\xff\n"}, "nodes.csv", 2, "not UTF-8"),
    ({"nodes.csv": b":ID,attributes\n1,{\n"}, "nodes.csv", 2, "no JSON object"),
    ({"relationships.csv": b"a,b\n"}, "relationships.csv", 1, "without a column `:START_ID` or `subject`"),
    (
        {"edges.tsv": b"subject\tpredicate\tobject\n1\t\t1\n"},
        "edges.tsv",
        2,
        "without a subject, a type or an object",
    ),
    ({"means.csv": b"a,b,c,d,e\nx,MEANS,1,many,\n"}, "means.csv", 2, "a count that is no number"),
    ({"means.csv": b"a,b,c,d,e\nx,MEANS,1,nan,\n"}, "means.csv", 2, "the count is nan"),
    ({"nodes.csv": b':ID,attributes\n1,"{""a"": 1' + 30 * b"0" + b'}"\n'}, "nodes.csv", 2, "2**64 - 1"),
    ({"nodes.csv": b':ID,attributes\n1,"{""a"": ' + DEEP.encode() + b'}"\n'}, "nodes.csv", 2, "too deeply"),
    (
        {"kb.json": b'{"smoothing": "much"}'},
        "kb.json",
        None,
        "Expected `float`, got `str` - at `$.smoothing`",
    ),
    ({"kb.json": b'{"inverses": [1]}'}, "kb.json", None, "at `$.inverses`"),
    ({"kb.json": b'{"x": ' + DEEP.encode() + b"}"}, "kb.json", None, "nested too deeply"),
    ({"means.csv": b"a,b\nx,MEANS\n"}, "means.csv", 1, "expected the columns"),
    ({"kb.json": b"{"}, "kb.json", None, "no JSON object"),
]
BUILDERS = [made.builder for made in FORMATS.values()]


def refused(builder, path, home):
    with pytest.raises(SourceError) as caught:
        build_kb(builder, path, name="bad", home=home)
    assert Home.find(home).kb("bad").published() is None
    assert len(str(caught.value).splitlines()) <= 2
    return caught.value


@pytest.mark.parametrize(("builder", "content", "line", "message"), FILES)
def test_a_malformed_file_is_refused_where_it_is_wrong(builder, content, line, message, tmp_path):
    path = tmp_path / "source"
    path.write_bytes(content)
    error = refused(builder, path, tmp_path)
    assert error.path == path and error.line == line and message in str(error)


@pytest.mark.parametrize(("tables", "wrong", "line", "message"), FOLDERS)
def test_a_malformed_table_is_refused_where_it_is_wrong(tables, wrong, line, message, tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    if tables and "nodes.csv" not in tables:
        tables = {"nodes.csv": b":ID,label\n1,one\n", **tables}
    for name, content in tables.items():
        (folder / name).write_bytes(content)
    error = refused("neo4j", folder, tmp_path)
    assert (
        error.path == (folder / wrong if wrong else folder) and error.line == line and message in str(error)
    )


@pytest.mark.parametrize("builder", [name for name in BUILDERS if name not in ("neo4j", "jsonl")])
def test_a_folder_an_empty_file_and_bytes_are_refused(builder, tmp_path):
    for name, content in (("empty", b""), ("bytes", bytes(range(256)))):
        (tmp_path / name).write_bytes(content)
        assert refused(builder, tmp_path / name, tmp_path).line == 1
    (tmp_path / "folder").mkdir()
    assert "is a folder" in str(refused(builder, tmp_path / "folder", tmp_path))
    with pytest.raises(NotThere):
        build_kb(builder, tmp_path / "nothing", name="bad", home=tmp_path)


def test_a_file_where_a_folder_is_wanted_is_refused(tmp_path):
    (tmp_path / "nodes.csv").write_bytes(b":ID\n1\n")
    assert "name the one that holds" in str(refused("neo4j", tmp_path / "nodes.csv", tmp_path))


@pytest.mark.parametrize("name", ["kb.nt.gz", "kb.graphml.xz"])
def test_a_packed_file_that_is_cut_short_is_refused(name, toy, tmp_path):
    import gzip
    import lzma

    from tests.exchange_helpers import written

    made = guess_format(tmp_path / name)
    whole = written(toy, made, tmp_path).read_bytes()
    packed = gzip.compress(whole) if name.endswith("gz") else lzma.compress(whole)
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    refused(made.builder, tmp_path / name, tmp_path)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.nt", "ntriples"), ("a.ttl", "turtle"), ("a.TTL.gz", "turtle"), ("a.tsv", "tsv"), ("a.spo", "tsv"),
        ("a.kgtk.tsv", "kgtk"), ("a.kgtk", "kgtk"), ("a.xml", "wn-lmf"), ("a.graphml", "graphml"),
        ("a.jsonl", "jsonl"), ("a.jsonl.bz2", "jsonl"),
    ],
)  # fmt: skip
def test_the_name_of_a_file_says_its_format(name, format, tmp_path):
    assert guess_format(tmp_path / name).name == format


def test_a_name_that_says_nothing_is_answered_with_the_formats(tmp_path):
    with pytest.raises(UsageError, match="graphml, jsonl"):
        guess_format(tmp_path / "kb.owl")


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("pyoxigraph", "FORMATS['ntriples'].files(None)"),
        ("pyoxigraph", "FORMATS['turtle'].files(None)"),
        ("wn", "FORMATS['wn-lmf'].files(None)"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(package, code):
    done = run_python(
        f"import sys; sys.modules[{package!r}] = None\nfrom kgkit.exchange import FORMATS\n{code}"
    )
    assert f"MissingExtra: this needs the package '{package}': pip install 'kgkit[formats]'" in done.stderr
    assert MissingExtra(package, "formats").extra == "formats"


@pytest.mark.parametrize(
    ("builder", "suffix", "statement"),
    [
        ("turtle", "ttl", '<< <http://a> <http://b> <http://c> >> <http://d> "x" .'),
        ("turtle", "ttl", "<http://a> <http://b> <<( <http://a> <http://b> <http://c> )>> ."),
        ("ntriples", "nt", "<http://a> <http://b> <<( <http://a> <http://b> <http://c> )>> ."),
    ],
)
def test_a_statement_about_a_triple_is_refused_with_its_text(tmp_path, builder, suffix, statement):
    path = tmp_path / f"star.{suffix}"
    path.write_text(f"<http://a> <http://b> <http://c> .\n{statement}\n")
    with pytest.raises(SourceError, match="a statement about a triple"):
        build_kb(builder, path, name="star", home=tmp_path / "home")
    assert not list(Home(tmp_path / "home").kbs())
