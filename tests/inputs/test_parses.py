"""Phrases of texts from files of trees: which sentence a tree is of, and files that are no such files."""

import gzip
import re
import zipfile
from pathlib import Path

import pytest

from kgkit.errors import NotThere, SourceError
from kgkit.inputs.maps import PhraseSpan
from kgkit.inputs.parses import ParsedSentences, read_trees

TREEBANK = Path(__file__).parents[3] / "shared" / "data" / "treebank" / "treebank.zip"

DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ eats)) (. .))"
CAT = "(S (NP (NNS Cats)) (VP (MD ca) (RB n't) (VP (VB bark))) (. .))"


@pytest.fixture
def parsed(tmp_path):
    def make(*trees):
        path = tmp_path / "trees.mrg"
        path.write_text("\n".join(trees))
        return ParsedSentences(path)

    return make


def spans(text, phrases):
    """Return the text of each phrase with its level."""
    return [(text[phrase.first : phrase.end], phrase.level) for phrase in phrases]


# -- trees ----------------------------------------------------------------------


def test_brackets_are_phrases_with_their_levels(tmp_path):
    eats = "(VP (VBZ eats) (NP (NP (DT a) (NN bone)) (PP (IN of) (NP (-NONE- *)))))"
    (tmp_path / "trees").write_text(f"( (S (NP-SBJ (DT The) (NN dog) ) {eats} (. .) ))")
    [(words, phrases)] = read_trees(tmp_path / "trees")
    assert words == "The dog eats a bone of .".split()
    assert [*map(tuple, phrases)] == [
        (0, 2, 1), (3, 5, 1), (5, 6, 1), (3, 6, 2), (2, 6, 3), (0, 7, 4), (0, 7, 5),
    ]  # fmt: skip


def test_a_tree_may_have_several_lines_and_a_line_several_trees(tmp_path):
    path = tmp_path / "trees.gz"
    path.write_bytes(gzip.compress(f"\n( (S (NP (DT The)\n  (NN\n dog)))\n)\n{CAT} {DOG}\n".encode()))
    assert [words for words, _ in read_trees(path)] == [
        ["The", "dog"], ["Cats", "ca", "n't", "bark", "."], ["The", "dog", "eats", "."],
    ]  # fmt: skip


@pytest.mark.parametrize(("content", "line"), [
    ("The dog eats.\n", 1),
    (f"{DOG}\nnoise {CAT}\n", 2),
    (f"{DOG})\n", 1),
    (f"{DOG}\n{CAT} noise\n", 2),
    ("(S\n" * 1_001, 1_001),
    (f"{DOG}\n(S (NN dog)\n", None),
    ("\n", None),
])  # fmt: skip
def test_files_with_something_else_are_refused_with_their_line(tmp_path, content, line):
    path = tmp_path / "trees.txt"
    path.write_text(content)
    with pytest.raises(SourceError) as caught:
        ParsedSentences(path)
    assert caught.value.line == line and caught.value.path == path
    with pytest.raises(NotThere):
        ParsedSentences(tmp_path / "trees")


# -- sentences ----------------------------------------------------------------


def test_each_sentence_of_a_text_has_its_own_tree_at_its_own_position(parsed):
    flat = "(S (DT The) (NN dog) (VBZ eats) (. .))"
    text = "The dog eats. Cats can't bark."
    assert spans(text, parsed(flat, DOG, CAT).phrases(text)) == [  # of equal sentences the last tree holds
        ("The dog", 1), ("eats", 1), ("The dog eats.", 2),
        ("Cats", 1), ("bark", 1), ("can't bark", 2), ("Cats can't bark.", 3),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["Cats can't bark.", "Cats ca n't  bark .", " Cats\tcan't bark. "])
def test_words_may_be_cut_in_another_way_and_white_space_is_not_compared(parsed, text):
    phrases = parsed(CAT).phrases(text)
    assert len(phrases) == 4 and spans(text, phrases)[0] == ("Cats", 1)


@pytest.mark.parametrize("text", ['"Go (up/down)"', "“Go (up/down)”", "`` Go ( up/down ) ''"])
def test_brackets_and_quotes_are_those_of_the_penn_treebank(parsed, text):
    tree = r"(S (`` ``) (VP (VB Go) (PRN (-LRB- -LRB-) (RP up\/down) (-RRB- -RRB-))) ('' ''))"
    [inner, verb, root] = parsed(tree).phrases(text)
    assert text[inner.first : inner.end].replace(" ", "") == "(up/down)" and inner.level == 1
    assert (verb.level, root) == (2, PhraseSpan(0, len(text), 3))


def test_a_sentence_without_a_tree_has_no_phrases_and_is_warned_of_once(parsed, caplog):
    sentences = parsed(DOG)
    phrases = [PhraseSpan(14, 21, 1), PhraseSpan(22, 26, 1), PhraseSpan(14, 27, 2)]
    assert sentences.phrases("The cat eats. The dog eats.") == phrases
    assert sentences.phrases("Birds sing.") == [] and sentences.phrases("") == []
    [record] = caplog.records
    assert "The cat eats." in record.getMessage()


def test_a_tree_says_where_a_sentence_ends_that_seems_to_end_earlier(parsed, caplog):
    tree = "(S (NP (NNP James) (NNP A.) (NNP Talcott)) (VP (VBZ eats)) (. .))"
    text = "The dog eats. James A. Talcott eats. The dog eats."
    phrases = parsed(DOG, tree).phrases(text)
    assert [name for name, _ in spans(text, phrases)][3:5] == ["James A. Talcott", "eats"]
    assert len(phrases) == 9 and not caplog.records


@pytest.mark.skipif(not TREEBANK.is_file(), reason="the sample of the Penn Treebank is not there")
def test_sentences_of_a_treebank_are_found_by_their_text(tmp_path):
    path = tmp_path / "wsj.mrg"
    with zipfile.ZipFile(TREEBANK) as archive:
        path.write_bytes(archive.read("treebank/combined/wsj_0003.mrg"))
        raw = archive.read("treebank/raw/wsj_0003").decode().replace(".START", "")
    tagged = re.findall(r"\(([^\s()]+) ([^\s()]+)\)", path.read_text())
    trees = [*read_trees(path)]
    assert [word for words, _ in trees for word in words] == [word for tag, word in tagged if tag != "-NONE-"]
    for _, phrases in trees:
        for phrase in phrases:
            below = [other.level for other in phrases if other[:2] != phrase[:2]
                     and phrase.first <= other.first and other.end <= phrase.end]  # fmt: skip
            assert phrase.level >= max(below, default=0) + 1
    sentences = [" ".join(line.split()) for line in re.split(r"\n\s*\n?", raw) if line.strip()]
    parsed = ParsedSentences(path)
    matches = [sentence for sentence in sentences if parsed.phrases(sentence)]
    assert len(trees) >= 25 and len(matches) >= 0.9 * len(sentences)
