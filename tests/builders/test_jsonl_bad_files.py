"""JSON lines that are not as they should be: an error names file and line, and nothing is published."""

from pathlib import Path

import pytest

import kgkit
from kgkit.errors import NotThere, SourceError
from tests.cli_helpers import run

GOOD = b'{"key": "acme", "aliases": ["Acme"]}\n'


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def complaint(source: Path, home: Path) -> SourceError:
    """Return the error of a build of *source*, having seen that a KB of that name stays as it is."""
    good = put(home / "good.jsonl", GOOD)
    before = kgkit.build_kb("jsonl", good, name="mine", home=home).build
    with pytest.raises(SourceError) as caught:
        kgkit.build_kb("jsonl", source, name="mine", home=home)
    with kgkit.open_kb("mine", home) as kb:
        assert kb.build == before
    assert [path.name for path in (home / "kbs/mine/builds").iterdir()] == [before]
    return caught.value


NOT_JSON = [
    ("{", "truncated"),
    ('{"key": "a"', "truncated"),
    ('{"key": "a"},', "trailing"),
    ('{"key": "a"} {"key": "b"}', "trailing"),
    ("{'key': 'a'}", "not JSON"),
    ('{"key": a}', "not JSON"),
    ('{"key": "\\ud800"}', "JSON"),  # half of a pair
    ('{"key": "a", "attributes": {"n": NaN}}', "not JSON"),
    ("key\tlabel", "not JSON"),
]
NO_OBJECT = ["[]", "[1, 2]", '"text"', "3", "null", "true"]
WRONG_TYPE = [
    ('{"key": 3}', "$.key"),
    ('{"key": "a", "label": ["b"]}', "$.label"),
    ('{"key": "a", "types": "b"}', "$.types"),
    ('{"key": "a", "types": [1]}', "$.types[0]"),
    ('{"key": "a", "attributes": []}', "$.attributes"),
    ('{"key": "a", "aliases": "b"}', "$.aliases"),
    ('{"key": "a", "aliases": [null]}', "$.aliases[0]"),
    ('{"key": "a", "aliases": [{"text": 1}]}', "$.aliases[0].text"),
    ('{"key": "a", "aliases": [{"count": 1}]}', "`text`"),
    ('{"key": "a", "aliases": [{"text": "b", "count": "3"}]}', "$.aliases[0].count"),
    ('{"alias": "b", "key": "a", "count": "3"}', "$.count"),
    ('{"alias": "b", "key": "a", "count": true}', "$.count"),
    ('{"alias": "b", "key": "a", "count": 1e999}', "$.count"),
    ('{"subject": "a", "relation": 1, "object": "b"}', "$.relation"),
    ('{"kgkit": "a"}', "$.kgkit"),
    ('{"kgkit": {"version": 3}}', "$.kgkit.version"),
    ('{"kgkit": {"inverses": {"a": 1}}}', "$.kgkit.inverses"),
    ('{"kgkit": {"label_aliases": "no"}}', "$.kgkit.label_aliases"),
]
INCOMPLETE = [
    ("{}", "none of 'key', 'alias'"),
    ('{"key": null}', "none of 'key', 'alias'"),
    ('{"label": "a"}', "none of 'key', 'alias'"),
    ('{"to": "a"}', "none of 'key', 'alias'"),
    ('{"key": ""}', "'key' is empty"),
    ('{"alias": "b"}', "'key' is missing"),
    ('{"alias": "b", "key": ""}', "'key' is empty"),
    ('{"alias": "", "key": "a"}', "'alias' is empty"),
    ('{"subject": "a"}', "'relation' is missing"),
    ('{"subject": "a", "relation": "r"}', "'object' is missing"),
    ('{"subject": "", "relation": "r", "object": "b"}', "'subject' is empty"),
    ('{"subject": "a", "relation": "", "object": "b"}', "'relation' is empty"),
    ('{"redirect": "a"}', "'to' is missing"),
    ('{"redirect": "a", "to": ""}', "'to' is empty"),
    ('{"form": "a"}', "'lemma' is missing"),
]
OUT_OF_PLACE = [
    ('{"key": "a", "lable": "b"}', "there is no field 'lable'; did you mean 'label'?"),
    (
        '{"key": "a", "aliases": [{"text": "b", "weight": 1}]}',
        "there is no field 'weight'",
    ),
    ('{"key": "a", "Key": "b"}', "there is no field 'Key'; did you mean 'key'?"),
    ('{"key": "a", "text": "b"}', "there is no field 'text'"),
    ('{"key": "a", "count": 3}', "'count' does not belong"),
    ('{"key": "a", "relation": "r"}', "'relation' does not belong"),
    ('{"alias": "b", "key": "a", "label": "c"}', "'label' does not belong"),
    ('{"subject": "a", "relation": "r", "object": "b", "count": 1}', "'count' does not belong"),
    ('{"redirect": "a", "to": "b", "kind": "c"}', "'kind' does not belong"),
    ('{"form": "a", "lemma": "b", "types": []}', "'types' does not belong"),
    ('{"key": "a", "subject": "b", "relation": "r", "object": "c"}', "'key' and 'subject'"),
    ('{"alias": "b", "redirect": "a", "to": "c"}', "'alias' and 'redirect'"),
    ('{"kgkit": {}, "key": "a"}', "'key' and 'kgkit'"),
    ('{"kgkit": {}}', "first line only"),
    ('{"kgkit": {"licnece": "x"}}', "there is no field 'licnece'; did you mean 'licence'?"),
]
COUNTS = [
    ('{"alias": "b", "key": "a", "count": -1}', "the count is -1"),
    ('{"key": "a", "aliases": ["c", {"text": "b", "count": -0.5}]}', "the count is -0.5"),
]
LINES = [
    *NOT_JSON,
    *((line, "object") for line in NO_OBJECT),
    *WRONG_TYPE,
    *INCOMPLETE,
    *OUT_OF_PLACE,
    *COUNTS,
]


@pytest.mark.parametrize(("line", "said"), LINES)
def test_a_bad_line_is_named_and_shown(tmp_path, line, said):
    source = put(tmp_path / "kb.jsonl", GOOD + b"\n" + line.encode() + b"\n" + GOOD)
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line, error.text) == (source, 3, line)
    assert str(error).startswith(f"{source}:3: ")
    assert said in str(error)


@pytest.mark.parametrize(
    ("line", "said"), [case for case in LINES if case[1] != "first line only"]
)  # fmt: skip
def test_a_bad_first_line_is_named_though_it_may_be_the_head(tmp_path, line, said):
    source = put(tmp_path / "kb.jsonl", line.encode() + b"\n" + GOOD)
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source, 1)
    assert said in str(error)


# -- bytes ------------------------------------------------------------------------------

# -- files and folders ------------------------------------------------------------------


def test_a_folder_without_entities_says_so(tmp_path):
    put(tmp_path / "kb/aliases.jsonl", b'{"alias": "a", "key": "b"}\n')
    error = complaint(tmp_path / "kb", tmp_path / "home")
    assert error.path == tmp_path / "kb"
    assert "without entities.jsonl" in str(error)


def test_entities_that_are_a_folder_are_no_entities(tmp_path):
    (tmp_path / "kb/entities.jsonl").mkdir(parents=True)
    assert "without entities.jsonl" in str(complaint(tmp_path / "kb", tmp_path / "home"))


@pytest.mark.parametrize("name", ["aliases", "triples", "redirects", "forms"])
def test_a_bad_line_of_a_folder_is_told_with_its_file(tmp_path, name):
    put(tmp_path / "kb/entities.jsonl", GOOD)
    bad = put(tmp_path / f"kb/{name}.jsonl", b'{"key": "b"}\n{"key": 3}\n')
    error = complaint(tmp_path / "kb", tmp_path / "home")
    assert (error.path, error.line) == (bad, 2)


def test_the_head_belongs_into_the_entities_of_a_folder(tmp_path):
    put(tmp_path / "kb/entities.jsonl", GOOD)
    bad = put(tmp_path / "kb/aliases.jsonl", b'{"kgkit": {}}\n')
    error = complaint(tmp_path / "kb", tmp_path / "home")
    assert (error.path, error.line) == (bad, 1)
    assert "first line only" in str(error)


def test_two_entities_of_one_key_are_told_at_the_second(tmp_path):
    source = put(tmp_path / "kb.jsonl", GOOD + b'{"key": "b"}\n' + GOOD)
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source, 3)
    assert "the key 'acme'" in str(error)


def test_a_misspelt_file_of_a_folder_is_told(tmp_path):
    put(tmp_path / "kb/entities.jsonl", GOOD)
    put(tmp_path / "kb/alias.jsonl", b'{"alias": "b", "key": "acme"}\n')
    assert "alias.jsonl" in str(complaint(tmp_path / "kb", tmp_path / "home"))


# -- what the store cannot hold -----------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b'{"key": "a", "attributes": {"n": 123456789012345678901234567890}}',
        b'{"key": "a", "attributes": {"n": ' + b"[" * 2_000 + b"]" * 2_000 + b"}}",
        b'{"alias": "b", "key": "acme", "count": 1e39}',  # no 32-bit float holds it
        b'{"key": "a", "aliases": [{"text": "b", "count": 1e300}]}',
    ],
    ids=["whole number", "nesting", "count", "count of an entity"],
)
def test_what_the_store_cannot_hold_is_told_with_its_line(tmp_path, line):
    source = put(tmp_path / "kb.jsonl", GOOD + line + b"\n")
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source, 2)


@pytest.mark.parametrize(
    "head",
    [
        b'{"smoothing": -1}',
        b'{"smoothing": 1e308}',
        b'{"generator": "lema"}',
        b'{"inverses": {"p": "q", "r": "q"}}',
    ],
)
def test_a_head_that_cannot_be_is_told_with_its_line(tmp_path, head):
    source = put(tmp_path / "kb.jsonl", b'{"kgkit": ' + head + b"}\n" + GOOD)
    error = complaint(source, tmp_path / "home")
    assert (error.path, error.line) == (source, 1)


# -- the command line -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (GOOD + b'{"alias": "b"}\n', 2),
        (GOOD + b'{"key": "b", "colour": "red"}\n', 2),
        (GOOD + b"\0\n", 2),
        (GOOD + b"\xff\n", 2),
        (GOOD + b"\n" + b"x" * 50_000_000, 3),
        (b"", 1),
    ],
    ids=["short", "unknown field", "NUL", "UTF-8", "50 MB", "empty"],
)
def test_the_command_names_file_and_line_and_publishes_nothing(tmp_path, content, line):
    source = put(tmp_path / "kb.jsonl", content)
    ran = run("build-kb", "jsonl", source, "--name", "mine", "--home", tmp_path / "home")
    assert (ran.code, ran.out) == (1, "")
    first, *shown_text = ran.err.splitlines()
    assert first.startswith(f"error: {source}:{line}: ")
    assert len(shown_text) <= 1  # the line itself
    with pytest.raises(NotThere):
        kgkit.open_kb("mine", tmp_path / "home")
