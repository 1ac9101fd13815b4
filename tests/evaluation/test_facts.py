"""Facts as sentences with a name hidden: files of facts and templates, spans, and ranks scored by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.evaluation.facts import (
    ClozeQuestion,
    Fact,
    cloze_questions,
    fact_of,
    read_facts,
    read_templates,
)

TEMPLATES = {
    "P19": "[X] was born in [Y] .",
    "P36": "The capital of [X] is [Y] .",
    "P1923": "[Y] was in [X] .",
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


def lines_of(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_facts_are_read_in_either_form(path):
    lama = {"uuid": "7", "sub_label": "Ada", "predicate_id": "P19", "obj_label": "London", "evidences": [{}]}
    plain = {"subject": "Italy", "relation": "P36", "object": "Rome", "sub_label": "ignored"}
    path.write_text(lines_of(lama, plain))
    assert list(read_facts(path)) == [Fact("Ada", "P19", "London"), Fact("Italy", "P36", "Rome")]


def test_a_decoded_line_is_the_fact_that_its_file_would_give(path):
    record = {"sub_label": "Ada", "pred": "/people/place_of_birth", "obj_label": "London", "sub_w": None}
    path.write_text(lines_of(record))
    assert [fact_of(record)] == list(read_facts(path)) == [Fact("Ada", "place_of_birth", "London")]
    with pytest.raises(UsageError, match=r"expected subject, relation and object.*'Ada'"):
        fact_of({"sub_label": "Ada"})
    with pytest.raises(UsageError, match=r"not a fact: .*\$\.subject"):
        fact_of({"subject": 1})


def test_templates_are_read_in_the_order_of_the_file(path):
    path.write_text(lines_of(*({"relation": n, "template": t, "type": "N-1"} for n, t in TEMPLATES.items())))
    assert list(read_templates(path).items()) == list(TEMPLATES.items())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "x: no fact in it"),
        ("[]\n", "x:1: not a fact: .*array"),
        (lines_of({"subject": 1}), r"x:1: not a fact: .*\$\.subject"),
        (
            lines_of({"sub_label": "a", "relation": "P1", "obj_label": "b"}),
            "x:1: expected subject, relation and",
        ),
        (
            lines_of({"subject": " ", "relation": "P1", "object": "b"}),
            "x:1: expected subject, relation and object",
        ),
    ],
)
def test_what_is_no_fact_is_told_with_its_line(path, content, told):
    path.write_text(content)
    with pytest.raises(SourceError, match=told):
        list(read_facts(path))
    path.unlink()
    with pytest.raises(NotThere):
        list(read_facts(path))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "x: no template in it"),
        (lines_of({"relation": "P1"}), "x:1: not a template: .*`template`"),
        (lines_of({"relation": "", "template": "[X] [Y]"}), "x:1: an empty relation"),
        (lines_of(*[{"relation": "P1", "template": "[X] [Y]"}] * 2), "x:2: a second template of 'P1'"),
        (lines_of({"relation": "P1", "template": "[X] is"}), r"x:1: expected one \[X\] for the subject"),
        (lines_of({"relation": "P1", "template": "[X] [Y] [X]"}), r"x:1: expected one \[X\] for the subject"),
    ],
)
def test_what_is_no_template_is_told_with_its_line(path, content, told):
    path.write_text(content)
    with pytest.raises(SourceError, match=told):
        read_templates(path)
    path.unlink()
    with pytest.raises(NotThere):
        read_templates(path)


def test_a_fact_gives_a_sentence_for_its_subject_and_one_for_its_object():
    assert cloze_questions(
        [Fact("Ada", "P19", "London"), Fact("Cup", "P1923", "Italy")], TEMPLATES
    ).instances == [
        ClozeQuestion("1.subject", "P19", "Ada was born in London .", (0, 3), "subject", (0, 3)),
        ClozeQuestion("1.object", "P19", "Ada was born in London .", (16, 22), "object", (0, 3)),
        ClozeQuestion("2.subject", "P1923", "Italy was in Cup .", (13, 16), "subject", (13, 16)),
        ClozeQuestion("2.object", "P1923", "Italy was in Cup .", (0, 5), "object", (13, 16)),
    ]


def test_facts_without_a_template_are_counted_by_relation():
    facts = [Fact("a", name, "b") for name in ("P9", "P19", "P8", "P9")]
    found = cloze_questions(facts, TEMPLATES)
    assert [one.id for one in found.instances] == ["2.subject", "2.object"]
    assert list(found.without_template.items()) == [("P8", 1), ("P9", 2)]
    assert cloze_questions([], TEMPLATES) == ([], {})


names = st.text(min_size=1) | st.sampled_from(["[X]", "[Y]", "a [Y] b"])
wording = st.text().filter(lambda text: "[X]" not in text and "[Y]" not in text)


@given(st.tuples(names, names), st.tuples(wording, wording, wording), st.booleans())
def test_the_span_of_what_is_hidden_is_the_name(pair, wordings, turned):
    before, between, after = wordings
    places, order = (("[Y]", "[X]"), pair[::-1]) if turned else (("[X]", "[Y]"), pair)
    template = f"{before}{places[0]}{between}{places[1]}{after}"
    found = cloze_questions([Fact(pair[0], "P1", pair[1])], {"P1": template}).instances
    assert {one.text for one in found} == {f"{before}{order[0]}{between}{order[1]}{after}"}
    assert tuple(one.text[slice(*one.span)] for one in found) == pair
    assert [one.hidden for one in found] == ["subject", "object"]


def test_what_cannot_be_hidden_is_told():
    with pytest.raises(UsageError, match=r"the template of 'P1' is '\[X\] is': it needs one \[X\]"):
        cloze_questions([Fact("a", "P1", "b")], {"P1": "[X] is"})
    with pytest.raises(UsageError, match=r"fact 2 has an empty name, which cannot be hidden: .*object=''"):
        cloze_questions([Fact("a", "P19", "b"), Fact("a", "P19", "")], TEMPLATES)


def test_the_facts_of_lama_are_read_whole(shared_data):
    folder = shared_data / "lama"
    templates = read_templates(folder / "relations.jsonl")
    assert len(templates) == 46
    facts = [fact for path in sorted((folder / "TREx").glob("*.jsonl*")) for fact in read_facts(path)]
    assert len(facts) == 22_881 and len({fact.relation for fact in facts}) == 28
    instances, without_template = cloze_questions(facts, templates)
    assert len(instances) == 2 * 22_881 and without_template == {}
    assert all(
        (one.text[slice(*one.span)], two.text[slice(*two.span)]) == (fact.subject, fact.object)
        for fact, one, two in zip(facts, instances[::2], instances[1::2], strict=True)
    )
    del templates["P19"]
    assert cloze_questions(facts, templates).without_template == {
        "P19": sum(fact.relation == "P19" for fact in facts)
    }
