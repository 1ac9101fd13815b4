"""JSON whose fields are nested deeper than any reader follows: one error, with file and line."""

import pytest

from kgkit.building import find_builder
from kgkit.errors import SourceError
from kgkit.evaluation import el_files, facts, task_formats
from kgkit.evaluation.tasks import find_task
from tests.cli_helpers import read_documents

DEEP = 2_000 * "[" + 2_000 * "]"


def entities(path):
    return find_builder("jsonl").observe(path, "")


READERS = [  # a reader, a sound line
    (lambda path: read_documents([path], "jsonl"), '{"text": "dog"}'),
    (entities, '{"key": "a"}'),
    (el_files.read_gold_documents, '{"doc_id": "a", "tokens": ["a"], "mentions": []}'),
    (facts.read_facts, '{"subject": "a", "relation": "b", "object": "c"}'),
    (facts.read_templates, '{"relation": "b", "template": "[X] is [Y]"}'),
    (
        task_formats.read_types,
        '{"annot_id": "1", "mention_span": "a", "left_context_token": [], "right_context_token": []}',
    ),
    (task_formats.read_wic, '{"text": "Word: a. Sentence 1: a b Sentence 2: a c", "label": 1}'),
    (find_task("classification").read, '{"text": "a", "label": "b"}'),
]


@pytest.mark.parametrize(("read", "line"), READERS)
def test_a_field_that_is_nested_too_deeply_is_told_with_its_line(read, line, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(f'{line}\n{line[:-1]}, "ignored": {DEEP}}}\n')
    with pytest.raises(SourceError) as caught:
        [*read(path)]
    assert caught.value.path == path and caught.value.line == 2
    assert len(str(caught.value).splitlines()) <= 2


def test_a_list_that_is_nested_too_deeply_is_told_with_its_file(tmp_path):
    path = tmp_path / "data.json"
    path.write_text(f'[{{"ignored": {DEEP}}}]')
    with pytest.raises(SourceError) as caught:
        [*task_formats.read_relations(path)]
    assert caught.value.path == path


def test_attributes_that_could_be_stored_but_not_read_from_everywhere_are_refused(tmp_path):
    path = tmp_path / "data.jsonl"
    for depth, sound in ((150, True), (250, False), (900, False)):
        path.write_text(
            '{"key": "a"}\n{"key": "b", "attributes": {"x": ' + depth * "[" + depth * "]" + "}}\n"
        )
        if sound:
            assert [record.key for record in entities(path)] == ["a", "a", "b", "b"]
        else:
            with pytest.raises(SourceError, match="nested too deeply") as caught:
                [*entities(path)]
            assert caught.value.line == 2
