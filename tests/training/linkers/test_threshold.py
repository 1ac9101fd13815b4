"""The threshold with the highest F1 on documents that were held out, beside trying all of them by hand."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from kgkit.building import Alias, Entity
from kgkit.evaluation.el_files import GoldDocument
from kgkit.linking import Linker
from kgkit.training.linkers.threshold import choose_threshold
from kgkit.types import Document, Link, LinkedDocument, Mention
from tests.small_kb import build

WORDS = "abcdef"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    records = [record for word in WORDS for record in (Entity(word, word), Alias(word, word))]
    with build(tmp_path_factory.mktemp("kb"), records) as opened:
        yield opened


class ScriptedLinker:
    """A linker that gives each letter of a text a link to itself, with a score by its position."""

    def __init__(self, kb, scores):
        self.kb, self.scores, self.mentions = kb, scores, []

    def __call__(self, documents):
        for document in documents:
            self.mentions.append(document.mentions)
            links = [
                Link(at, at + 1, word, self.kb.name, word, None, word, score, False, [])
                for at, (word, score) in enumerate(zip(document.text, self.scores[document.id], strict=True))
            ]
            yield LinkedDocument(document.id, document.text, "scripted", links)


def gold(name, text, entities):
    """Return a document whose letters mean these entities; None is NIL."""
    mentions = [Mention(at, at + 1, letter) for at, letter in enumerate(text)]
    return GoldDocument(Document(name, text, mentions=mentions), list(entities))


def choose(kb, *rows):
    """Return the threshold of documents as (entities, scores), which have the letters `abcdef` as text."""
    documents = [gold(str(at), WORDS[: len(row[0])], row[0]) for at, row in enumerate(rows)]
    return choose_threshold(ScriptedLinker(kb, {str(at): row[1] for at, row in enumerate(rows)}), documents)


def test_links_that_are_wrong_and_less_sure_are_cut_off(kb):
    chosen = choose(kb, (["a", "b", None, None], [0.9, 0.8, 0.305, 0.2]))
    assert chosen.value == 0.31
    assert chosen.score.f1 == 1.0 and chosen.score.documents == 1


def test_of_equal_scores_the_lowest_threshold_is_chosen(kb):
    assert choose(kb, (["a", "b"], [0.9, 0.8])).value == 0.0


def test_a_link_at_the_threshold_stays(kb):
    assert choose(kb, (["a", None], [0.5, 0.49])).value == 0.5


def test_the_score_is_over_all_mentions_of_all_documents(kb):
    short = (["a", None, None], [0.4, 0.6, 0.6])  # alone it would have a threshold of 0
    several = (["a", "b", "c", "d", "e", None], [0.9, 0.9, 0.9, 0.9, 0.9, 0.5])
    assert choose(kb, short).value == 0.0
    chosen = choose(kb, short, several)
    assert chosen.value == 0.61 and chosen.score.documents == 2


def test_where_no_link_is_correct_the_documents_are_counted_all_the_same(kb):
    chosen = choose(kb, ([None, None], [0.9, 0.1]), (["b"], [0.3]))
    assert (chosen.value, chosen.score.f1, chosen.score.documents) == (0.0, 0.0, 2)


def test_without_documents_the_threshold_is_0(kb):
    chosen = choose(kb)
    assert chosen.value == 0.0 and chosen.score.documents == 0


def test_the_linker_looks_for_mentions_itself_and_progress_counts_documents(kb):
    calls = []
    linker = ScriptedLinker(kb, {"x": [0.5], "y": [0.5]})
    choose_threshold(linker, [gold("x", "a", "a"), gold("y", "b", "b")], lambda *call: calls.append(call))
    assert linker.mentions == [None, None]
    assert calls == [("linking what is held out", 1, 0), ("linking what is held out", 2, 0)]


def test_a_document_keeps_its_gold_mentions(kb):
    document = gold("x", "ab", "ab")
    before = msgspec.json.encode(document)
    choose_threshold(Linker(kb), [document])
    assert msgspec.json.encode(document) == before


hundredths = st.integers(0, 99).map(lambda number: number / 100)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.booleans(), hundredths), min_size=1, max_size=6))
def test_no_threshold_has_a_higher_f1(kb, links):
    chosen = choose(
        kb, ([word if correct else None for word, (correct, _) in zip(WORDS, links, strict=False)],
             [score for _, score in links]),
    )  # fmt: skip
    gold_count = sum(correct for correct, _ in links)

    def f1(threshold):
        above = [correct for correct, score in links if score >= threshold]
        return 2 * sum(above) / max(1, len(above) + gold_count)

    best = max(f1(step / 100) for step in range(100))
    assert f1(chosen.value) == pytest.approx(best) == pytest.approx(chosen.score.f1)
    assert all(f1(step / 100) < best - 1e-12 for step in range(round(100 * chosen.value)))


def test_the_f1_of_a_comparison_is_of_thresholds_that_are_best_on_the_other_documents(kb):
    one, other = (["a", None], [0.9, 0.6]), (["b", None], [0.3, 0.2])
    chosen = choose(kb, one, other)
    # The best threshold of the first is 0.61, which loses all of the second; that of the second, 0.21, cuts
    # nothing off the first.
    assert chosen.held_out_f1 == pytest.approx(2 * 1 / (2 + 0 + 1 + 1))
    assert chosen.held_out_f1 < chosen.score.f1
    assert choose(kb, one).held_out_f1 == pytest.approx(2 / 3)  # of one document: without a threshold
    assert choose(kb, one).score.f1 == 1.0
