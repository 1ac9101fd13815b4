"""A list of dictionaries as the source of a build."""

import numpy as np
import pytest

import kgkit
from kgkit.errors import SourceError, UsageError
from kgkit.kb import differences

RECORDS = [
    {"key": "acme", "label": "Acme", "aliases": ["Acme Inc."]},
    {"key": "bert", "label": "Bert", "attributes": {"age": np.int64(7)}},
    {"subject": "bert", "relation": "works_for", "object": "acme"},
]


def test_a_list_of_dictionaries_is_built_as_the_file_of_them_is(tmp_path):
    lines = tmp_path / "mine.jsonl"
    lines.write_text(
        '{"key": "acme", "label": "Acme", "aliases": ["Acme Inc."]}\n'
        '{"key": "bert", "label": "Bert", "attributes": {"age": 7}}\n'
        '{"subject": "bert", "relation": "works_for", "object": "acme"}\n'
    )
    kgkit.build_kb("jsonl", lines, name="file", home=tmp_path)
    built = kgkit.build_kb("jsonl", RECORDS, name="mine", home=tmp_path)
    assert built.manifest.source.path == "" and built.manifest.source.name == "records"
    assert kgkit.diff("file", "mine", home=tmp_path) == []
    assert kgkit.build_kb("jsonl", RECORDS, name="mine", home=tmp_path).build == built.build


def test_a_list_of_dictionaries_is_added(tmp_path):
    kgkit.build_kb("jsonl", RECORDS, name="mine", home=tmp_path)
    more = [{"key": "carl", "label": "Carl"}]
    added = kgkit.add_to_kb("mine", more, home=tmp_path)
    assert kgkit.add_to_kb("mine", more, home=tmp_path).build == added.build
    with kgkit.open_kb("mine", tmp_path) as kb:
        assert [entity.key for entity in kb] == ["acme", "bert", "carl"]
        assert list(differences(kb, kb)) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            [{"key": "a"}, {"key": "b", "lable": "B"}],
            r"^record 2: there is no field 'lable'; did you mean 'label'",
        ),
        ([{"key": "a"}, {"key": "b", "label": {1, 2}}], r"^record 2: "),
        (
            [{"key": "a", "attributes": {"of": object()}}],
            r"^record 1 cannot be written as JSON: it holds a object",
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_named_by_its_number(tmp_path, source, message):
    with pytest.raises(SourceError, match=message):
        kgkit.build_kb("jsonl", source, home=tmp_path)


@pytest.mark.parametrize(
    ("builder", "source", "message"),
    [
        ("jsonl", {"key": "a"}, "is one dictionary: give a list"),
        ("jsonl", [{"key": "a"}, "b"], "number 2 is a str"),
        ("spo", [{"key": "a"}], "read by a builder of JSON lines: 'jsonl'"),
    ],
)
def test_what_is_no_list_of_dictionaries_is_refused(tmp_path, builder, source, message):
    with pytest.raises(UsageError, match=message):
        kgkit.build_kb(builder, source, home=tmp_path)


@pytest.mark.parametrize("source, what", [([], "list"), ((), "list"), ("", "text")])
def test_an_empty_source_is_said_to_be_empty(tmp_path, source, what):
    with pytest.raises(kgkit.errors.UsageError, match=f"empty {what}"):
        kgkit.build_kb("jsonl", source, name="x", home=tmp_path)
