"""Fine-tuning on a task: special pieces where names stand, a model that learns."""

import logging

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.examples import Example
from kgkit.evaluation.tasks import find_task
from kgkit.heads import Classifier, ClassifierConfig, EntityLinkerConfig, KARConfig, KnowBert
from kgkit.inputs import KnowBertReader
from kgkit.methods.answering import answers_of, batch_of, loss_of
from kgkit.methods.knowbert import KnowBertMethod
from kgkit.methods.knowbert_reading import ExampleReader
from kgkit.training import Shuffled, TrainingConfig
from tests.inputs.test_knowbert import encoder, knowledge
from tests.tiny_encoder import WIDTH, tiny_encoder

__all__ = ["encoder", "knowledge"]

MARKERS = ("[E1]", "[/E1]", "[E2]", "[/E2]")
TAIL = ("[SUBJECT=DOG]", "[OBJECT=CITY]")
SPECIALS = (*MARKERS, *TAIL, "[E]", "[/E]")
LABELS = ("no", "yes")
TEXT = "the dog barks in the big city"
DOG, CITY = (4, 7), (21, 29)


def relation(text=TEXT, marks=(DOG, CITY), tail=(), label="yes", name="1"):
    return Example(name, (text,), marks, tail=tail, gold=label)


# -- reading ----------------------------------------------------------------


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """An encoder that has the special pieces."""
    loaded = Encoder.load(str(tiny_encoder(tmp_path_factory.mktemp("taught"))), device="cpu", dtype="float32")
    loaded.tokenizer.add_tokens(list(SPECIALS), special_tokens=True)
    torch.manual_seed(0)
    loaded.model.resize_token_embeddings(len(loaded.tokenizer))
    return loaded


@pytest.fixture
def reading(taught, knowledge):
    def of(size=24, specials=SPECIALS):
        reader = KnowBertReader(taught, {"words": knowledge}, size=size)
        return ExampleReader(reader, taught.tokenizer, specials)

    return of


def said(taught, ids):
    return " ".join(taught.tokenizer.convert_ids_to_tokens([int(one) for one in ids]))


def test_names_are_marked_and_read_where_they_begin(reading, taught):
    [one] = reading()([relation(tail=TAIL)])
    assert said(taught, one.content.ids) == (
        "[CLS] the [E1] dog [/E1] barks in the [E2] big city [/E2] [SUBJECT=DOG] [OBJECT=CITY] [SEP]"
    )
    assert one.places == (2, 8) and one.gold == 1
    known = one.content.known["words"].spans.tolist()
    assert [said(taught, one.content.ids[slice(*span)]) for span in known] == ["dog", "big city"]
    assert one.content.special.tolist() == [piece[0] == "[" for piece in said(taught, one.content.ids).split()]


@pytest.mark.parametrize(
    ("marks", "wanted"),
    [
        ((DOG, (8, 13)), "the [E1] dog [/E1] [E2] barks [/E2] in the big city"),
        (((8, 13), DOG), "the [E2] dog [/E2] [E1] barks [/E1] in the big city"),
        ((CITY, (25, 29)), "the dog barks in the [E1] big [E2] city [/E2] [/E1]"),
        (((21, 24), CITY), "the dog barks in the [E2] [E1] big [/E1] city [/E2]"),
        ((DOG, DOG), "the [E1] [E2] dog [/E2] [/E1] barks in the big city"),
        (((4, 5), (17, 24)), "the [E1] dog [/E1] barks in [E2] the big [/E2] city"),
        (((7, 8), (29, 29)), "the dog [E1] [/E1] barks in the big city [E2] [/E2]"),
        ((DOG,), "the [E] dog [/E] barks in the big city"),
        ((), TEXT),
    ],
)
def test_wherever_names_stand_each_begins_and_ends(reading, taught, marks, wanted):
    [one] = reading()([relation(marks=marks)])
    assert said(taught, one.content.ids) == f"[CLS] {wanted} [SEP]"
    pieces = said(taught, one.content.ids).split()
    opening = [["[E]"], ["[E1]", "[E2]"]][len(marks) // 2][: len(marks)] or ["[CLS]"]
    assert [pieces[place] for place in one.places] == opening


def test_a_text_that_says_what_a_marker_is_called_is_read_at_the_marker(reading, taught):
    [one] = reading()([relation("[E1] the dog", ((9, 12), (5, 8)))])
    assert said(taught, one.content.ids) == "[CLS] [E1] [E2] the [/E2] [E1] dog [/E1] [SEP]"
    assert one.places == (5, 2)


@pytest.mark.parametrize("size", range(11, 17))
def test_nothing_is_longer_than_asked_for_and_names_that_are_cut_off_are_read_last(
    reading, taught, size, caplog
):
    reader = reading(size=size)
    with caplog.at_level(logging.WARNING):
        [one, same] = reader([relation(tail=TAIL), relation(tail=TAIL)])
    assert len(one.content.ids) == min(size, 15) and same.places == one.places
    pieces = said(taught, one.content.ids).split()
    assert [pieces[place] for place in one.places] == ["[E1]", "[E2]"] and pieces[-3:-1] == [*TAIL]
    words = TEXT.split()[: size - 8]
    assert [piece for piece in pieces if piece[0] != "["] == words
    assert pieces[one.places[1] + 1] == ("big" if "big" in words else words[-1])
    assert sum("cut off" in record.message for record in caplog.records) == ("big" not in words)
    if size == 11:
        assert " ".join(pieces) == (
            "[CLS] the [E1] dog [/E1] [E2] barks [/E2] [SUBJECT=DOG] [OBJECT=CITY] [SEP]"
        )


def test_pairs_leave_room_too_and_keep_their_types(reading, taught):
    [one] = reading(size=9)([Example("1", ("the dog barks", "a tree grows"), (DOG,), (), "no")])
    assert said(taught, one.content.ids) == "[CLS] the [E] dog [/E] [SEP] a tree [SEP]"
    [two] = reading()([Example("1", ("the dog", "a tree"), (DOG,), TAIL[:1], "no")])
    assert said(taught, two.content.ids) == "[CLS] the [E] dog [/E] [SEP] a tree [SUBJECT=DOG] [SEP]"
    assert two.content.types.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_examples_of_several_kinds_are_read_in_order(reading):
    some = [relation(tail=TAIL), relation(marks=()), relation(), relation(marks=()), relation(marks=(DOG,))]
    together = list(reading()(some))
    for one, found in zip(some, together, strict=True):
        [alone] = reading()([one])
        np.testing.assert_array_equal(alone.content.ids, found.content.ids)
        assert alone.places == found.places


def test_types_of_names_that_are_not_known_are_left_out_and_said_once(reading, taught, caplog):
    with caplog.at_level(logging.WARNING):
        some = list(reading()([relation(tail=("[SUBJECT=CAT]", TAIL[1]))] * 2))
    assert said(taught, some[0].content.ids).endswith("city [/E2] [OBJECT=CITY] [SEP]")
    assert [record.message for record in caplog.records] == [
        "types that the model does not know are not read, as that of 1"
    ]


def test_what_cannot_be_read_is_told(reading):
    with pytest.raises(UsageError, match=r"the tokenizer lacks the special piece \[E3\]: add it"):
        reading(specials=("[E1]", "[E3]"))
    with pytest.raises(UsageError, match=r"marked with \[E1\], which is not among the special pieces: \[E\]"):
        list(reading(specials=("[E]",))([relation()]))
    with pytest.raises(UsageError, match="the label 'maybe'; those that are told apart are: no, yes"):
        list(reading()([relation(label="maybe")]))
    with pytest.raises(UsageError, match="the label 'maybe'"):
        list(reading()([relation(label=frozenset({"maybe", "no"}))]))
    with pytest.raises(UsageError, match="of which 6 are markers, leave no room for words: read 11 or more"):
        list(reading(size=10, labels=LABELS)([relation(tail=TAIL, name="x")._replace(texts=("a", "b"))]))
    with pytest.raises(UsageError, match="equally many names"):
        reading().batch([relation(), relation(marks=(DOG,))])
    with pytest.raises(UsageError, match="equally many names"):
        reading().batch([])


def test_a_batch_has_places_and_gold(reading):
    batch = reading().batch([relation(), relation(marks=(CITY, DOG), label="no")]).to(torch.device("cpu"))
    assert batch.places.tolist() == [[2, 8], [8, 2]] and batch.gold.tolist() == [1, 0]
    assert batch.batch.inputs["input_ids"].shape == (2, 13)
    several = reading().batch([relation(label=frozenset({"no"})), relation(label=frozenset())])
    assert several.gold.tolist() == [[True, False], [False, False]] and several.gold.dtype == torch.bool
    assert reading().batch([relation(), relation(label=None)]).gold is None


# -- the model --------------------------------------------------------------


def model_of(taught, knowledge, config, seed=0):
    linker = EntityLinkerConfig(hidden=WIDTH, width=8, stored=knowledge.width, heads=2, inner=8, scorer=4)
    draw = torch.Generator().manual_seed(seed)
    fresh = Encoder.load(str(taught.folder), device="cpu", dtype="float32").model
    torch.manual_seed(seed)
    fresh.resize_token_embeddings(len(taught.tokenizer))
    kars = {"words": KARConfig(linker=linker, layer=1, heads=2, inner=8)}
    return Classified(KnowBert(fresh, kars, draw), Classifier(config, draw)).eval()


def sentences(count, seed=0):
    """A dog, or a tree, is marked, and another name stands behind it. Short texts and long ones."""
    drawn, found = np.random.default_rng(seed), []
    for number in range(count):
        name, label = ("dog", "yes") if number % 2 else ("tree", "no")
        before = "the " * int(drawn.integers(1, 5))
        text = f"{before}{name} eats the {drawn.choice(['cat', 'big city', 'fruit'])}"
        found.append(Example(str(number), (text,), ((len(before), len(before) + len(name)),), (), label))
    return found


def test_a_model_learns_a_task_and_its_answers_do_not_depend_on_what_is_read_together(
    taught, knowledge, reading, tmp_path
):
    from kgkit.training import train

    reader, some = reading(), sentences(80)
    model = model_of(taught, knowledge, ClassifierConfig(hidden=WIDTH, labels=LABELS, dropout=0.0))
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):  # so small a model has no number to spare
            part.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    settings = TrainingConfig(epochs=4, device="cpu", bf16=False)
    train(
        model, Shuffled(some, 8, reader.batch, seed=0), loss_of(model.classifier), [optimizer], settings,
        tmp_path, evaluate=lambda found: scores_of("classification", some, answers_of(found, reader, some)),
    )  # fmt: skip
    others, told = sentences(30, seed=1), []
    answers = answers_of(model, reader, others, progress=lambda *done: told.append(done))
    assert scores_of("classification", others, answers)["accuracy"] > 0.9
    assert list(answers) == [one.id for one in others] and told == [(30, 30)]
    assert answers == answers_of(model, reader, others[::-1], size=7)
    assert answers == answers_of(model, reader, [one._replace(label="strange") for one in others], size=1)
    with torch.no_grad():
        together = model(reader.batch(others))
        for row, one in enumerate(others):
            torch.testing.assert_close(model(reader.batch([one]))[0], together[row], atol=1e-5, rtol=1e-4)


def test_every_part_learns_from_the_loss(taught, knowledge, reading):
    config = ClassifierConfig(hidden=WIDTH, labels=LABELS, several=True)
    model = model_of(taught, knowledge, config).train()
    some = [relation(marks=(DOG,), label=frozenset({"yes"})), relation(marks=(CITY,), label=frozenset())]
    loss, weight = loss_of(model.classifier)(model, reading().batch(some))
    loss.backward()
    assert weight == 2
    markers = taught.tokenizer.convert_tokens_to_ids(["[E]", "[/E]"])
    assert model.knowbert.model.get_input_embeddings().weight.grad[markers].abs().sum(-1).all()
    assert model.classifier.label.weight.grad.any() and model.knowbert.kars["words"].back.weight.grad.any()
    with pytest.raises(UsageError, match="examples without a label"):
        loss_of(model.classifier)(model, reading().batch([relation(marks=(DOG,), label=None)]))


def test_an_encoder_without_knowledge_is_classified_with_alike(taught, knowledge):
    reader = ExampleReader(KnowBertReader(taught, {}, size=24), taught.tokenizer, SPECIALS, LABELS)
    config = ClassifierConfig(hidden=WIDTH, labels=LABELS)
    model = Classified(KnowBert(taught.model, {}), Classifier(config)).eval()
    pair = Example("1", ("the dog barks", "a tree grows"))
    with torch.no_grad():
        batch = reader.batch([pair])
        hidden = taught.model(**batch.batch.inputs).last_hidden_state
        assert batch.places.tolist() == [[0]]
        torch.testing.assert_close(model(batch), model.classifier.label(hidden[:, 0]))
    assert set(answers_of(model, reader, [pair])) == {"1"}


def test_models_that_do_not_fit_are_refused(taught, knowledge, reading):
    from transformers import BertForMaskedLM

    classifier = Classifier(ClassifierConfig(hidden=WIDTH, labels=LABELS, places=2))
    around = BertForMaskedLM(taught.model.config)
    with pytest.raises(
        UsageError, match=r"not on a BertForMaskedLM: read the KnowBert with model='AutoModel'"
    ):
        Classified(KnowBert(around, {}), classifier)
    with pytest.raises(UsageError, match="vectors of width 8, the encoder has 16"):
        Classified(KnowBert(taught.model, {}), Classifier(ClassifierConfig(hidden=8, labels=LABELS)))
    model = Classified(KnowBert(taught.model, {}), classifier)
    with pytest.raises(UsageError, match="the reader knows the labels a, b, the classifier no, yes"):
        answers_of(model, reading(labels=("a", "b")), [relation()])
    with pytest.raises(UsageError, match="two examples have the id '1'"):
        answers_of(model, reading(), [relation(), relation()])
