"""Relations in sentences: the file of FewRel, made by hand."""

import json
import lzma

import pytest

from kgkit.errors import NotThere, SourceError
from kgkit.evaluation.examples import hold_out
from kgkit.evaluation.fewrel import is_fewrel, read_fewrel
from kgkit.evaluation.relations import Relation
from kgkit.evaluation.tasks import find_task

BRIDGE = {
    "tokens": [
        "The",
        "Blue",
        "Wonder",
        "spans",
        "the",
        "Elbe",
        ",",
        "and",
        "Blue",
        "Wonder",
        "is",
        "steel",
        ".",
    ],
    "h": ["blue wonder", "Q462297", [[1, 2], [8, 9]]],
    "t": ["elbe", "Q1644", [[5]]],
}
SONG = {"tokens": ["Ö", "sings", "ß"], "h": ["ß", "Q2", [[2]]], "t": ["ö", "Q10", [[0]]]}


@pytest.fixture
def put(tmp_path):
    def write(content):
        path = tmp_path / "x.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_the_head_is_the_first_name_and_the_tail_the_second_where_they_first_stand(put):
    path = put({"P177": [BRIDGE], "P364": [SONG, SONG]})
    assert is_fewrel(path)
    bridge, *songs = read_fewrel(path)
    text = "The Blue Wonder spans the Elbe , and Blue Wonder is steel ."
    assert bridge == Relation("P177-1", text, (4, 15), (26, 30), "P177", pair="Q1644 Q462297")
    assert [text[slice(*span)] for span in (bridge.first, bridge.second)] == ["Blue Wonder", "Elbe"]
    song = Relation("P364-1", "Ö sings ß", (8, 9), (0, 1), "P364", pair="Q10 Q2")
    assert songs == [song, song._replace(id="P364-2")]


def test_a_file_may_be_compressed_and_begin_with_a_relation_without_instances(tmp_path):
    path = tmp_path / "x.json.xz"
    path.write_bytes(lzma.compress(json.dumps({"P1": [], "P2": [SONG]}).encode()))
    assert is_fewrel(path) and [instance.label for instance in read_fewrel(path)] == ["P2"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"text": "a"}',
        '{"P1": ["tokens"]}',
        '{"P1": [{"text": "a"}]}',
        '8001\t"a"',
        '{"P1": []}',
    ],
)
def test_what_begins_otherwise_is_another_layout(content, put):
    assert not is_fewrel(put(content))


def changed(role, **values):
    if role is None:
        return BRIDGE | values
    return BRIDGE | {role: [BRIDGE[role][0], BRIDGE[role][1], values["spans"]]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"P1": [changed("h", spans=[])]}, r"instance P1-1: the head is tokens \[\], expected some"),
        ({"P1": [changed("t", spans=[[]])]}, r"the tail is tokens \[\], expected some"),
        (
            {"P1": [BRIDGE, changed("h", spans=[[1, 3]])]},
            r"P1-2: the head is tokens \[1, 3\], expected some that",
        ),
        ({"P1": [changed("t", spans=[[2, 1]])]}, r"tokens \[2, 1\], expected some that follow each other"),
        (
            {"P1": [changed("t", spans=[[12, 13]])]},
            "the tail is tokens 12 to 13, expected places of 0 to 12",
        ),
        ({"P1": [changed("h", spans=[[-1, 0]])]}, "the head is tokens -1 to 0, expected places of 0 to 12"),
        ({"P1": [changed(None, tokens=[" "] * 13)]}, "the head is nothing but white space"),
        ({"P1": [changed(None, tokens="text")]}, r"a JSON object of FewRel, .*: Expected `array`, got `str`"),
        ({"P1": [{"tokens": [], "h": ["a", "Q1", [[0]]]}]}, "missing required field `t`"),
        ({"P1": []}, "no instance in it: the object has no relation, or none has one"),
        ("{}", "no instance in it"),
        ('{"P1": [', "a JSON object of FewRel"),
        ('{"P1": ' + "[" * 5000, "a JSON object of FewRel"),
    ],
)
def test_what_is_no_instance_is_one_sentence(content, message, put):
    with pytest.raises(SourceError, match=message):
        list(read_fewrel(put(content)))


def test_a_file_that_is_not_there_is_so(tmp_path):
    for read in (is_fewrel, lambda path: next(read_fewrel(path))):
        with pytest.raises(NotThere):
            read(tmp_path / "none.json")


def test_instances_of_one_pair_of_entities_are_held_out_together(put):
    def instance(number, *, turned):
        names = ("h", ["a", f"Q{number}", [[0]]]), ("t", ["b", "Q0", [[1]]])
        roles = dict(names) if not turned else {"h": names[1][1], "t": names[0][1]}
        return {"tokens": ["a", "b"], **roles}

    relations = {"P1": [instance(number, turned=False) for number in range(1, 31)]}
    relations["P2"] = [instance(number, turned=True) for number in range(1, 31)]
    learn, held_out = hold_out(find_task("relation").read(put(relations)))
    assert (len(learn), len(held_out)) == (54, 6)
    assert not {example.group for example in learn} & {example.group for example in held_out}
    assert {example.gold for example in held_out} == {"P1", "P2"}
    without = [SONG | {"h": ["ß", "", [[2]]]}] * 30  # no keys of entities: each is a pair of its own
    examples = find_task("relation").read(put({"P1": without}))
    assert {example.group for example in examples} == {""} and len(hold_out(examples)[1]) == 3


def test_the_published_file_is_read(shared_data):
    instances = list(read_fewrel(shared_data / "fewrel" / "val_wiki.json.xz"))
    assert len(instances) == 11_200 and len({instance.label for instance in instances}) == 16
    assert instances[0].text[slice(*instances[0].first)] == "Cape Girardeau Bridge"
