"""The page of links beside gold: what it shows of each outcome, what filters read."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from kgkit.evaluation import Labelled
from kgkit.evaluation.el import document_outcomes
from kgkit.evaluation.el_causes import EntityFacts
from kgkit.evaluation.el_files import GoldMention, make_gold_document, plain_title
from kgkit.evaluation.el_report import (
    KINDS,
    MAX_CANDIDATES,
    NO_TYPE,
    REPORT_FOOT,
    report_head,
    report_section,
)
from kgkit.types import Link, LinkCandidate, LinkedDocument

TEXT = "Rhône leaves Lake Geneva at German noon , river ."
TYPES = {"Rhône": "river", "Lake": "GPE", "Geneva": "GPE"}
FACTS = EntityFacts(lambda title: title, lambda title: TYPES.get(title, ""), plain_title)


def candidate(entity, prior=0.5, score=0.5):
    return LinkCandidate(entity, prior, score, label=f"label of {entity}")


def link(start, end, entity, *candidates, score=0.5):
    rows = list(candidates) or ([candidate(entity)] if entity else [])
    return Link(start, end, TEXT[start:end], "kb", entity, None, entity or "", score, entity is None, rows)


def page(mentions, links, text=TEXT, describe=lambda entity: f"about {entity}"):
    gold = make_gold_document("doc & 1", text, [GoldMention(*mention) for mention in mentions])
    linked = LinkedDocument("doc & 1", text, "model", links)
    answers = [
        Labelled(each.start, each.end, each.entity, tuple(row.entity for row in each.candidates))
        for each in links
    ]
    outcomes = [*document_outcomes(gold.gold, answers, plain_title)]
    return "".join(report_section(gold, linked, outcomes, FACTS, describe))


class Elements(HTMLParser):
    """The elements with outcomes of a page, their attributes and their text."""

    def __init__(self, html):
        super().__init__()
        self.items, self.open, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        if "data-kind" in dict(attrs):
            self.items.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def outcomes_of(html):
    """Return (kind, cause, type) of each outcome that counts."""
    return [
        tuple(attributes[f"data-{name}"] for name in ("kind", "cause", "type"))
        for _, attributes in Elements(html).items
        if "data-count" in attributes
    ]


MENTIONS = [(0, 5, "Rhône"), (13, 24, "Lake Geneva", None, "LOC"), (28, 34, "Germany"), (35, 39, None)]
LINKS = [link(0, 5, "Rhône"), link(13, 17, "Lake"), link(28, 34, "German language"), link(42, 47, "River")]


def test_every_outcome_counts_once_with_its_class_and_type():
    assert sorted(outcomes_of(page(MENTIONS, LINKS))) == [
        ("link_misplaced", "overlap", "GPE"),
        ("link_nowhere", "lower case", NO_TYPE),
        ("misplaced", "overlap", "LOC"),
        ("nil", "correct", NO_TYPE),
        ("no_candidate", "demonym", NO_TYPE),
        ("right", "correct", "river"),
    ]


def test_the_text_is_complete_between_marks():
    html = page(MENTIONS, LINKS)
    marked = re.search(r'<div class="text">(.*?)</div>', html, re.DOTALL)[1]
    assert re.sub("<[^>]+>", "", marked) == TEXT
    # Of a mention and a link that overlap, the mention has the mark.
    assert ">Lake Geneva</mark>" in marked and ">Lake</mark>" not in marked


def test_an_error_is_a_row_with_gold_link_and_rejected_candidates():
    links = [
        link(
            28, 34, "German language", candidate("German language", 0.7, 0.9), candidate("Germany", 0.3, 0.1)
        )
    ]
    row = re.search("<tr data-kind.*</tr>", page([(28, 34, "Germany")], links))[0]
    cells = re.sub("<[^>]+>", "|", row)
    assert "German" in cells and "Germany" in cells and "German language (0.50)" in cells
    assert "<details><summary>1</summary>" in row
    assert row.count("about Germany") == 1 and "about German language" not in row
    assert KINDS["wrong_choice"] in row


def test_the_gold_entity_is_shown_among_the_rejected_however_late_it_comes():
    names = [f"E{number}" for number in range(30)]
    links = [link(28, 34, "E0", *(candidate(name) for name in names))]
    row = re.search("<tr data-kind.*</tr>", page([(28, 34, "E25")], links), re.DOTALL)[0]
    assert row.count("about E") == MAX_CANDIDATES + 1
    assert "about E25" in row and "<summary>29</summary>" in row


def test_nil_is_named_as_gold_and_as_link():
    html = page([(28, 34, None), (0, 5, "Rhône")], [link(28, 34, "X"), link(0, 5, None)])
    rows = [re.sub("<[^>]+>", "|", row) for row in re.findall("<tr data-kind.*?</tr>", html, re.DOTALL)]
    assert any("|NIL||X (0.50)|" in row for row in rows)
    assert any("|Rhône||NIL (0.50)|" in row for row in rows)


def test_a_document_without_errors_has_no_table():
    html = page([(0, 5, "Rhône")], [link(0, 5, "Rhône")])
    assert "<table" not in html and "0 of 1 outcomes are errors" in html
    assert "<mark" not in page([], [])


def test_texts_of_strangers_are_text_on_the_page():
    text = '<script>alert("x")</script> & "name"'
    links = [Link(0, 8, text[:8], "kb", '"><b>', None, "<i>", 0.5, False, [candidate("'<u>")])]
    html = page([(0, 8, "<b onclick='x'>", None, '"T<')], links, text, describe=lambda entity: "<s>")
    assert not {"<script>", "<b>", "<i>", "<u>", "<s>"} & set(re.findall("<[a-z]+>", html))
    assert Elements(html).items and text in "".join(Elements(html).texts)


def test_a_page_loads_nothing_and_every_element_is_closed():
    html = report_head("a <model>") + page(MENTIONS, LINKS) + REPORT_FOOT
    assert "default-src 'none'" in html and "a &lt;model&gt;" in html
    assert "http" not in html.replace("http-equiv", "")
    Elements(html)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser is installed")
def test_filters_hide_rows_that_do_not_match(tmp_path):
    """Slow: a browser is started."""
    (tmp_path / "report.html").write_text(report_head("m") + page(MENTIONS, LINKS) + REPORT_FOOT)
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    line = ["chromium", *options, "--dump-dom", f"file://{tmp_path / 'report.html'}#kind=misplaced"]
    dom = subprocess.run(line, capture_output=True, text=True, check=True, timeout=300).stdout
    assert "1 mentions and links in 1 documents" in dom
    assert '<button data-key="kind" aria-pressed="true" value="misplaced">' in re.sub(
        r'<button value="(\w+)" data-key="(\w+)" aria-pressed="(\w+)"',
        r'<button data-key="\2" aria-pressed="\3" value="\1"', dom,
    )  # fmt: skip
    hidden = re.findall(r'<tr data-kind="(\w+)"[^>]* hidden=""', dom)
    assert sorted(hidden) == ["link_misplaced", "link_nowhere", "no_candidate"]


def test_a_wrong_link_on_a_mention_is_drawn_once():
    mentions, links = (
        [(0, 5, "Rhône")],
        [link(0, 5, "River", candidate("River", 0.9), candidate("Rhône", 0.1))],
    )
    html = page(mentions, links)
    assert outcomes_of(html) == [("wrong_choice", "rare sense", "river")]
    assert html.count("<mark") == 1 and html.count("<tr data-kind") == 1


def test_outcomes_stand_in_the_order_of_the_text():
    html = page(list(reversed(MENTIONS)), list(reversed(LINKS)))
    rows = re.findall(r"<tr data-kind[^>]*><td>(.*?)</td>", html)
    assert [TEXT.index(surface) for surface in rows] == sorted(TEXT.index(surface) for surface in rows)
