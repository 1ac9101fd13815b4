"""Relations in sentences: the file of SemEval-2010 task 8, and its official score counted by hand."""

import pytest

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.relations import Relation, read_relations, score_relations

FILE = """1\t"The <e1>dog</e1> chewed the <e2>bone</e2>."
Instrument-Agency(e2,e1)
Comment: why not

2\t"A <e2>box</e2> holds the "old" <e1>key</e1>"
Content-Container(e1,e2)

3\t"No <e1>relation</e1> to the <e2>rest</e2>."
Other
Comment:
"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.txt").write_text(FILE, newline="\r\n")
    return tmp_path / "x.txt"


def test_names_stand_where_their_tags_stood(path):
    found = list(read_relations(path))
    assert [one.text for one in found] == [
        "The dog chewed the bone.", 'A box holds the "old" key', "No relation to the rest.",
    ]  # fmt: skip
    spans = [(one.text[slice(*one.first)], one.text[slice(*one.second)]) for one in found]
    assert spans == [("dog", "bone"), ("key", "box"), ("relation", "rest")]
    labels = ["Instrument-Agency(e2,e1)", "Content-Container(e1,e2)", "Other"]
    assert [one.label for one in found] == labels and [one.id for one in found] == ["1", "2", "3"]


def test_a_file_without_gold_is_read(tmp_path):
    (tmp_path / "x").write_text('7\t"<e1>a</e1> <e2>b</e2>"\n8\t<e1>c</e1> <e2>d</e2>\n')
    found = list(read_relations(tmp_path / "x"))
    assert [(one.id, one.text, one.label) for one in found] == [("7", "a b", None), ("8", "c d", None)]
    with pytest.raises(UsageError, match="instance 7 has no relation"):
        score_relations(found, {})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no instance in it"),
        ('1\t"a <e1>b</e1> c"\nOther\n', "x:1: expected one name in <e1>"),
        ('1\t"<e1>a</e1> <e1>b</e1> <e2>c</e2>"\nOther\n', "x:1: expected one name in <e1>"),
        ('1\t"</e1>a<e1> <e2>c</e2>"\nOther\n', "x:1: expected one name in <e1>"),
        ('1\t"a <e1> </e1> <e2>c</e2>"\nOther\n', "x:1: a name is empty"),
        ('1\t"<e1>a</e1> <e2>c</e2>"\nOthers\n', "x:2: expected an instance"),
        ('1\t"<e1>a</e1> <e2>c</e2>"\nOther\nOther\n', "x:3: expected an instance"),
        ("Other\n", "x:1: expected an instance"),
        (
            2 * '7\t"<e1>a</e1> <e2>c</e2>"\nOther\n',
            "x:3: two examples have the id '7', those of line 1 and 3",
        ),
    ],
)
def test_what_is_no_such_file_is_told_with_its_line(tmp_path, content, told):
    (tmp_path / "x").write_text(content)
    with pytest.raises(SourceError, match=told):
        list(read_relations(tmp_path / "x"))
    with pytest.raises(NotThere):
        list(read_relations(tmp_path / "y"))


def instances(*labels):
    return [Relation(str(n), "a b", (0, 1), (2, 3), label) for n, label in enumerate(labels)]


def test_the_score_is_the_mean_over_relations_and_a_wrong_direction_is_wrong():
    gold = instances("A(e1,e2)", "A(e2,e1)", "A(e1,e2)", "B(e1,e2)", "B(e1,e2)", "Other")
    answers = {"0": "A(e1,e2)", "1": "A(e1,e2)", "2": "Other", "3": "B(e1,e2)", "5": "B(e2,e1)"}
    found = score_relations(gold, answers)
    assert found.f1 == {"A": pytest.approx(2 * 1 / (2 + 3)), "B": pytest.approx(2 * 1 / (2 + 2))}
    assert found.macro_f1 == pytest.approx((0.4 + 0.5) / 2)
    assert found.accuracy == pytest.approx(2 / 6) and found.instances == 6


def test_relations_that_the_gold_does_not_have_are_not_averaged():
    assert score_relations(instances("A(e1,e2)", "Other"), {"0": "A(e1,e2)", "1": "C(e1,e2)"}).macro_f1 == 1
    assert score_relations([], {}).macro_f1 == 0
    with pytest.raises(UsageError, match="'A' is no relation"):
        score_relations([], {"0": "A"})


def test_the_files_of_the_task_are_read_whole(shared_data):
    folder = shared_data / "semeval2010_task8"
    train, test = (
        list(read_relations(folder / f"{name}.TXT.xz")) for name in ("TRAIN_FILE", "TEST_FILE_FULL")
    )
    assert (len(train), len(test)) == (8_000, 2_717)
    assert len({one.label for one in train}) == 19
    every = [*train, *test]
    assert all(one.text[slice(*span)].strip() for one in every for span in (one.first, one.second))
    assert not any("<e" in one.text for one in every)
    assert score_relations(test, {one.id: one.label for one in test}).macro_f1 == 1
