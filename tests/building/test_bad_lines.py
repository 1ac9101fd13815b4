"""`--bad skip`: lines that cannot be read are left out and counted, whichever builder and engine reads."""

import gzip

import pytest

from kgkit.building import BadRecord, builder_names, find_builder
from kgkit.building.add import add_to_kb
from kgkit.building.build import build_kb
from kgkit.building.grouping import BAD_RECORDS
from kgkit.building.records import StoredRecords
from kgkit.errors import SourceError, UsageError
from kgkit.kb import open_kb
from kgkit.store.manifest import rebuild_command
from tests.cli_helpers import run

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
FILES = {  # by builder: a name, good lines around bad ones, the number of the bad ones, the first one's
    "ntriples": (
        "a.nt",
        (
            f'<http://a/1> {LABEL} "Gdańsk"@pl .', f'<http://a/2 x> {LABEL} "Poznań" .', "no triple",
            f'<http://a/3> {LABEL} "Łódź"@pl_PL .', f'<//a/4> {LABEL} "Kraków" .', "# Kraków",
            f'<http://a/5> {LABEL} "\\uD800" .', f'<http://a/6> {LABEL} "Opole',
            b'<http://a/7> <http://a/p> "\xf3" .', f'<< <http://a/1> {LABEL} "x" >> <http://a/p> "y" .',
            f'<http://a/8> {LABEL} "Sopot" .',
        ), 8, 2,
    ),
    "jsonl": (
        "a.jsonl",
        (
            '{"key": "1", "label": "Gdańsk"}', '{"key": 2}', "", "Poznań", '{"key": "3", "lable": "Łódź"}',
            '{"alias": "Danzig", "key": "1", "count": -1}', '{"key": "4", "label": "\\udc00"}', '{"key": "5"',
            b'{"key": "6", "label": "Krak\xf3w"}', '{"key": "7", "attributes": {"n": 99999999999999999999}}',
            "[" * 5000, '{"key": "8", "label": "Sopot"}',
        ), 9, 2,
    ),
    "kgtk": (
        "a.kgtk.tsv",
        (
            "id\tnode1\tlabel\tnode2", "\tQ1\tlabel\t'Gdańsk'@pl", "\tQ2\tlabel", b"\tQ3\tlabel\t'\xf3'",
            '\tQ4\tkgkit:attributes\t"[1]"', "# a comment", "\tQ5\tlabel\t\0", "\tQ8\tlabel\t'Sopot'@pl",
        ), 4, 3,
    ),
    "tsv": (
        "a.tsv",
        ("1\tnear\t8", "1\tnear", "\tnear\t8", "1\tnear\t8\t9", b"1\t\xf3\t8", "8\tnear\t1"), 4, 2,
    ),
    "spo": (
        "a.spo",
        ("1\tnear\t8", "1\tnear", " \tnear\t8", "1\tnear\t8\t9", b"1\t\xf3\t8", "8\tnear\t1"), 4, 2,
    ),
    "table": (
        "a.csv",
        (
            "id,name,count,near", "1,Gdańsk,3,Sopot", "2,Poznań,three,", ",Łódź,1,", "4,Kraków", b"5,\xf3,1,",
            '6,"Opole,1,', '7,"Wroc"ław,1,', "9,Nysa,-1,", '8,Sopot,1,"Gdańsk"',
        ), 7, 3,
    ),
    "cn_dbpedia": (
        "a.txt",
        (
            b"x\t\xff\ty", "格但斯克\tBaiduTAG\t城市", "格但斯克\t位置", "\t位置\t波兰",
            "格但斯克\t位置\t波兰\t欧洲", "", b"\xff", "a\tb\t\0", "索波特\tBaiduTAG\t城市",
        ), 6, 1,
    ),
}  # fmt: skip


def source(folder, builder):
    name, lines, bad, first = FILES[builder]
    path = folder / name
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines) + b"\n")
    return path, bad, first


# Entities that come in pieces are no matter for the engine in memory.
ENGINES = [
    (builder, engine)
    for builder in FILES
    for engine in ("memory", "local")
    if engine == "local" or not find_builder(builder).pieces
]


@pytest.mark.parametrize(("builder", "engine"), ENGINES)
def test_bad_lines_are_left_out_and_counted_and_the_first_is_named(builder, engine, tmp_path):
    path, bad, first = source(tmp_path, builder)
    columns = {"fact": ["near"]} if builder == "table" else None
    built = build_kb(builder, path, name="a", home=tmp_path, bad="skip", engine=engine, columns=columns)
    assert built.manifest.counts.dropped[BAD_RECORDS] == bad
    (example,) = built.examples[BAD_RECORDS]
    assert f"{path.name}:{first}: " in example and "\n" not in example
    assert "--bad skip" in rebuild_command(built.path, built.manifest)
    assert built.manifest.entities == 2
    assert built.manifest.triples == {"tsv": 2, "spo": 2, "table": 2}.get(builder, 0)


@pytest.mark.parametrize("builder", FILES)
def test_without_it_the_first_bad_line_is_the_error_with_its_remedy(builder, tmp_path):
    path, _, first = source(tmp_path, builder)
    with pytest.raises(SourceError) as caught:
        build_kb(builder, path, name="a", home=tmp_path, engine="local")
    assert caught.value.line == first


@pytest.mark.parametrize("builder", sorted({*FILES} - {"cn_dbpedia"}))
def test_good_lines_make_the_same_knowledge_base_with_it(builder, tmp_path):
    name, lines, _, _ = FILES[builder]
    path = tmp_path / name
    good = lines[:1] + lines[-1:] if builder not in ("kgtk", "table") else lines[:2] + lines[-1:]
    path.write_text("\n".join(good))
    one, two = (build_kb(builder, path, name=bad, home=tmp_path, bad=bad) for bad in ("stop", "skip"))
    assert one.manifest.counts == two.manifest.counts and BAD_RECORDS not in two.dropped
    assert (one.path / "data.mdb").read_bytes() == (two.path / "data.mdb").read_bytes()


@pytest.mark.parametrize(("builder", "name"), [("ntriples", "a.nt"), ("jsonl", "a.jsonl"), ("tsv", "a.tsv")])
def test_a_file_of_bad_lines_only_is_an_error_with_the_first(builder, name, tmp_path):
    (tmp_path / name).write_text("eins\nzwei\n" * 3_000)
    with pytest.raises(SourceError, match="6,000") as caught:
        build_kb(builder, tmp_path / name, name="a", home=tmp_path, bad="skip")
    assert "eins" in str(caught.value) and f"{name}:1" in str(caught.value)


@pytest.mark.parametrize(
    ("builder", "name", "content"),
    [
        ("jsonl", "a.jsonl", b'{"key": "1"}\nx\n{"key": "1", "label": "Gda\\u0144sk"}\n'),
        ("jsonl", "a.jsonl", b'{"kgkit": {"smoothing": -1}}\n{"key": "1"}\n'),
        ("table", "a.csv", b"id,name\n1,Ann\n2\n1,Bob\n"),
        ("jsonl", "a.jsonl.gz", gzip.compress(b'{"key": "1"}\n' * 9999)[:-20]),
        ("ntriples", "a.nt", '<http://a/1> <http://a/p> "x" .\n'.encode("utf-16")),
        ("table", "a.csv", b""),
    ],
)
def test_what_is_no_matter_of_one_line_stays_an_error(builder, name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError):
        build_kb(builder, tmp_path / name, name="a", home=tmp_path, bad="skip")


def test_builders_that_do_not_read_by_lines_refuse_it(tmp_path):
    for name in builder_names():
        if name not in (*FILES, "neo4j"):
            with pytest.raises(UsageError, match=name):
                build_kb(name, tmp_path, name="a", home=tmp_path, bad="skip")
    with pytest.raises(UsageError):
        build_kb("jsonl", tmp_path, name="a", home=tmp_path, bad="ignore")
    with pytest.raises(UsageError, match="'Skip'"):
        add_to_kb("a", tmp_path, home=tmp_path, bad="Skip")


def test_a_line_that_is_too_long_is_read_past(tmp_path, monkeypatch):
    monkeypatch.setattr("kgkit.files.MAX_RECORD", 1 << 16)
    path = tmp_path / "a.jsonl"
    path.write_text('{"key": "1"}\n{"key": "' + "x" * (1 << 20) + '"}\n{"key": "2"}\n')
    built = build_kb("jsonl", path, name="a", home=tmp_path, bad="skip")
    assert (built.manifest.entities, built.dropped[BAD_RECORDS]) == (
        {**built.manifest.counts.entities}[""],
        1,
    )


def test_what_is_added_leaves_out_bad_lines_too(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"key": "1"}\n')
    build_kb("jsonl", tmp_path / "a.jsonl", name="a", home=tmp_path)
    (tmp_path / "b.jsonl").write_text('{"key": 2}\n{"key": "3"}\nx\n')
    built = add_to_kb("a", tmp_path / "b.jsonl", home=tmp_path, bad="skip")
    assert built.manifest.entities == 2 and built.dropped == {BAD_RECORDS: 2}
    assert "b.jsonl:1: " in built.examples[BAD_RECORDS][0]


def test_what_says_more_of_a_bad_line_is_left_out_with_it(tmp_path):
    rows = (
        "id\tnode1\tlabel\tnode2",
        '\tkgkit:kb\tkgkit:head\t"{}"', '\tA\tlabel\t"Apple"', '\tA\tkgkit:pos\t"n"',
        'kgkit:a0\tA\talias\t"apple"', "\tkgkit:a0\tkgkit:count\t3", 'kgkit:a1\tA\talias "apples"',
        "\tkgkit:a1\tkgkit:count\t7", "\tkgkit:a1\tkgkit:sense\tA", 'kgkit:f0\t"geese"\tkgkit:form_of',
        '\tkgkit:f0\tkgkit:pos\t"n"', 'kgkit:a2\tA\talias\t"pome"', "\tkgkit:a2\tkgkit:count\t5",
    )  # fmt: skip
    (tmp_path / "a.kgtk").write_text("\n".join(rows))
    built = build_kb("kgtk", tmp_path / "a.kgtk", name="a", home=tmp_path, bad="skip")
    with open_kb("a", tmp_path) as kb:
        assert [(entity.key, entity.pos) for entity in kb.entities()] == [("A", "n")]
        assert [(alias.surface, alias.count) for alias in StoredRecords(kb).aliases()] == [
            ("apple", 3),
            ("pome", 5),
        ]
    assert built.dropped == {BAD_RECORDS: 5}
    assert ":7: " in built.examples[BAD_RECORDS][0]


def test_the_commands_say_how_many_lines_were_left_out(tmp_path):
    path, bad, _ = source(tmp_path, "ntriples")
    for command in (("kb", "import", path), ("build-kb", "ntriples", path)):
        assert run(*command, "--name", "a", "--home", tmp_path).code == 1
        done = run(*command, "--name", "a", "--home", tmp_path, "--bad", "skip")
        (line,) = [line for line in done.err.splitlines() if BAD_RECORDS in line]
        assert done.code == 0 and f"{bad} × " in line and "a.nt:2: " in line and "http://a/2 x" in line
    assert f"{bad} × {BAD_RECORDS}" in run("kb", "info", "a", "--home", tmp_path).out


@pytest.mark.parametrize("block", [1, 60, 61, 62, 200, 1000])
@pytest.mark.parametrize(
    ("builder", "module"),
    [("ntriples", "kgkit.exchange.rdf_read"), ("cn_dbpedia", "kb_builders.cn_dbpedia_files")],
)
def test_lines_have_their_numbers_wherever_blocks_end(builder, module, block, tmp_path, monkeypatch):
    monkeypatch.setattr(f"{module}._BLOCK", block)
    path, bad, first = source(tmp_path, builder)
    reader = find_builder(builder).skipping_bad()
    records = [record for part in reader.parts(path) for record in reader.observe(path, part)]
    problems = [record.problem for record in records if isinstance(record, BadRecord)]
    assert len(problems) == bad and f":{first}: " in problems[0]
    monkeypatch.undo()
    again = [record for part in reader.parts(path) for record in reader.observe(path, part)]
    assert problems == [record.problem for record in again if isinstance(record, BadRecord)]
