"""The text that a teacher reads, and the sentences that nothing is learnt from."""

import json

import pytest

from benchmarks.teaching_text import plain_lines, sentences_of_wic


def test_wikitext_is_written_as_plain_text_with_a_blank_line_for_a_heading():
    lines = [" = A title = \n", " Jun 's <unk> 1 @,@ 000 role @-@ players , who do n't play . \n", " More \n"]
    assert [*plain_lines(lines, 100)] == ["", "Jun's 1,000 role-players, who don't play.", "More"]
    assert len([*plain_lines(lines, 1)]) == 2  # the line that has the last word is whole


def test_sentences_of_wic_come_once():
    def line(first, second):
        return json.dumps({"text": f"Word: go. Sentence 1: {first} Sentence 2: {second}", "label": 0})

    assert sentences_of_wic([line("Go on .", "Go off ."), line("Go off .", "Gone .")]) == [
        "Go on .", "Go off .", "Gone .",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no two sentences"):
        sentences_of_wic([json.dumps({"text": "Word: go."})])
