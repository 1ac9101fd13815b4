"""The classes of errors: lower case, overlap, demonym, metonym, part of a name, rare sense."""

import pytest

from kgkit.evaluation import Labelled
from kgkit.evaluation.el import LinkOutcome, document_outcomes, score_document, score_outcomes
from kgkit.evaluation.el_causes import (
    CORRECT_KINDS,
    EntityFacts,
    error_cause,
    is_demonym,
    is_location,
    is_part_of_name,
)
from kgkit.evaluation.el_files import plain_title

TYPES = {
    "England": "GPE",
    "England team": "ORG",
    "Paris": "location|city",
    "Germany": "GPE",
    "Ford Motor": "ORG",
}
FACTS = EntityFacts(lambda title: title, lambda title: TYPES.get(title, ""), plain_title)


def cause(kind, surface="Name", entity="Gold", answer="Answer", *, type="", **priors):
    gold = None if kind in ("link_nowhere", "link_misplaced") else Labelled(0, len(surface), entity)
    link = None if kind in ("missed", "misplaced") else Labelled(0, len(surface), answer)
    return error_cause(LinkOutcome(kind, gold, link), surface, FACTS, type=type, priors=priors)


@pytest.mark.parametrize("kind", ["missed", "link_nowhere"])
def test_a_lower_case_letter_is_a_class_of_missed_mentions_and_superfluous_links(kind):
    assert cause(kind, "river") == "lower case"
    assert cause(kind, "River") == cause(kind, "42") == "other"


@pytest.mark.parametrize("kind", ["misplaced", "link_misplaced"])
def test_differing_boundaries_are_overlap_in_any_case(kind):
    assert cause(kind, "river") == "overlap"


@pytest.mark.parametrize("kind", ["wrong_choice", "no_candidate", "wrong_entity", "link_wrong"])
def test_a_wrong_entity_of_a_word_for_people_is_a_demonym(kind):
    assert cause(kind, "German", "Germany", "German language") == "demonym"


def test_a_location_instead_of_something_else_is_a_metonym():
    assert cause("wrong_choice", "England", "England team", "England") == "metonym"
    assert cause("wrong_choice", "England", "Unknown team", "England", type="ORG") == "metonym"
    # A location that is another location, and an entity whose type nobody knows, are none.
    assert cause("wrong_choice", "Paris", "Germany", "Paris") == "other"
    assert cause("wrong_choice", "Somewhere", "Unknown", "England") == "other"
    assert cause("wrong_choice", "England", "Unknown team", None, type="ORG") != "metonym"


def test_the_type_that_the_data_state_goes_before_that_of_the_entity():
    assert cause("wrong_choice", "England", "England team", "England", type="LOC") != "metonym"


def test_a_part_of_the_gold_name_is_a_class_of_its_own_even_without_a_link():
    assert cause("no_candidate", "Ford", "Ford Motor", "Henry") == "part of a name"
    assert cause("no_candidate", "Ford", "Ford Motor", None) == "part of a name"


def test_a_rare_sense_is_a_candidate_that_a_likelier_candidate_has_beaten():
    assert cause("wrong_choice", Gold=0.1, Answer=0.8) == "rare sense"
    assert cause("wrong_choice", Gold=0.8, Answer=0.1) == "other"
    assert cause("no_candidate", Answer=0.8) == "other"
    assert cause("wrong_choice", answer=None, Gold=0.1) == "other"


def test_a_link_on_a_nil_mention_has_no_class():
    assert cause("link_on_nil", "German", None, "Germany") == "other"


def test_demonyms_are_tried_before_parts_of_names():
    assert cause("wrong_choice", "German", "German team", "Germany", type="ORG", Germany=1.0) == "demonym"


@pytest.mark.parametrize("surface", ["German", "germans", "SWISS", "West Indian", "Dutch", "Yugoslavs"])
def test_words_for_people_are_recognised_in_every_case_and_number(surface):
    assert is_demonym(surface)


@pytest.mark.parametrize("surface", ["Germany", "Berlin", "", " ", "German Shepherd"])
def test_names_of_countries_are_no_words_for_people(surface):
    assert not is_demonym(surface)


@pytest.mark.parametrize(
    ("surface", "name", "expected"),
    [
        ("Ford", "Ford Motor Company", True),
        ("motor company", "Ford_Motor_Company", True),
        ("Ford Company", "Ford Motor Company", False),
        ("Ford", "Ford", False),
        ("Ford", "Ford (film)", False),
        ("Ford", "Fordham University", False),
        ("", "Ford Motor", False),
        ("Ford Motor Company", "Ford", False),
    ],
)
def test_a_part_of_a_name_is_some_of_its_words_in_a_row(surface, name, expected):
    assert is_part_of_name(surface, name) is expected


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        ("GPE", True),
        ("loc", True),
        ("Q27096213|Q43229", True),
        ("Q43229", False),
        ("PER", False),
        ("", False),
    ],
)
def test_types_of_locations_are_those_of_several_inventories(type, expected):
    assert is_location(type) is expected


# -- outcomes, which the score counts


GOLD = [
    Labelled(0, 2, "A"),
    Labelled(3, 5, None),
    Labelled(6, 9, "B"),
    Labelled(10, 12, "C"),
    Labelled(20, 22, None),
]
LINKS = [Labelled(0, 2, "X", ("X", "A")), Labelled(3, 5, "N"), Labelled(7, 9, "B"), Labelled(15, 17, "Z"),
         Labelled(20, 22, None)]  # fmt: skip


def test_each_mention_and_each_wrong_link_has_an_outcome():
    outcomes = [*document_outcomes(GOLD, LINKS)]
    starts = [(kind, gold and gold.start, link and link.start) for kind, gold, link in outcomes]
    assert starts == [
        ("wrong_choice", 0, 0), ("nil", 3, 3), ("misplaced", 6, None), ("missed", 10, None), ("nil", 20, 20),
        ("link_wrong", 0, 0), ("link_on_nil", 3, 3), ("link_misplaced", None, 7), ("link_nowhere", None, 15),
    ]  # fmt: skip


def test_a_correct_link_has_the_outcome_of_its_mention_only():
    [outcome] = document_outcomes([Labelled(0, 2, "A")], [Labelled(0, 2, "A")])
    assert outcome.kind in CORRECT_KINDS and outcome.gold == outcome.link


def test_the_score_is_the_count_of_the_outcomes():
    assert score_outcomes(document_outcomes(GOLD, LINKS)) == score_document(GOLD, LINKS)
