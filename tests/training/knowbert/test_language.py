"""Batches that hide words or link mentions, losses, perplexity and recall: against loops of one text."""

import dataclasses
import json
import math

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from kgkit.encoder import Encoder
from kgkit.encoder.loading import load_as
from kgkit.errors import UsageError
from kgkit.evaluation.facts import ClozeQuestion
from kgkit.heads import EntityLinkerConfig, KARConfig, KnowBert
from kgkit.inputs import KnowBertReader, Knowledge
from kgkit.inputs.knowledge import knowledge_of
from kgkit.inputs.masking import NOTHING, hide, masking_of
from kgkit.inputs.passages import Passage
from kgkit.methods.cloze import recall_ranks
from kgkit.methods.cloze_opening import KnowBertClozeModel
from kgkit.methods.hidden_words import LanguageBatch, masked_batch, perplexity
from kgkit.training.knowbert.examples import (
    LinkingBatch,
    Mixture,
    language_batch,
    linking_batch,
    loss_of,
    read_linking_examples,
    score_examples,
)
from kgkit.training.linkers.labelled import labelled_senses, labelled_spans
from tests.knowbert_toys import links, senses, with_vectors
from tests.tiny_encoder import PIECES, WIDTH, WORDS, tiny_encoder

SIZE = 18
NULL = {"words": False, "places": True}
PASSAGES = [
    Passage((f"the {one} dog {other} in a big city with fruit",)) for one in WORDS[:8] for other in WORDS[:20]
]
PAIRS = [
    Passage(("a big dog barks", "the tree grows in the city"), True),
    Passage(("fruit", "many dogs and a tree"), False),
    Passage(("a company of the big city", "it is small"), False),
]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The encoder in a model with heads, and the two knowledge bases."""
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)
    torch.manual_seed(0)
    model, tokenizer, drawn = load_as(folder, "AutoModelForPreTraining", "cpu")
    assert drawn and all(name.startswith("cls.") for name in drawn)
    encoder = Encoder("tiny", folder, model.base_model, tokenizer, "float32")
    home = tmp_path_factory.mktemp("home")
    kbs = {name: with_vectors(home, name, encoder) for name in NULL}
    return model, encoder, {name: knowledge_of(kb, ("text",)) for name, kb in kbs.items()}


@pytest.fixture(scope="module")
def encoder(parts):
    return parts[1]


@pytest.fixture(scope="module")
def knowbert(parts):
    """One whose numbers are far from their beginnings, so that everything matters."""
    common = {"hidden": WIDTH, "width": 8, "stored": WIDTH, "heads": 2, "inner": 8, "scorer": 4, "mask": True}
    configs = {
        "words": EntityLinkerConfig(**common),
        "places": EntityLinkerConfig(**common, null=True, threshold=0.0, loss="margin"),
    }
    kars = {
        name: KARConfig(linker=config, layer=layer, heads=2, inner=8)
        for layer, (name, config) in enumerate(configs.items(), 1)
    }
    made = KnowBert(parts[0], kars).eval()
    drawn = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for kar in made.kars.values():
            for one in kar.parameters():
                one.normal_(std=0.5, generator=drawn)
    return made


@pytest.fixture(scope="module")
def reader(parts):
    return KnowBertReader(parts[1], parts[2], size=SIZE)


@pytest.fixture(scope="module")
def masking(encoder):
    return masking_of(encoder)


@pytest.fixture(scope="module")
def taught(parts, reader, tmp_path_factory):
    """Documents of both, by the name of the knowledge base."""
    folder = tmp_path_factory.mktemp("data")
    generators = {name: known.generator for name, known in parts[2].items()}
    words, places = generators["words"], generators["places"]
    return {
        "words": list(labelled_senses(words.kb, words, *senses(folder, 7))),
        "places": list(labelled_spans(places.kb, places, links(folder / "el.jsonl", 3))),
    }


@pytest.fixture(scope="module")
def lessons(taught, reader):
    return {
        name: list(read_linking_examples(some, reader, name, null=NULL[name]))
        for name, some in taught.items()
    }


def mixture(reader, masking, passages=PASSAGES, lessons=(), size=4, seed=0):
    null = frozenset(name for name, has in NULL.items() if has)
    return Mixture(reader, masking, passages, dict(lessons), null=null, size=size, seed=seed)


def numbers_of(item):
    """All numbers of a batch, by name."""
    found = dict(item.batch.inputs)
    for name, inputs in item.batch.knowledge.items():
        found |= {f"{name}.{part}": one for part, one in inputs._asdict().items() if one is not None}
    if isinstance(item, LinkingBatch):
        return found | {item.kb: item.gold}
    return found | {"labels": item.labels} | ({} if item.follows is None else {"follows": item.follows})


def same(one, other):
    left, right = numbers_of(one), numbers_of(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def texts_of(item, reader):
    """The texts of a batch as they were before something was hidden."""
    ids = item.batch.inputs["input_ids"]
    if isinstance(item, LanguageBatch):
        ids = torch.where(item.labels == NOTHING, ids, item.labels)
    ordinary = range(4, len(PIECES))
    return [" ".join(PIECES[one] for one in row if one in ordinary) for row in ids.tolist()]


def alone(item, row):
    """One text of a batch as a batch."""
    inputs = {name: one[row : row + 1] for name, one in item.batch.inputs.items()}
    knowledge = {
        name: one._replace(
            **{
                part: value if part in ("vectors", "hidden") else value[row : row + 1]
                for part, value in one._asdict().items()
                if value is not None and part != "hidden"
            }
        )
        for name, one in item.batch.knowledge.items()
    }
    return inputs, knowledge


# -- what hides words -------------------------------------------------------


def test_all_but_special_pieces_stand_for_others(encoder, masking):
    assert masking.mask == len(PIECES)
    assert masking.pieces.tolist() == list(range(4, len(PIECES)))


def test_to_measure_by_nothing_is_said_of_what_is_hidden(encoder, reader):
    strict = masking_of(encoder, "mask")
    for place, text in enumerate(reader(one.texts for one in PASSAGES[:40])):
        hidden, labels = strict(text, np.random.default_rng(place))
        for name, known in hidden.mentions.items():
            assert known.masked.tolist() == [
                bool((labels[first:end] != NOTHING).any())
                for first, end in text.mentions[name].spans.tolist()
            ]
            assert known.candidates == text.mentions[name].candidates


def test_blind_nothing_tells_that_something_is_there_to_be_known(encoder, reader):
    blind = masking_of(encoder, "none")
    gone = 0
    for place, text in enumerate(reader(one.texts for one in PASSAGES[:40])):
        hidden, labels = blind(text, np.random.default_rng(place))
        for name, known in hidden.mentions.items():
            before = text.mentions[name]
            left = [(labels[first:end] == NOTHING).all() for first, end in before.spans.tolist()]
            gone += left.count(False)
            assert known.spans.tolist() == before.spans[left].tolist() and not known.masked.any()
            assert known.indices.tolist() == before.indices[left].tolist()
            assert known.candidates == [
                one for one, stays in zip(before.candidates, left, strict=True) if stays
            ]
    assert gone


@pytest.mark.parametrize("told", ["some", "mask", "none"])
def test_the_same_words_are_hidden_whatever_is_known(parts, reader, encoder, told):
    bare, hides = KnowBertReader(parts[1], {}, size=SIZE), masking_of(encoder, told)
    with_kbs, without = (
        language_batch(PASSAGES[:30], one, hides, np.random.default_rng(5)) for one in (reader, bare)
    )
    assert torch.equal(with_kbs.labels, without.labels)
    assert torch.equal(with_kbs.batch.inputs["input_ids"], without.batch.inputs["input_ids"])
    assert with_kbs.batch.knowledge and not without.batch.knowledge


def test_pieces_that_were_added_as_special_ones_stand_for_no_others(parts, tmp_path):
    own = Encoder.load(str(parts[1].folder), device="cpu", dtype="float32")
    own.tokenizer.add_tokens(["[E1]"], special_tokens=True)
    added = own.tokenizer.convert_tokens_to_ids("[E1]")
    assert added >= len(PIECES) and added not in masking_of(own).pieces


def test_a_tokenizer_without_a_mask_is_refused(tmp_path):
    bare = Encoder.load(str(tiny_encoder(tmp_path)), device="cpu", dtype="float32")
    with pytest.raises(UsageError, match=r"the tokenizer of .* has no \[MASK\]: it cannot be a masked"):
        masking_of(bare)


def test_a_batch_says_what_is_hidden_and_what_follows(reader, masking):
    item = language_batch(PAIRS, reader, masking, np.random.default_rng(0))
    assert item.follows.tolist() == [0, 1, 1]
    assert texts_of(item, reader)[0] == "a big dog barks the tree grows in the city"
    assert ((item.labels != NOTHING).sum(1) >= 1).all()
    assert not (item.labels != NOTHING)[item.batch.inputs["attention_mask"] == 0].any()
    single = language_batch(PASSAGES[:2], reader, masking, np.random.default_rng(0))
    assert single.follows is None


# -- batches in turn --------------------------------------------------------


def test_a_fifth_of_the_batches_link_in_each_knowledge_base_in_turn(reader, masking, lessons):
    batches = mixture(reader, masking, lessons=lessons)
    found = list(batches.epoch(0, range(len(batches))))
    kinds = [one.kb if isinstance(one, LinkingBatch) else "" for one in found]
    assert len(batches) == len(found) == 50
    assert (kinds.count(""), kinds.count("words"), kinds.count("places")) == (40, 5, 5)
    assert kinds != sorted(kinds) and kinds != sorted(kinds, reverse=True)
    for name, some in lessons.items():
        seen = [text for one in found if isinstance(one, LinkingBatch) and one.kb == name
                for text in texts_of(one, reader)]  # fmt: skip
        assert set(seen) == {" ".join(PIECES[at] for at in lesson.text.ids[1:-1]) for lesson in some}
        # Batches of 4, 4, 4, 2 and the first again; the only one, of 3, five times.
        assert len(seen) == {"words": 18, "places": 15}[name]
    for one in found:  # NULL is a candidate where it is one
        if isinstance(one, LinkingBatch):
            candidates = one.batch.knowledge[one.kb].candidates
            assert one.gold.shape[2] == candidates.shape[2] + NULL[one.kb]


def test_each_passage_comes_once_an_epoch_and_each_lesson_where_there_are_no_passages(
    reader, masking, lessons
):
    batches = mixture(reader, masking, PASSAGES[:30], lessons, size=4)
    for epoch in range(2):
        found = [one for one in batches.epoch(epoch, range(len(batches))) if isinstance(one, LanguageBatch)]
        assert [len(one.labels) for one in found].count(4) == 7
        seen = [text for one in found for text in texts_of(one, reader)]
        assert sorted(seen) == sorted(text for [text] in (one.texts for one in PASSAGES[:30]))
    alone = mixture(reader, masking, (), lessons)
    found = list(alone.epoch(0, range(len(alone))))
    assert len(found) == len(alone) == sum(math.ceil(len(some) / 4) for some in lessons.values())
    for name, some in lessons.items():
        assert sum(len(one.gold) for one in found if one.kb == name) == len(some)
    assert len(mixture(reader, masking, PASSAGES[:30], {"words": []})) == 8


def test_batches_are_the_same_whichever_are_asked_for(reader, masking, lessons):
    batches = mixture(reader, masking, PASSAGES[:40], lessons)
    whole = list(batches.epoch(1, range(len(batches))))
    again = mixture(reader, masking, PASSAGES[:40], lessons)
    last = len(batches) - 1
    for places in (range(5, last + 1), range(0, last, 2), [3, last, last]):
        for place, one in zip(places, again.epoch(1, places), strict=True):
            assert same(one, whole[place])
    other = mixture(reader, masking, PASSAGES[:40], lessons, seed=1)
    for places, others in ((range(len(batches)), other.epoch(1, range(len(batches)))),
                           (range(len(batches)), batches.epoch(0, range(len(batches))))):  # fmt: skip
        assert not any(same(one, whole[place]) for place, one in zip(places, others, strict=True))


def test_of_few_passages_links_are_learnt_too(reader, masking, lessons):
    few = mixture(reader, masking, PASSAGES[:3], lessons)
    assert len(few) == 2
    kinds = [type(one) is LinkingBatch for one in few.epoch(0, range(2))]
    assert sorted(kinds) == [False, True]
    assert len(Mixture(reader, masking, PASSAGES[:3], {}, idle=True, size=4, seed=0)) == 2
    assert len(mixture(reader, masking, PASSAGES[:3])) == 1


def test_a_control_reads_the_same_passages_and_rests_in_between(reader, masking, lessons, knowbert):
    with_links = mixture(reader, masking, PASSAGES[:40], lessons)
    for given in ({}, lessons):
        control = Mixture(reader, masking, PASSAGES[:40], given, idle=True, size=4, seed=0)
        assert len(control) == len(with_links) == 12
        rests = 0
        places = range(len(control))
        for one, other in zip(control.epoch(1, places), with_links.epoch(1, places), strict=True):
            if one is None:
                rests += 1
                assert isinstance(other, LinkingBatch)
                loss, weight = loss_of(knowbert)(knowbert, one)
                assert float(loss.detach()) == weight == 0 and loss.requires_grad
            else:
                assert same(one, other)
        assert rests == 2


def test_an_epoch_hides_other_words_than_the_one_before(reader, masking):
    batches = mixture(reader, masking, PASSAGES[:4])
    [[first], [second]] = (list(batches.epoch(number, [0])) for number in range(2))
    rows = {text: row for row, text in enumerate(texts_of(first, reader))}
    order = [rows[text] for text in texts_of(second, reader)]
    assert sorted(order) == [0, 1, 2, 3]
    assert not torch.equal(first.labels[order], second.labels)
    alone = mixture(reader, masking, PASSAGES[:1])
    hidden = {tuple(one.labels[0].tolist()) for number in range(9) for one in alone.epoch(number, [0])}
    assert len(hidden) > 3


# -- lessons ----------------------------------------------------------------


def test_what_no_link_can_be_right_for_is_missed(taught, parts, tmp_path):
    from kgkit.training.knowbert.stages import linking_scores

    [told, *_] = taught["places"]
    assert told.lost == 0
    places, path = parts[2]["places"].generator, tmp_path / "el.jsonl"
    given = json.loads((links(path, 1).read_text(encoding="utf-8")).splitlines()[0])
    for mention, entity in zip(given["mentions"], ("nowhere", None), strict=False):
        mention["entity"] = entity
    path.write_text(json.dumps(given), encoding="utf-8")
    [found] = labelled_spans(places.kb, places, path)
    meant = sum(one["entity"] is not None for one in given["mentions"])
    assert found.lost == meant - sum(bool(right.any()) for right in found.right) >= 1
    # Of two that mean something, one cannot be linked, and is said to mean nothing: half is found.
    scored = [
        (np.array([1.0, 0.0]), np.array([True, False])),
        (np.array([0.0, 1.0]), np.array([False, True])),
    ]
    assert linking_scores(scored, null=True)["f1"] == 1
    some = linking_scores(scored, null=True, lost=1)
    assert (some["precision"], some["recall"], some["f1"]) == (1, 0.5, pytest.approx(2 / 3))


def test_lessons_are_stretches_that_teach_something(taught, reader):
    [told, *_] = taught["places"]
    assert [mention.text for mention in told.document.mentions] == [
        "big city", "city", "company", "city", "fruit",
    ]  # fmt: skip
    assert [right.any() for right in told.right] == [True, False, True, True, False]
    nothing = told._replace(right=[np.zeros_like(right) for right in told.right])
    assert len(list(read_linking_examples([nothing], reader, "places", null=False))) == 0
    [lesson] = read_linking_examples([nothing], reader, "places", null=True)
    assert len(lesson.right) == 5
    whole = list(read_linking_examples([told], reader, "places", null=False))
    assert len(whole) == 1 and len(whole[0].right) == 5
    # What other knowledge bases know is read too.
    assert {*whole[0].text.mentions} == {"words", "places"}


def test_null_is_right_where_nothing_else_is(taught, reader, lessons):
    batch = linking_batch(lessons["places"][:2], reader, "places", null=True)
    inputs = batch.batch.knowledge["places"]
    assert batch.gold.shape == (2, 5, inputs.candidates.shape[2] + 1)
    assert batch.gold.sum(-1).tolist() == [[1] * 5] * 2
    assert batch.gold[0, :, -1].tolist() == [False, True, False, False, True]
    assert not (batch.gold[..., :-1] & ~inputs.candidates).any()
    without = linking_batch(lessons["places"][:2], reader, "places", null=False)
    assert torch.equal(without.gold, batch.gold[..., :-1])


# -- the loss ---------------------------------------------------------------


def surprise(logits, piece):
    """-log p of a piece, from (V,) numbers."""
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[piece])


def hidden_of(knowbert, item):
    """Yield, text by text and without asking for places, the logits (V,) of hidden pieces, and the pieces."""
    for row in range(len(item.labels)):
        inputs, knowledge = alone(item, row)
        with torch.no_grad():
            told = knowbert(knowledge, **inputs).model.prediction_logits[0].double().numpy()
        for place in np.flatnonzero(item.labels[row].numpy() != NOTHING):
            yield told[place], int(item.labels[row, place])


def test_the_loss_of_hidden_words_and_of_what_follows_is_that_of_each_text(knowbert, reader, masking):
    single = language_batch(PASSAGES[:5], reader, masking, np.random.default_rng(1))
    paired = language_batch(PAIRS, reader, masking, np.random.default_rng(1))
    loss = loss_of(knowbert)
    for item in (single, paired):
        wanted = np.mean([surprise(logits, piece) for logits, piece in hidden_of(knowbert, item)])
        if item.follows is not None:
            told = []
            for row, answer in enumerate(item.follows.tolist()):
                inputs, knowledge = alone(item, row)
                with torch.no_grad():
                    logits = knowbert(knowledge, **inputs).model.seq_relationship_logits[0].double().numpy()
                told.append(surprise(logits, answer))
            wanted += np.mean(told)
        with torch.no_grad():
            assert float(loss(knowbert, item)) == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("kb", ["words", "places"])
def test_the_loss_of_links_is_that_of_each_mention(knowbert, reader, lessons, kb):
    item = linking_batch(lessons[kb][:3], reader, kb, null=NULL[kb])
    linker = knowbert.kars[kb].linker
    losses = []
    for row in range(len(item.gold)):
        inputs, knowledge = alone(item, row)
        with torch.no_grad():
            scores = knowbert(knowledge, **inputs).linked[kb].scores[0].double().numpy()
        for told, gold in zip(scores, item.gold[row].numpy(), strict=True):
            if not gold.any():
                continue
            if kb == "words":
                losses.append(surprise(told[np.isfinite(told)], int(np.flatnonzero(gold)[0])))
            else:
                losses.append(
                    sum(
                        max(0, linker.config.margin + (-score if right else score))
                        for score, right in zip(told, gold, strict=True)
                        if np.isfinite(score)
                    )
                )
    with torch.no_grad():
        assert float(loss_of(knowbert)(knowbert, item)) == pytest.approx(np.mean(losses), rel=1e-4)


# -- perplexity -------------------------------------------------------------


def test_perplexity_is_that_of_one_text_at_a_time(knowbert, reader, masking):
    passages = [*PASSAGES[:7], PAIRS[0], Passage(("dog",))]
    wanted, right = [], []
    for place, passage in enumerate(passages):
        hidden = masking(next(reader([passage.texts])), np.random.default_rng([3, place]))
        item = masked_batch([hidden], reader, [None])
        for logits, piece in hidden_of(knowbert, item):
            wanted.append(surprise(logits, piece))
            right.append(logits.argmax() == piece)
    told = []
    for size in (1, 4, 32):
        found = perplexity(
            knowbert,
            reader,
            masking,
            passages,
            size=size,
            seed=3,
            progress=lambda stage, *done: told.append(done),
        )
        assert found.perplexity == pytest.approx(math.exp(np.mean(wanted)), rel=1e-4)
        assert found.accuracy == pytest.approx(np.mean(right)) and found.pieces == len(wanted)
    assert told[-4:] == [(4, 9), (8, 9), (9, 9), (9, 9)]
    other = perplexity(knowbert, reader, masking, passages, seed=4)
    assert other.perplexity != pytest.approx(found.perplexity, rel=1e-3)


def test_the_order_of_a_batch_changes_nothing(knowbert, reader, masking):
    masked = [masking(text, np.random.default_rng(place)) for place, text in enumerate(
        reader(one.texts for one in (*PASSAGES[:3], Passage(("dog",))))
    )]  # fmt: skip
    follows = [None] * len(masked)
    with torch.no_grad():
        one, other = (
            loss_of(knowbert)(knowbert, masked_batch(some, reader, follows))
            for some in (masked, masked[::-1])
        )
    torch.testing.assert_close(one, other)


def test_without_passages_there_is_no_perplexity(knowbert, reader, masking):
    with pytest.raises(UsageError, match="no passages to guess words of"):
        perplexity(knowbert, reader, masking, [])


# -- recall -----------------------------------------------------------------

SENTENCES = [
    ("P1", "the dogs barks in the big city", "dogs"),
    ("P1", "the dogs barks in the big city", "the big city"),
    ("P2", "a fruit company", "fruit company"),
    ("P2", " ".join(["many"] * (SIZE - 3)) + " dog", "dog"),  # one piece too long
    ("P2", " ".join(["many"] * (SIZE - 3)) + " tree", "many many"),
    ("P3", " ".join(["many"] * (SIZE - 4)) + " tree", "tree"),  # as long as can be, but for one piece
    ("P3", " ".join(["many"] * (SIZE - 3)) + " dog", "dog"),
]


def question(relation, text, name):
    begin = text.index(name)
    return ClozeQuestion("x", relation, text, (begin, begin + len(name)), "object")


QUESTIONS = [question(*one) for one in SENTENCES]


def recalled_by_probe(knowbert, reader, mask, questions, size):
    """What `kgkit evaluate probe` computed, before `kgkit evaluate cloze` took its place."""
    before, after = len(reader.tokens.before), len(reader.tokens.after)
    for begin in range(0, len(questions), size):
        part = questions[begin : begin + size]
        relations, masked = [], []
        for one, text in zip(part, reader((one.text,) for one in part), strict=True):
            first, end = (before + position for position in reader.tokens(one.text).within(*one.span))
            if first < end <= len(text.ids) - after:
                relations.append(one.relation)
                masked.append(hide(text, np.arange(first, end), mask))
        if masked:
            item = masked_batch(masked, reader, [None for _ in masked])
            hidden = item.labels != NOTHING
            with torch.inference_mode():
                output = knowbert(item.batch.knowledge, positions=hidden, **item.batch.inputs).model
            logits, gold = output.prediction_logits.float(), item.labels[hidden]
            ranks = (1 + (logits > logits.gather(-1, gold[:, None])).sum(-1)).tolist()
            for relation, count in zip(relations, hidden.sum(-1).tolist(), strict=True):
                yield relation, ranks[:count]
                ranks = ranks[count:]


def recalled(knowbert, encoder, reader, questions, **others):
    return list(recall_ranks(KnowBertClozeModel("x", encoder, knowbert, reader), questions, **others))


def ranks_by_hand(knowbert, reader, mask):
    for one in QUESTIONS:
        pieces = reader.tokens(one.text)
        first, end = pieces.within(*one.span)
        if end > SIZE - 2:
            continue
        hidden = hide(next(reader([(one.text,)])), np.arange(first + 1, end + 1), mask)
        item = masked_batch([hidden], reader, [None])
        with torch.no_grad():
            told = knowbert(item.batch.knowledge, **item.batch.inputs).model.prediction_logits[0]
        assert pieces.ids[first:end].tolist() == item.labels[0, first + 1 : end + 1].tolist()
        yield (
            one.relation,
            [
                1 + sum(float(logit) > float(told[place + 1, pieces.ids[place]]) for logit in told[place + 1])
                for place in range(first, end)
            ],
        )


def test_ranks_are_those_of_each_sentence_alone(knowbert, encoder, reader, masking):
    wanted = list(ranks_by_hand(knowbert, reader, masking.mask))
    assert [len(ranks) for _, ranks in wanted] == [2, 3, 2, 1, 2, 1, 1]
    for size in (1, 3, 32):
        assert recalled(knowbert, encoder, reader, QUESTIONS, size=size) == wanted
        before = list(recalled_by_probe(knowbert, reader, masking.mask, QUESTIONS, size))
        assert before == wanted


def test_a_name_that_does_not_fit_is_left_out(parts, knowbert, encoder):
    short = KnowBertReader(parts[1], parts[2], size=SIZE - 1)
    done = []
    found = recalled(
        knowbert, encoder, short, QUESTIONS[3:], size=2, progress=lambda stage, *one: done.append(one)
    )
    assert [relation for relation, _ in found] == ["P2", "P3"]
    assert done == [(2, 4), (4, 4)]


class Changed(Knowledge):
    """A knowledge base some of whose vectors are others."""

    def gather(self, ids):
        found = super().gather(ids)
        return np.where(np.isin(ids, self.others)[:, None], found[:, ::-1] * -3, found)


def changed(knowledge, others):
    made = Changed(knowledge.generator, knowledge.vectors)
    object.__setattr__(made, "others", others)
    return made


def test_what_candidates_say_of_a_hidden_name_reaches_nothing(parts, knowbert, encoder, reader):
    asked = [question("P", "the dog of the big city eats fruit", "big city")]
    [text] = reader([(asked[0].text,)])
    of_city, of_part, of_fruit = (set(one.ids.tolist()) for one in text.mentions["places"].candidates)
    assert of_city < of_part and not of_part & of_fruit

    def answers(places):
        other = KnowBertReader(parts[1], parts[2] | {"places": places}, size=SIZE)
        told = []
        hook = knowbert.model.cls.register_forward_hook(lambda *one: told.append(one[-1][0].clone()))
        try:
            return recalled(knowbert, encoder, other, asked), told[0]
        finally:
            hook.remove()

    ranks, logits = answers(parts[2]["places"])
    found, told = answers(changed(parts[2]["places"], [*of_part]))
    assert found == ranks and torch.equal(told, logits)
    _, told = answers(changed(parts[2]["places"], [*of_fruit]))
    assert not torch.allclose(told, logits)


# -- how well a linker does -------------------------------------------------


@pytest.mark.parametrize("kb", ["words", "places"])
def test_scores_of_lessons_are_those_of_each_alone(knowbert, reader, lessons, kb):
    some = lessons[kb][:5]
    wanted = []
    for lesson in some:
        batch = reader.batch([lesson.text])
        with torch.no_grad():
            scores = knowbert(batch.knowledge, **batch.inputs).linked[kb].scores[0].numpy()
        for told, right in zip(scores, lesson.right, strict=True):
            if right.any():
                wanted.append((told[: len(right)], right))
            if NULL[kb]:
                every = np.append(told[: len(right)], told[-1])
                answers = np.append(right, not right.any())
                wanted = [*wanted[:-1], (every, answers)] if right.any() else [*wanted, (every, answers)]
    assert wanted and any(len(scores) > 1 for scores, _ in wanted)
    for size in (1, 2, 32):
        found = score_examples(knowbert, reader, kb, some, null=NULL[kb], size=size)
        assert len(found) == len(wanted)
        for (scores, right), (told, answers) in zip(found, wanted, strict=True):
            np.testing.assert_allclose(scores, told, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(right, answers)


def test_a_masked_language_model_without_pairs_learns_too(parts, reader, masking, knowbert):
    from transformers import BertForMaskedLM

    torch.manual_seed(0)
    model = BertForMaskedLM(parts[0].config).eval()
    linker = dataclasses.replace(knowbert.kars["words"].config.linker)
    other = KnowBert(model, {"words": KARConfig(linker=linker, layer=1, heads=2, inner=8)}).eval()
    item = language_batch(PASSAGES[:3], reader, masking, np.random.default_rng(0))
    knowledge = {"words": item.batch.knowledge["words"]}
    item = item._replace(batch=item.batch._replace(knowledge=knowledge))
    with torch.no_grad():
        loss = loss_of(other)(other, item)
        whole = other(knowledge, **item.batch.inputs).model.logits
    places = item.labels != NOTHING
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(whole[places], item.labels[places]))
