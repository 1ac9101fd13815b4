"""Relations in sentences: the file of TACRED, made by hand, and its official score counted by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.relations import Relation
from kgkit.evaluation.tacred import TacredScore, read_tacred, score_tacred


def record(**changes):
    return {
        "id": "e7",
        "docid": "D1",
        "relation": "org:founded_by",
        "token": ["Ann", "Lee", "-LRB-", "40", "-RRB-", "founded", "Acme", "-LSB-", "1", "-RSB-", "."],
        "subj_start": 6,
        "subj_end": 6,
        "obj_start": 0,
        "obj_end": 1,
        "subj_type": "ORGANIZATION",
        "obj_type": "PERSON",
        "stanford_pos": ["NNP", "NNP"],
    } | changes


@pytest.fixture
def read(tmp_path):
    def read_records(*records):
        (tmp_path / "x.json").write_text(json.dumps(records))
        return list(read_tacred(tmp_path / "x.json"))

    return read_records


def test_the_subject_is_the_first_name_and_the_object_the_second(read):
    (found,) = read(record())
    assert found == Relation(
        "e7", "Ann Lee ( 40 ) founded Acme [ 1 ] .", (23, 27), (0, 7),
        "org:founded_by", "ORGANIZATION", "PERSON",
    )  # fmt: skip
    assert found.text[slice(*found.first)] == "Acme" and found.text[slice(*found.second)] == "Ann Lee"


def test_brackets_are_brackets_again_and_only_where_a_token_is_one(read):
    tokens = "-LRB- -RRB- -LSB- -RSB- -LCB- -RCB- -lrb- a-LRB-".split()
    (found,) = read(record(token=tokens, subj_start=0, subj_end=5, obj_start=7, obj_end=7))
    assert found.text == "( ) [ ] { } -lrb- a-LRB-"
    assert [found.text[slice(*span)] for span in (found.first, found.second)] == ["( ) [ ] { }", "a-LRB-"]


def test_a_file_without_gold_or_types_is_read(read):
    bare = {key: value for key, value in record().items() if key not in ("relation", "subj_type", "obj_type")}
    (found,) = read(bare)
    assert (found.label, found.first_type, found.second_type) == (None, "", "")
    with pytest.raises(UsageError, match="instance e7 has no relation: score on a file with gold"):
        score_tacred([found], {})


tokens = st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1), min_size=1)


@given(tokens, st.data())
def test_a_name_is_its_tokens_joined(tmp_path_factory, tokens, data):
    places = st.integers(0, len(tokens) - 1)
    (subject, subject_end), (name, name_end) = spans = [
        sorted((data.draw(places), data.draw(places))) for _ in range(2)
    ]
    path = tmp_path_factory.getbasetemp() / "tacred.json"
    ends = {"subj_start": subject, "subj_end": subject_end, "obj_start": name, "obj_end": name_end}
    path.write_text(json.dumps([record(token=tokens, **ends)]))
    (found,) = read_tacred(path)
    for (begin, end), span in zip(spans, (found.first, found.second), strict=True):
        assert found.text[slice(*span)] == " ".join(tokens[begin : end + 1])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([], "x: no instance in it: the list is empty"),
        ({}, "x: expected a JSON list of instances of TACRED: .*object"),
        ([{"id": "a"}], r"x: expected a JSON list of instances of TACRED: .*`\$\[0\]`"),
        ([record(), record()], "x: two examples have the id 'e7', those of instance 1 and 2: each needs"),
        ([record(id="")], "x: instance 1 has an empty id: each needs its own"),
        (
            [record(subj_end=11)],
            r"x: instance 1 \(e7\): the subject is tokens 6 to 11, expected places of 0 to 10",
        ),
        ([record(obj_start=2)], r"x: instance 1 \(e7\): the object is tokens 2 to 1, expected places"),
        ([record(obj_start=-1)], r"x: instance 1 \(e7\): the object is tokens -1 to 1, expected places"),
        ([record(token=[" "] * 7)], r"x: instance 1 \(e7\): the subject is nothing but white space"),
    ],
)
def test_what_is_no_such_file_is_told_with_its_instance(tmp_path, content, told):
    (tmp_path / "x").write_text(json.dumps(content))
    with pytest.raises(SourceError, match=told):
        list(read_tacred(tmp_path / "x"))
    with pytest.raises(NotThere):
        list(read_tacred(tmp_path / "y"))


def test_what_is_not_utf_8_is_told(tmp_path):
    (tmp_path / "x").write_bytes(json.dumps([record()]).encode().replace(b"Acme", b"Acm\xe9"))
    with pytest.raises(SourceError, match="expected a JSON list"):
        list(read_tacred(tmp_path / "x"))


def instances(*labels):
    return [Relation(str(n), "a b", (0, 1), (2, 3), label) for n, label in enumerate(labels)]


def test_the_score_is_over_all_relations_together_and_no_relation_is_no_answer():
    gold = instances(
        "per:age", "per:age", "per:title", "per:title", "no_relation", "no_relation", "no_relation"
    )
    answers = {"0": "per:age", "1": "per:title", "2": "no_relation", "4": "per:age", "5": "no_relation"}
    # Answers that are a relation: 0, 1, 4, of which 0 is right; to be found: 0, 1, 2, 3.
    assert score_tacred(gold, answers) == TacredScore(
        pytest.approx(1 / 3), pytest.approx(1 / 4), pytest.approx(2 / 7), 7
    )


def test_where_nothing_was_told_or_is_there_the_score_is_0():
    assert score_tacred(instances("per:age", "no_relation"), {}) == TacredScore(0, 0, 0, 2)
    assert score_tacred(instances("no_relation"), {"0": "per:age"}) == TacredScore(0, 0, 0, 1)
    assert score_tacred([], {}) == TacredScore(0, 0, 0, 0)
