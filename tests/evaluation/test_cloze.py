"""Cloze questions: forms of LAMA's files, filters by names, Hits@k by hand, numbers of questions in LAMA."""

import json

import pytest

from kgkit.errors import SourceError
from kgkit.evaluation.cloze import (
    ClozeGuess,
    NameQuestion,
    filtered,
    frequency_ranks,
    is_in_subject,
    name_questions,
    name_suggests,
    score_hits,
    score_subsets,
)
from kgkit.evaluation.facts import ClozeQuestion, Fact, cloze_questions, read_facts

WATCH = Fact("Apple Watch", "P176", "Apple")
MARAIS = Fact("Jean Marais", "P1412", "French")
VERNE = Fact("Jules Verne", "P103", "French")
QUESTIONS_LEFT = {  # of LAMA, by relation: all, and after the string match filter
    "date_of_birth": (1825, 1825), "place_of_birth": (2937, 2934), "place_of_death": (766, 766),
    "P101": (696, 685), "P103": (977, 975), "P106": (958, 958), "P108": (383, 382), "P127": (687, 451),
    "P1303": (949, 949), "P136": (931, 913), "P138": (645, 160), "P140": (473, 467), "P1412": (969, 969),
    "P159": (967, 843), "P176": (982, 191), "P178": (592, 366), "P19": (944, 933), "P20": (953, 944),
    "P264": (429, 428), "P27": (966, 945), "P31": (922, 564), "P364": (856, 841), "P39": (892, 878),
    "P407": (877, 834), "P413": (952, 952), "P449": (881, 848), "P463": (225, 225), "P495": (909, 892),
    "P527": (976, 804), "P740": (936, 910), "P937": (954, 950),
}  # fmt: skip


def test_the_forms_of_lama_are_read(tmp_path):
    records = [
        {"pred": "/people/person/place_of_birth", "sub_label": "Ada", "obj_label": "London", "sub_w": None,
         "sub": "/m/0", "masked_sentences": ["She was born in [MASK] ."]},
        {"predicate_id": "P19", "sub_label": "Ada", "obj_label": "London", "sub_uri": "Q7259"},
        {"sub_label": "Squad", "obj_label": "gold", "id": "1_0", "masked_sentences": ["The [MASK] color"]},
        {"masked_sentences": ["The Normans came from [MASK] ."], "obj_label": "France"},
        {"subject": "Ada", "relation": "P19", "object": "London", "subject_key": "Ada_Lovelace"},
    ]  # fmt: skip
    path = tmp_path / "x"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert list(read_facts(path)) == [
        Fact("Ada", "place_of_birth", "London", "/m/0"),
        Fact("Ada", "P19", "London", "Q7259"),
        Fact("", "Squad", "gold", "", "The [MASK] color"),
        Fact("", "Squad", "France", "", "The Normans came from [MASK] ."),
        Fact("Ada", "P19", "London", "Ada_Lovelace"),
    ]
    path.write_text(json.dumps({"sub_label": "Squad", "obj_label": "gold", "masked_sentences": ["no"]}))
    with pytest.raises(SourceError, match="x:1: expected subject, relation and object") as refused:
        list(read_facts(path))
    assert all(form in str(refused.value) for form in ("predicate_id", "Google-RE", "masked_sentences"))


def test_a_sentence_that_comes_masked_is_one_question_that_hides_every_mask():
    facts = [
        Fact("", "Squad", "gold", "", "The [MASK] color"),
        Fact("", "Squad", "Islam", "", "Of [MASK]ism: [MASK]."),
    ]
    assert cloze_questions(facts, {}).instances == [
        ClozeQuestion("1.object", "Squad", "The gold color", (4, 8), "object"),
        ClozeQuestion("2.object", "Squad", "Of Islamism: Islam.", (13, 18), "object", None, ((3, 8),)),
    ]
    assert [question.answer for question in cloze_questions(facts, {}).instances] == ["gold", "Islam"]
    assert [question.fact for question in cloze_questions(facts, {}).instances] == [0, 1]


# -- filters ----------------------------------------------------------------


def test_the_string_match_filter_knows_no_case():
    assert is_in_subject(WATCH) and is_in_subject(Fact("PINEAPPLES", "P176", "apple"))
    assert not is_in_subject(MARAIS) and not is_in_subject(Fact("", "Squad", "gold", "", "[MASK]"))


def test_names_are_asked_of_word_by_word_where_they_may_suggest_the_object():
    assert name_questions([WATCH, MARAIS, VERNE, MARAIS, Fact("Jean Marais", "P19", "Cherbourg")]) == [
        NameQuestion("Jean", "language"),
        NameQuestion("Marais", "language"),
        NameQuestion("Jules", "language"),
        NameQuestion("Verne", "language"),
        NameQuestion("Jean", "city"),
        NameQuestion("Marais", "city"),
    ]


def guesses_for(*facts, **words):
    return {question: words.get(question.name, ("none",)) for question in name_questions(facts)}


def test_a_name_suggests_the_object_among_its_three_likeliest_words():
    third, fourth = ("latin", "german", "french"), ("latin", "german", "greek", "french")
    assert name_suggests(MARAIS, guesses_for(MARAIS, Marais=third))
    assert not name_suggests(MARAIS, guesses_for(MARAIS, Marais=fourth))
    accented = Fact("Jean", "P103", "Français")
    assert name_suggests(accented, guesses_for(accented, Jean=("francais",)))
    assert not name_suggests(WATCH, {})


def test_what_the_filters_leave_is_lama_uhn_and_the_rest_is_its_complement():
    facts = [WATCH, MARAIS, VERNE, Fact("Ada", "P176", "Byron")]
    assert filtered(facts) == {"none": {0, 1, 2, 3}, "string": {1, 2, 3}, "easy": {0}}
    left = filtered(facts, guesses_for(*facts, Jean=("french",)))
    assert left == {"none": {0, 1, 2, 3}, "string": {1, 2, 3}, "names": {2, 3}, "easy": {0, 1}}


# -- scores -----------------------------------------------------------------


def test_hits_are_averaged_within_then_across_relations_and_over_all_questions():
    score = score_hits([("P1", 1), ("P1", 2), ("P1", 2), ("P2", 3)], (1, 2, 3))
    assert score.questions == 4
    assert score.relations == {"P1": (3, {1: 1 / 3, 2: 1, 3: 1}), "P2": (1, {1: 0, 2: 0, 3: 1})}
    assert score.macro == {1: pytest.approx(1 / 6), 2: 0.5, 3: 1}
    assert score.micro == {1: 0.25, 2: 0.75, 3: 1}
    assert score_hits([], (1,)) == (0, {1: 0}, {1: 0}, {})


def question(relation, answer, number=1):
    return ClozeQuestion(f"{number}.object", relation, answer, (0, len(answer)), "object")


def test_the_baseline_guesses_what_the_relation_has_most_often():
    answers = ("P1", "b"), ("P1", "a"), ("P1", "c"), ("P1", "c"), ("P2", "z")
    ranks = frequency_ranks(question(*each) for each in answers)
    assert ranks == [("P1", 3), ("P1", 2), ("P1", 1), ("P1", 1), ("P2", 1)]


def test_each_filter_is_scored():
    guesses = [
        ClozeGuess(question("P1", "a", number), rank, 1) for number, rank in enumerate((1, 5, 1), start=1)
    ]
    scores = score_subsets(guesses, {"none": {0, 1, 2}, "easy": {0}, "string": set()})
    assert [(one.filter, one.hits["vocabulary"].questions) for one in scores] == [
        ("none", 3), ("easy", 1), ("string", 0),
    ]  # fmt: skip
    assert [one.hits["vocabulary"].micro[1] for one in scores] == [pytest.approx(2 / 3), 1, 0]
    assert scores[0].hits["objects"].micro[1] == scores[0].hits["frequent"].micro[1] == 1


# -- LAMA -------------------------------------------------------------------


def test_the_string_match_filter_leaves_as_many_questions_of_lama_as_counted(shared_data):
    """Tables 10 to 12 of Poerner et al. (2020) are to have these numbers, for the 28 + 3 relations at hand.

    Its text says that the filter takes out up to 81 % of a relation.
    """
    folder, counts = shared_data / "lama", {}
    for path in sorted([*(folder / "TREx").iterdir(), *(folder / "Google_RE").iterdir()]):
        facts = list(read_facts(path))
        [relation] = {fact.relation for fact in facts}
        counts[relation] = len(facts), len(filtered(facts)["string"])
    assert counts == QUESTIONS_LEFT
    assert max(round(100 * (1 - left / whole)) for whole, left in counts.values()) == 81
    squad = list(read_facts(folder / "Squad" / "test.jsonl.xz"))
    assert len(cloze_questions(squad, {}).instances) == len(squad) == 305
    assert sum(bool(question.others) for question in cloze_questions(squad, {}).instances) == 3
