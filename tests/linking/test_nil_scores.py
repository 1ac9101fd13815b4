"""What the score of a link without an entity says: with mentions of the KB, of a text, and of a tagger."""

import pytest

from kgkit.building import Alias, Entity
from kgkit.linking import Linker
from kgkit.tagging.mention_tagger import TaggedMention
from kgkit.types import Document, Mention
from tests.small_kb import build

TEXT = "Kim met Zoe."
RECORDS = [Entity("kim-1", "Kim"), Entity("kim-2", "Kim"), Alias("Kim", "kim-1", 3), Alias("Kim", "kim-2", 1)]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with build(tmp_path_factory.mktemp("kb"), RECORDS, smoothing=0.0) as opened:
        yield opened


def link(kb, *mentions, **settings):
    """Return the links of a text with its mentions, by their texts."""
    document = Document("d", TEXT, mentions=list(mentions))
    [linked] = Linker.open(kb, model="prior", nil=True, **settings)([document])
    return {each.text: each for each in linked.links}


def tagged(start, end, score):
    return TaggedMention(start, end, TEXT[start:end], type="PER", score=score)


@pytest.mark.parametrize("score", [1.0, 0.7, 0.25])
def test_a_name_that_the_kb_lacks_has_the_score_of_the_tagger(kb, score):
    links = link(kb, tagged(8, 11, score))
    assert links["Zoe"].nil and links["Zoe"].entity is None and links["Zoe"].candidates == []
    assert links["Zoe"].score == pytest.approx(score, abs=1e-6)


def test_below_the_threshold_the_score_is_the_rest_of_the_taggers(kb):
    [candidate, *_] = link(kb, tagged(0, 3, 0.8))["Kim"].candidates
    assert candidate.score == pytest.approx(0.8 * 0.75, abs=1e-6)
    nil = link(kb, tagged(0, 3, 0.8), threshold=0.9)["Kim"]
    assert nil.nil and nil.score == pytest.approx(0.8 - 0.8 * 0.75, abs=1e-6)
    assert nil.candidates[0].score == candidate.score


def test_a_link_and_nil_share_the_score_of_the_tagger(kb):
    linked, nil = (link(kb, tagged(0, 3, 0.4), threshold=bound)["Kim"] for bound in (0.0, 0.99))
    assert linked.score + nil.score == pytest.approx(0.4, abs=1e-6)


@pytest.mark.parametrize("mention", [Mention(0, 3, "Kim"), tagged(0, 3, 1.0)])
def test_without_a_score_of_the_mention_nil_is_1_less_the_best_candidate(kb, mention):
    assert link(kb, mention, threshold=0.9)["Kim"].score == pytest.approx(0.25, abs=1e-6)


def test_mentions_of_the_text_and_of_a_tagger_stand_side_by_side(kb):
    links = link(kb, Mention(0, 3, "Kim"), tagged(8, 11, 0.6), threshold=0.9)
    assert links["Kim"].score == pytest.approx(0.25, abs=1e-6)
    assert links["Zoe"].score == pytest.approx(0.6, abs=1e-6)


def test_no_score_of_nil_is_negative(kb):
    scores = [
        link(kb, tagged(0, 3, share), threshold=1.0)["Kim"].score for share in (0.0, 1e-7, 1 / 3, 0.999999)
    ]
    assert all(score >= 0 for score in scores) and scores == sorted(scores)
