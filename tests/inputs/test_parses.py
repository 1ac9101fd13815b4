"""Phrases of texts from files of trees: which sentence a tree is of, and files that are no such files."""

import gzip
import re
import zipfile

import pytest

from kgkit.errors import NotThere, SourceError, UsageError
from kgkit.inputs import parses
from kgkit.inputs.maps import PhraseSpan
from kgkit.inputs.parses import ParsedSentences, SpelledText, read_trees
from tests.inputs.test_maps import TREEBANK

DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ eats)) (. .))"
CAT = "(S (NP (NNS Cats)) (VP (MD ca) (RB n't) (VP (VB bark))) (. .))"


def spans(text, phrases):
    """Return the text of each phrase with its level."""
    return [(text[phrase.first : phrase.end], phrase.level) for phrase in phrases]


# -- sentences ----------------------------------------------------------------


def test_a_sentence_has_the_phrases_of_its_tree():
    text = "The dog eats."
    assert spans(text, ParsedSentences([DOG]).phrases(text)) == [
        ("The dog", 1), ("eats", 1), ("The dog eats.", 2),
    ]  # fmt: skip


def test_each_sentence_of_a_text_has_its_own_tree_at_its_own_position():
    parsed, text = ParsedSentences([DOG, CAT]), "The dog eats. Cats can't bark."
    assert spans(text, parsed.phrases(text))[2:] == [
        ("The dog eats.", 2), ("Cats", 1), ("bark", 1), ("can't bark", 2), ("Cats can't bark.", 3),
    ]  # fmt: skip


def test_words_may_be_cut_in_another_way_and_white_space_is_not_compared():
    parsed = ParsedSentences([CAT])
    for text in ("Cats can't bark.", "Cats ca n't  bark .", " Cats\tcan't bark. "):
        assert len(parsed.phrases(text)) == 4, text
        assert spans(text, parsed.phrases(text))[0] == ("Cats", 1)


@pytest.mark.parametrize("text", ['"Go (up/down)"', "“Go (up/down)”", "`` Go ( up/down ) ''"])
def test_brackets_and_quotes_are_those_of_the_penn_treebank(text):
    tree = r"(S (`` ``) (VP (VB Go) (PRN (-LRB- -LRB-) (RP up\/down) (-RRB- -RRB-))) ('' ''))"
    [inner, verb, root] = ParsedSentences([tree]).phrases(text)
    start, end = inner[:2]
    assert text[start:end].replace(" ", "") == "(up/down)" and inner.level == 1
    assert (verb.level, root) == (2, PhraseSpan(0, len(text), 3))


def test_spelled_characters_have_the_span_that_they_have_in_the_text():
    assert SpelledText.of("a ``b").spans == [(0, 1), (2, 4), (4, 5)]
    assert SpelledText.of(" \n") == SpelledText("", [])


def test_of_a_sentence_that_comes_twice_the_last_tree_holds():
    flat = "(S (DT The) (NN dog) (VBZ eats) (. .))"
    parsed = ParsedSentences([DOG, flat])
    assert len(parsed) == 1 and parsed.phrases("The dog eats.") == [PhraseSpan(0, 13, 1)]


def test_a_sentence_without_a_tree_has_no_phrases_and_is_warned_of_once(caplog):
    parsed = ParsedSentences([DOG], "my.trees")
    assert parsed.phrases("The cat eats. The dog eats.") == [
        PhraseSpan(14, 21, 1), PhraseSpan(22, 26, 1), PhraseSpan(14, 27, 2),
    ]  # fmt: skip
    assert parsed.phrases("Birds sing.") == [] and parsed.phrases("") == []
    [record] = caplog.records
    assert record.getMessage().startswith("my.trees has no tree of the sentence 'The cat eats.'")


def test_a_tree_says_where_a_sentence_ends_that_seems_to_end_earlier(caplog):
    tree = "(S (NP (NNP James) (NNP A.) (NNP Talcott)) (VP (VBZ eats)) (. .))"
    text = "The dog eats. James A. Talcott eats. The dog eats."
    phrases = ParsedSentences([DOG, tree]).phrases(text)
    assert [name for name, _ in spans(text, phrases)][3:5] == ["James A. Talcott", "eats"]
    assert len(phrases) == 9 and not caplog.records


# -- files --------------------------------------------------------------------


def test_a_tree_may_have_several_lines_and_a_line_several_trees(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text(f"\n( (S (NP (DT The)\n  (NN\n dog))\n (VP (VBZ eats)) (. .)) )\n{CAT} {DOG}\n")
    trees = [*read_trees(path)]
    assert len(trees) == 3 and trees[1:] == [CAT, DOG]
    assert [phrase.level for phrase in ParsedSentences([trees[0]]).phrases("The dog eats.")] == [1, 1, 2, 3]
    assert len(ParsedSentences.read(path)) == 2


def test_a_file_may_be_compressed(tmp_path):
    path = tmp_path / "trees.gz"
    path.write_bytes(gzip.compress(DOG.encode()))
    assert len(ParsedSentences.read(path).phrases("The dog eats.")) == 3


@pytest.mark.parametrize(("content", "sentence", "line"), [
    ("The dog eats.\n", "expected trees in brackets, and nothing between", 1),
    (f"{DOG}\nnoise {CAT}\n", "expected trees in brackets, and nothing between", 2),
    (f"{DOG})\n", "expected trees in brackets, and nothing between", 1),
    (f"{DOG}\n(S (NN dog)\n", "the last tree has no end", 2),
    (f"{DOG}\n{CAT} noise\n", "expected trees in brackets, and nothing between", 2),
])  # fmt: skip
def test_files_with_something_else_are_refused_with_their_line(tmp_path, content, sentence, line):
    path = tmp_path / "trees.txt"
    path.write_text(content)
    with pytest.raises(SourceError, match=sentence) as caught:
        ParsedSentences.read(path)
    assert caught.value.line == line and caught.value.path == path


def test_a_file_without_a_tree_or_no_file_is_refused(tmp_path):
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(SourceError, match="no tree in it"):
        ParsedSentences.read(tmp_path / "empty")
    with pytest.raises(NotThere, match="no file"):
        ParsedSentences.read(tmp_path / "trees")
    with pytest.raises(UsageError, match="a tree lacks 1 closing brackets"):
        ParsedSentences(["(S (NN dog)"])


def test_a_tree_without_an_end_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(parses, "_MAX_TREE", 100)
    path = tmp_path / "trees"
    path.write_text("(S (NN dog)\n" * 30)
    with pytest.raises(SourceError, match="a tree is longer than 100 characters") as caught:
        [*read_trees(path)]
    assert caught.value.line < 15


@pytest.mark.skipif(not TREEBANK.is_file(), reason="the sample of the Penn Treebank is not there")
def test_sentences_of_a_treebank_are_found_by_their_text(tmp_path):
    with zipfile.ZipFile(TREEBANK) as archive:
        (tmp_path / "wsj.mrg").write_bytes(archive.read("treebank/combined/wsj_0003.mrg"))
        raw = archive.read("treebank/raw/wsj_0003").decode().replace(".START", "")
    parsed = ParsedSentences.read(tmp_path / "wsj.mrg")
    trees = [*read_trees(tmp_path / "wsj.mrg")]
    sentences = [" ".join(line.split()) for line in re.split(r"\n\s*\n?", raw) if line.strip()]
    matches = [sentence for sentence in sentences if parsed.phrases(sentence)]
    assert len(parsed) == len(trees) >= 25 and len(matches) >= 0.9 * len(sentences)
    # The root has all words, but where the file has two sentences on a line.
    roots = [max(phrases, key=lambda phrase: phrase.level) for phrases in map(parsed.phrases, matches)]
    covers_all = [root[:2] == (0, len(sentence)) for root, sentence in zip(roots, matches, strict=True)]
    assert sum(covers_all) >= 0.8 * len(matches)
