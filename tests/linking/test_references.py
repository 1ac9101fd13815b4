"""What words mean that refer back, by what was linked before them."""

import pytest

from kgkit.building import Alias, Entity, Triple
from kgkit.errors import UsageError
from kgkit.linking import Linker
from kgkit.linking.references import ReferenceConfig, References
from tests.small_kb import build

RECORDS = [
    Entity("biden", "Joe Biden", types=("person",)), Entity("harris", "Kamala Harris", types=("PER",),
           attributes={"gender": "female"}),
    Entity("senate", "the Senate", types=("organization",)), Entity("person.n.01", "person"),
    Entity("lawyer", "lawyer"), Entity("clinton", "Clinton"), Entity("王", "王先生"), Entity("人", "人"),
    *(Alias(surface, key) for surface, key in [
        ("Biden", "biden"), ("Joe Biden", "biden"), ("Kamala Harris", "harris"), ("Senate", "senate"),
        ("Clinton", "clinton"), ("王先生", "王"),
    ]),
    Triple("lawyer", "hypernym", "person.n.01"), Triple("clinton", "instance_hypernym", "lawyer"),
    Triple("王", "义原", "人"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS) as kb:
        yield kb


def told(kb, text, config=None):
    [linked] = Linker.open(kb, model="prior")([text])
    return [(link.text, link.entity) for link in References([kb], config)(linked).links]


def test_a_pronoun_means_who_was_named_before(kb):
    assert told(kb, "Biden wins election 2020. He is joining with Kamala Harris.") == [
        ("Biden", "biden"), ("He", "biden"), ("Kamala Harris", "harris"),
    ]  # fmt: skip


def test_a_pronoun_agrees_with_what_is_known_of_gender(kb):
    assert told(kb, "Kamala Harris met Biden. He smiled, she left.") == [
        ("Kamala Harris", "harris"), ("Biden", "biden"), ("He", "biden"), ("she", "harris"),
    ]  # fmt: skip


def test_the_first_of_the_nearest_sentence_is_meant(kb):
    assert told(kb, "Clinton left. Biden met Clinton. His plane was late.")[-1] == ("His", "biden")


def test_what_is_no_person_is_it(kb):
    assert told(kb, "Biden left the Senate. It was late, and he knew.") == [
        ("Biden", "biden"), ("Senate", "senate"), ("It", "senate"), ("he", "biden"),
    ]  # fmt: skip
    assert told(kb, "Biden left. It rained.") == [("Biden", "biden")]


@pytest.mark.parametrize(("text", "meant"), [
    ("Clinton smiled. He left.", "clinton"),  # an instance of a kind of person, as WordNet has it
    ("王先生走了。他很高兴。", "王"),  # beside 人, as HowNet has it
])  # fmt: skip
def test_persons_are_known_by_what_they_are_a_kind_of(kb, text, meant):
    assert told(kb, text)[-1][1] == meant and len(told(kb, text)) == 2


def test_a_character_that_is_part_of_another_word_is_no_pronoun(kb):
    assert told(kb, "王先生走了，其他人都在弹吉他。") == [("王先生", "王")]
    assert told(kb, "王先生走了，他在弹吉他。") == [("王先生", "王"), ("他", "王")]


def test_a_pronoun_may_follow_its_name_without_a_space(kb):
    assert told(kb, "王先生他走了。") == [("王先生", "王"), ("他", "王")]


def test_a_name_cut_short_means_the_whole_one(kb):
    assert told(kb, "Kamala Harris won. Later Harris thanked all, harris or not.") == [
        ("Kamala Harris", "harris"), ("Harris", "harris"),
    ]  # fmt: skip


def test_nobody_is_meant_where_nobody_was_named_or_it_is_long_ago(kb):
    assert told(kb, "He met Biden.") == [("Biden", "biden")]
    assert told(kb, "王先生走了。他们很高兴。") == [("王先生", "王")]
    long_ago = "Biden left. It rained. It snowed. He slept."
    assert ("He", "biden") not in told(kb, long_ago)
    assert ("He", "biden") in told(kb, long_ago, ReferenceConfig(sentences=3))
    with pytest.raises(UsageError, match="sentences is -1; it is 0 or more"):
        ReferenceConfig(sentences=-1)


def test_a_new_link_says_what_the_old_one_says(kb):
    [linked] = Linker.open(kb, model="prior")(["Biden left. He slept."])
    first, second = References([kb])(linked).links
    assert (second.start, second.end, second.score, second.label, second.kb) == (
        12, 14, first.score, first.label, first.kb,
    )  # fmt: skip
    assert second.candidates == [] and not second.nil
