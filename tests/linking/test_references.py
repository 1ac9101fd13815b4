"""Short names: what they mean by the longer names of the same text."""

import pytest

import kgkit
from kgkit.building import Alias, Entity, Triple
from kgkit.linking import Linker
from kgkit.linking.references import References
from tests.small_kb import build

ENTITIES = [
    Entity("harris", "Kamala Harris", kind="Person"), Entity("clinton", "Bill Clinton", types=("PER",)),
    Entity("hope", "Hope Lindqvist", kind="person"), Entity("vries", "Hendrik de Vries", kind="human"),
    Entity("kowal", "Ada Kowal", kind="person"), Entity("other-kowal", "Jan Kowal", kind="person"),
    Entity("merkel", "Angela Merkel"), Entity("politician", "politician"), Entity("person.n.01", "person"),
    Entity("york", "New York", kind="place"), Entity("wfp", "World Food Programme"),
    Entity("sw", "South Wharf"),
    Entity("byron", "Lord Byron", kind="person"), Entity("rex", "Rex Stout", kind="person"),
    Entity("beer", "stout"), Entity("graf", "Steffi Graf", kind="person"),
    Entity("king", "Billie Jean King", kind="person"), Entity("major", "John Major", kind="person"),
    Entity("bishop", "Elizabeth Bishop", kind="person"), Entity("queen", "Ellery Queen", kind="person"),
    Entity("francis", "Pope Francis", kind="person"),
]  # fmt: skip
RECORDS = [
    *ENTITIES, *(Alias(entity.label, entity.key) for entity in ENTITIES),
    Triple("merkel", "instance_hypernym", "politician"), Triple("politician", "hypernym", "person.n.01"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS) as kb:
        yield kb


def short(kb, text):
    """Return the links that are added, as (text, entity)."""
    [linked] = Linker.open(kb, model="prior")([text])
    before = {(link.start, link.end) for link in linked.links}
    found = References([kb])(linked).links
    assert [link.start for link in found] == sorted(link.start for link in found)
    assert all(text[link.start : link.end] == link.text for link in found)
    return [(link.text, link.entity) for link in found if (link.start, link.end) not in before]


@pytest.mark.parametrize(("text", "added"), [
    ("Kamala Harris won. Harris thanked all, Kamala wept.", [("Harris", "harris"), ("Kamala", "harris")]),
    ("Harris won. We saw Kamala Harris in the hall.", [("Harris", "harris")]),
    ("Kamala Harris won. Mr Harris's speech, by Vice President Harris", []),  # perhaps another Vice
    ("Kamala Harris won. President Harris spoke.", [("Harris", "harris")]),
    ("Bill Clinton won. But Clinton slept.", [("Clinton", "clinton")]),
    ("Hendrik de Vries came. Ask de Vries. Jan Vries left.", []),
    ("Hendrik de Vries came. We ask de Vries, not Hendrik.", [("de Vries", "vries"), ("Hendrik", "vries")]),
    ("Angela Merkel came. Merkel sat.", [("Merkel", "merkel")]),  # a person by what is above its kind
    ("Lord Byron sat. Byron slept; the Lord knows.", [("Byron", "byron")]),
    ("Kamala Harris won. Ambassador Harris spoke, then Sergeant Harris.", [("Harris", "harris")] * 2),
    ("Bill Clinton sat. Aunt Clinton smiled.", []),
    ("Steffi Graf won. Then Graf wept.", [("Graf", "graf")]),
    ("Billie Jean King won. Then King wept.", [("King", "king")]),
    ("Billie Jean King won. The King and King Harald saw King play.", []),
    ("John Major rose. Nobody thanked Major.", [("Major", "major")]),
    ("John Major rose. Then Major Tom asked Major.", []),
    ("John Major rose. The Major slept, and the Prime Minister Major left.", []),
    ("Elizabeth Bishop wrote. We read Bishop.", [("Bishop", "bishop")]),
    ("Pope Francis came. All greeted Pope.", []),
    ("Ellery Queen wrote. We read Queen.", []),
    ("Kamala Harris won. Judge Harris and Major Harris spoke.", [("Harris", "harris")] * 2),
])  # fmt: skip
def test_the_first_or_last_name_of_a_person_means_that_person(kb, text, added):
    assert short(kb, text) == added


@pytest.mark.parametrize("text", [
    "Hillary Clinton met Bill Clinton. Clinton smiled.",
    "Bill Clinton sat. Clinton smiled. Chelsea Clinton came in.",
    "Ada Kowal and Jan Kowal ran. Kowal won.",
    "Bill Clinton died. Mrs Clinton wept.",
    "Bill Clinton came. Clinton Street is closed. Clinton slept.",
    "Bill Clinton knew the Harris family and a Clinton of the paintings.",
    "Bill Clinton came from Hillary\nClinton County.",
    "Kamala Harris met Pope Kamala. Kamala spoke.",
    "Kamala Harris read Kamala of Wessex and lived in Kamala.",
    "Kamala Harris saw @Harris and #Harris, Harris-like, harris.",
    "Hope Lindqvist came. Hope was lost.",
])  # fmt: skip
def test_a_name_that_somebody_or_something_else_may_have_stays_alone(kb, text):
    assert short(kb, text) == []


def test_a_word_is_a_name_inside_of_a_sentence(kb):
    assert short(kb, "Hope Lindqvist came. All hope that Hope stays.") == [("Hope", "hope")]


def test_pronouns_places_and_names_that_the_kb_has_are_left_alone(kb):
    assert short(kb, "Kamala Harris came. It rained. She left, and he knew her.") == []
    assert short(kb, "New York is large, and York is old.") == []
    assert short(kb, "Rex Stout wrote it. He drank stout, and Stout slept.") == []


def test_initials_mean_the_name_that_the_text_has_in_full(kb):
    assert short(kb, "The World Food Programme came. WFP lorries left.") == [("WFP", "wfp")]
    assert short(kb, "At South Wharf (SW) the SW quay is closed.") == [("SW", "sw"), ("SW", "sw")]
    assert short(kb, "SW (South Wharf) is closed.") == [("SW", "sw")]
    assert short(kb, "South Wharf has SW winds.") == []  # two letters say little
    assert short(kb, "WHO SAW WFP?\nThe World Food Programme came.") == []


def test_a_new_link_says_what_the_old_one_says_and_is_less_certain(kb):
    [linked] = Linker.open(kb, model="prior")(["Kamala Harris left. Harris slept."])
    first, second = References([kb])(linked).links
    assert (second.start, second.end, second.label, second.kb) == (20, 26, first.label, first.kb)
    assert 0.9 < second.score / first.score < 1 and second.candidates == [] and not second.nil


def test_german_genitives_are_names_cut_short_too(tmp_path):
    records = [{"key": "merkel", "label": "Angela Merkel", "kind": "Person"}]
    kgkit.build_kb("jsonl", records, name="people", home=tmp_path, language="de")
    with kgkit.open_kb("people", home=tmp_path) as kb:
        text = "Angela Merkel sprach. Alle lobten Merkels Rede."
        assert short(kb, text) == [("Merkels", "merkel")]
