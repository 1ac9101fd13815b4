"""The view of a text: pieces, links, candidates and what their scores are made of."""

import math

import pytest

from kgkit.serving.page.addresses import address
from kgkit.serving.page.text_views import MAX_LISTED, part_shares, text_view
from kgkit.types import Entity, Link, LinkCandidate, LinkedDocument
from tests.serving.page.html_reader import Page

ENTITIES = {
    "dog": Entity("dog", "Dog", description="barks", kind="animal"),
    "bank.n": Entity("bank.n", "bank", types=("place", "building")),
    "run.v": Entity("run.v", "run", pos="v", kind="synset"),
}


def link(text, surface, entity, *candidates, score=0.5, begin=0):
    start = text.index(surface, begin)
    return Link(
        start, start + len(surface), surface, "kb", entity, None, entity and ENTITIES[entity].label, score,
        entity is None, list(candidates), "", {}, "",
    )  # fmt: skip


def candidate(key, score, **parts):
    return LinkCandidate(key, 0.5, score, None, key, parts or None)


def view_of(text, *links):
    return text_view(LinkedDocument("1", text, "model", [*links]), ENTITIES.get)


def test_pieces_and_mentions_make_the_text_again():
    text = "A dog runs to the bank."
    view = view_of(text, link(text, "dog", "dog"), link(text, "runs", "run.v"), link(text, "bank", "bank.n"))
    assert "".join(piece["text"] for piece in view["pieces"]) == text
    assert [piece["text"] for piece in view["pieces"] if piece["link"]] == ["dog", "runs", "bank"]
    assert [item["number"] for item in view["links"]] == [1, 2, 3]


def test_of_links_that_overlap_the_first_is_marked_and_all_are_listed():
    text = "the dog bank"
    view = view_of(text, link(text, "dog bank", "dog"), link(text, "bank", "bank.n"))
    assert [piece["text"] for piece in view["pieces"]] == ["the ", "dog bank"]
    assert len(view["links"]) == 2


def test_types_have_colors_and_a_legend_where_there_are_several():
    text = "dog runs bank"
    view = view_of(text, link(text, "dog", "dog"), link(text, "runs", "run.v"), link(text, "bank", "bank.n"))
    assert [item["type"] for item in view["links"]] == ["animal", "verb", "place"]
    assert list(view["legend"]) == ["animal", "place", "verb"]
    assert len(set(view["legend"].values())) == 3
    assert all(item["color"].split()[0] == view["legend"][item["type"]] for item in view["links"])


def test_of_many_links_the_first_are_listed_and_the_marks_of_the_others_lead_to_their_entities():
    text = "dog " * (MAX_LISTED + 2)
    links = [
        link(text, "dog", "dog", candidate("dog", 1.0), begin=4 * index) for index in range(MAX_LISTED + 1)
    ]
    view = view_of(text, *links, link(text, "dog", None, begin=4 * len(links)))
    assert len(view["links"]) == MAX_LISTED + 2 and view["listed"] == view["links"][:MAX_LISTED]
    last, further, nil = view["links"][-3:]
    assert (last["target"], len(last["candidates"])) == (f"#candidates-{MAX_LISTED}", 1)
    assert (further["target"], further["candidates"]) == (address("/entity", kb="kb", key="dog"), [])
    assert nil["target"] == ""
    assert sum(piece["link"] is not None for piece in view["pieces"]) == len(view["links"])


def test_an_entity_that_has_gone_is_shown_by_its_key():
    text = "dog"
    gone = Link(0, 3, "dog", "kb", "wolf", None, "", 0.5, False, [candidate("wolf", 1.0)], "", {}, "")
    [item] = view_of(text, gone)["links"]
    assert (item["name"], item["type"], item["candidates"][0]["meaning"]) == ("wolf", "", "")


def test_a_part_alone_gives_shares_by_its_exponentials():
    rows = [
        candidate("a", 0.9, prior=math.log(0.6), context=2.0),
        candidate("b", 0.1, prior=math.log(0.2), context=2.0),
    ]
    assert part_shares(rows, "prior") == pytest.approx([0.75, 0.25])
    assert part_shares(rows, "context") == pytest.approx([0.5, 0.5])
    assert part_shares(rows, "coherence") is None
    assert part_shares([], "prior") is None
    assert part_shares([candidate("a", 1.0)], "prior") is None


def test_shares_of_very_large_logarithms_are_numbers():
    rows = [candidate("a", 1.0, context=1_000.0), candidate("b", 0.0, context=-1_000.0)]
    assert part_shares(rows, "context") == [1.0, 0.0]


def test_candidates_have_meanings_and_the_parts_of_their_scores():
    text = "dog"
    rows = (
        candidate("dog", 0.9, prior=-0.1, coherence=0.5),
        candidate("bank.n", 0.1, prior=-2.0, coherence=0.5),
    )
    [item] = view_of(text, link(text, "dog", "dog", *rows, score=0.9))["links"]
    assert item["parts"] == ("prior", "coherence")
    assert [each["meaning"] for each in item["candidates"]] == ["barks", ""]
    assert item["candidates"][0]["shares"][1] is None
    assert item["candidates"][0]["shares"][2] == pytest.approx(0.5)


# -- the view itself --------------------------------------------------------


def test_a_mention_leads_to_its_candidates_in_a_list(read):
    page = read(address("/", text="The dog saw a cat.", kb="facts"))
    targets = [link for link in page.links if link.startswith("#candidates")]
    assert targets == ["#candidates-1", "#candidates-2"]
    assert page.classes("details") == ["link", "link"]
    assert "2 links by prior" in page.words


def test_coherence_adds_a_column(read):
    alone = read(address("/", text="dog cat mouse", kb="facts"))
    together = read(address("/", text="dog cat mouse", kb="facts", coherence="graph"))
    assert ["Candidate", "Score", "Prior"] in alone.rows
    assert ["Candidate", "Score", "Prior", "Coherence"] in together.rows
    assert "by prior+graph" in together.words


def test_a_least_score_drops_links(read):
    address_of = {score: address("/", text="mark", kb="strange", threshold=score) for score in ("", "0.9")}
    assert "1 link by prior" in read(address_of[""]).words
    assert "0 links by prior" in read(address_of["0.9"]).words


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "none"}, "no model served for 'facts' named 'none'"),
        ({"threshold": "2"}, "threshold is '2'; it is a number from 0 to 1"),
        ({"coherence": "trees"}, "coherence is 'trees'; it is 'graph' or empty"),
    ],
)
def test_a_wrong_field_is_named_beside_the_form_which_stays_filled_in(read, fields, message):
    page = read(address("/", text="a dog", kb="facts", **fields), 422)
    assert message in page.words
    assert "a dog" in page.text
    assert [values["role"] for values in page.named("div") if "role" in values] == ["alert"]


def test_a_text_that_is_too_long_is_refused(browser):
    answer = browser.post("/", data={"text": "dog " * 6_000, "kb": "facts"})
    assert answer.status_code == 413
    assert "characters: 24,000, of 20,000" in answer.text


def test_a_posted_text_leads_to_its_address(browser):
    fields = {"text": "A dog\r\nand a cat.", "kb": "facts"}
    answer = browser.post("/", data=fields, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == address("/", text="A dog\nand a cat.", kb="facts")


def test_a_text_too_long_for_an_address_is_linked_at_once(browser):
    answer = browser.post("/", data={"text": "A dog. " * 1_000, "kb": "facts"}, follow_redirects=False)
    assert answer.status_code == 200
    assert "1000 links" in answer.text


def test_the_page_of_a_long_text_says_what_it_lists_and_stays_small(browser):
    answer = browser.post("/", data={"text": "A dog. " * 2_800, "kb": "facts"})
    page = Page(answer.text)
    assert "2800 links" in page.text and "The first 1,000 links are listed" in page.text
    assert len([name for name in page.ids if name.startswith("candidates-")]) == MAX_LISTED
    assert len([each for each in page.links if each == "/entity?kb=facts&key=dog"]) >= 1_800
    short = browser.post("/", data={"text": "A dog. " * MAX_LISTED, "kb": "facts"})
    assert "links are listed" not in short.text
    assert len(answer.content) < 2 * len(short.content)


def test_a_text_keeps_its_first_line_end_and_its_white_space(read):
    page = read(address("/", text="\n  dog\n\n cat ", kb="facts"))
    # The form's text begins after the line end that HTML drops.
    assert "\n\n  dog\n\n cat " in page.text


def test_control_characters_of_a_text_are_replaced(browser):
    answer = browser.get(address("/", text="a\x00dog\x1b cat", kb="facts"))
    assert answer.status_code == 200
    assert "\x00" not in answer.text
    assert "�" in answer.text


def test_a_name_stands_under_its_mention_where_it_says_more_and_has_room(read):
    under = [tag for tag, _ in read(address("/", text="mark", kb="strange")).elements if tag == "rt"]
    assert under == ["rt"]
    # Of the same name nothing, but for letters in another case.
    assert not [tag for tag, _ in read(address("/", text="DOG", kb="facts")).elements if tag == "rt"]
