"""What holds for every head: padding, order and batch size change nothing, weights survive the disk.

A head has a row in `CASES`: how it is made, and how it reads three texts, each of a length of its own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from torch import nn  # noqa: E402

import kgkit.heads  # noqa: E402
from kgkit.encoder import Encoder  # noqa: E402
from kgkit.heads import (  # noqa: E402
    KALM,
    KAR,
    Classifier,
    ClassifierConfig,
    EBert,
    EBertConfig,
    EBertInputs,
    EBertLinker,
    EBertLinkerConfig,
    EBertLinkerInputs,
    EntityLinker,
    EntityLinkerConfig,
    FrozenTaggerConfig,
    FrozenWordTagger,
    KALMConfig,
    KamBert,
    KamBertConfig,
    KamBertInputs,
    KARConfig,
    KBert,
    KBertInputs,
    KnowBert,
    LinkerInputs,
    TaggerInputs,
    WordTagger,
    WordTaggerConfig,
)
from tests.tiny_encoder import tiny_encoder  # noqa: E402

WIDTH, WORDS, STORED = 16, 30, 5
LENGTHS = (7, 5, 6)  # of the texts that all heads read
PIECES = torch.randint(5, WORDS, (3, 7), generator=torch.Generator().manual_seed(0))
LINKER = EntityLinkerConfig(hidden=WIDTH, width=8, stored=STORED, features=2, heads=2, inner=10, scorer=7)


def bert(kind="BertModel"):
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, initializer_range=0.5,
    )  # fmt: skip
    return getattr(transformers, kind)(config)


def drawn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def padded(rows, length, fill=0):
    """Return the pieces (B, T) of texts, and which of them are real."""
    real = torch.arange(length) < torch.tensor([LENGTHS[row] for row in rows])[:, None]
    pieces = torch.nn.functional.pad(PIECES, (0, max(0, length - 7)))[rows, :length]
    return torch.where(real, pieces, fill), real


def cut(states, rows):
    """Return the states (T, ·) of each text without those of padding."""
    return [own[: LENGTHS[row]] for own, row in zip(states, rows, strict=True)]


# -- heads, and how each reads texts --------------------------------------------


def read_classifier(head, rows, length):
    _, real = padded(rows, length)
    states = torch.full((3, length, WIDTH), 1e3)
    states[:, :7] = drawn(3, 7, WIDTH)[:, : min(7, length)]
    hidden = torch.where(real[..., None], states[rows], 1e3)
    return list(head(hidden.to(head.label.weight.dtype), torch.tensor([[0, 3]] * len(rows))))


def read_tagger(head, rows, length):
    ids, real = padded(rows, length)
    firsts = torch.arange(length).expand(len(rows), -1)
    return cut(head(TaggerInputs(ids, real, firsts, real, firsts % 3)), rows)


def linker_inputs(rows, length, kind=torch.float32):
    """Return inputs of an entity linker; a large *length* pads mentions and candidates, too."""
    mentions, candidates = (3, 4) if length > 7 else (2, 3)
    _, real = padded(rows, length)

    def pad(tensor, *sizes, fill):
        result = torch.full((3, *sizes, *tensor.shape[1 + len(sizes) :]), fill, dtype=tensor.dtype)
        result[tuple(slice(size) for size in tensor.shape[: 1 + len(sizes)])] = tensor
        return result[rows]

    spans = torch.tensor([[[0, 2], [3, 4]], [[1, 4], [4, 5]], [[2, 3], [0, 1]]])
    some = torch.tensor([[True, True], [True, False], [True, True]])
    exist = some[..., None] & torch.tensor([[[1, 1, 0], [1, 1, 1]]] * 3).bool()
    states = pad(drawn(3, 7, WIDTH), max(length, 7), fill=1e3)[:, :length]
    return LinkerInputs(
        hidden=torch.where(real[..., None], states, 1e3).to(kind),
        spans=pad(spans, mentions, fill=1),
        mentions=pad(some, mentions, fill=False),
        vectors=pad(drawn(3, 2, 3, STORED, seed=2), mentions, candidates, fill=1e3).to(kind),
        features=pad(drawn(3, 2, 3, 2, seed=3), mentions, candidates, fill=1e3).to(kind),
        candidates=pad(exist, mentions, candidates, fill=False),
        null_features=None,
    )


def read_linker(head, rows, length):
    output = head(linker_inputs(rows, length, head.project.weight.dtype))
    scores = output.probabilities[:, :2, :3].flatten(1)
    return [
        torch.cat([own, mean.flatten()]) for own, mean in zip(scores, output.weighted[:, :2], strict=True)
    ]


def read_kar(head, rows, length):
    return cut(head(linker_inputs(rows, length, head.back.weight.dtype))[0], rows)


def read_knowbert(head, rows, length):
    ids, real = padded(rows, length)
    inputs = linker_inputs(rows, length, head.model.dtype)
    output = head({"words": inputs}, input_ids=ids, attention_mask=real.long())
    return cut(output.model.last_hidden_state, rows)


def ebert_inputs(rows, length, kind):
    """Return texts, each of which has an entity at its second piece; vectors are in the order of rows."""
    ids, real = padded(rows, length)
    at = torch.full_like(ids, -1)
    at[:, 1] = torch.arange(len(rows))
    return EBertInputs(ids, real, at, drawn(3, STORED)[rows].to(kind), torch.zeros_like(ids))


def read_ebert(head, rows, length):
    return cut(head(ebert_inputs(rows, length, head.model.dtype)).last_hidden_state, rows)


def read_ebert_linker(head, rows, length):
    kind, count = head.null_vector.dtype, len(rows)
    masks = torch.stack([torch.arange(count), torch.full((count,), 2)], 1)
    width = 3 if length > 7 else 2
    candidates = torch.full((count, width), -1)
    candidates[:, :2] = torch.tensor([[0, 1], [2, -1], [1, 2]])[rows]
    log_priors = torch.zeros(count, width, dtype=kind)
    text = ebert_inputs(rows, length, kind)
    scores = head(EBertLinkerInputs(text, masks, drawn(3, STORED, seed=4).to(kind), candidates, log_priors))
    return [row[(row > -torch.inf)] for row in scores]


def read_kbert(head, rows, length):
    ids, real = padded(rows, length)
    positions = torch.tensor([0, 1, 2, 2, 3, 3, 4])
    positions, branches, hooks = (
        torch.where(real, torch.nn.functional.pad(column, (0, max(0, length - 7)))[:length], 0)
        for column in (positions, torch.tensor([0, 0, 0, 1, 0, 0, 0]), torch.tensor([0, 0, 1, 1, 0, 0, 0]))
    )
    inputs = KBertInputs(ids, positions, branches, hooks, real, torch.zeros_like(ids))
    return cut(head(inputs).last_hidden_state, rows)


def read_kambert(head, rows, length):
    ids, real = padded(rows, length)
    cells = [(at, number % 2, 1, 2 + number) for at in range(len(rows)) for number in range(3)]
    cells += [(at, 1, 2, length + 1) for at in range(len(rows))]  # an auxiliary word piece
    values = torch.tensor([(0.3 + row) / 4 for row in rows for _ in range(3)] + [0.5] * len(rows))
    behind = torch.tensor([[0, 9 + row] for row in rows])
    inputs = KamBertInputs(
        ids, real, torch.tensor(cells), values.to(head.model.dtype), behind, behind > 0, torch.zeros_like(ids)
    )
    return cut(head(inputs).last_hidden_state, rows)


def read_kalm(head, rows, length):
    ids, real = padded(rows, length)
    output = head(ids, real.sum(1))
    states = torch.cat([output.vectors, output.types, head.joint(output, ids[:, 1:-1]).exp()], -1)
    return [own[: LENGTHS[row] - 2] for own, row in zip(states, rows, strict=True)]


def kalm_of(seed):
    members = torch.ones(2, WORDS, dtype=torch.bool)
    members[0, 10:15], members[1] = False, False
    members[1, 10:20] = True
    prior = members.T / members.sum(0)[:, None]
    sizes = {"embedding": 6, "hidden": 5, "type_width": 4}
    return KALM(KALMConfig(words=WORDS, types=("LOC",), bidirectional=True, **sizes), members, prior)


class HeadCase(NamedTuple):
    """A head, and how it reads texts.

    Attributes:
        make: function from a seed to a new head.
        read: function from a head, numbers of texts and a padded length to what it says of each text.
        single: whether some of it is computed in single precision, whatever its weights are.
        open: function from a head and the folder that it was saved in to a head that is opened there.
    """

    make: Callable[[int], nn.Module]
    read: Callable[[Any, list[int], int], list[Any]]
    single: bool = False
    open: Callable[[Any, Any], Any] = lambda head, folder: type(head).from_pretrained(folder, device="cpu")


def generator(seed):
    return torch.Generator().manual_seed(seed)


def aligned(model):
    return EBert(model, EBertConfig(stored=STORED, width=WIDTH), drawn(WIDTH, STORED))


def frozen_tagger(seed):
    config = FrozenTaggerConfig(types=("PER",), shapes=3, layers=(1, 2), width=8)
    return FrozenWordTagger(tagger_encoder(), config, generator(seed)).half().float()  # as it is saved


CASES: dict[str, HeadCase] = {
    "Classifier": HeadCase(
        lambda seed: Classifier(
            ClassifierConfig(hidden=WIDTH, labels=("a", "b", "c"), positions=2), generator(seed)
        ),
        read_classifier,
    ),
    "EBert": HeadCase(lambda _: aligned(bert()), read_ebert, single=True),
    "EBertLinker": HeadCase(
        lambda seed: EBertLinker(
            aligned(bert("BertForMaskedLM")), EBertLinkerConfig(width=WIDTH), generator(seed)
        ),
        read_ebert_linker,
        single=True,
    ),
    "EntityLinker": HeadCase(lambda seed: EntityLinker(LINKER, generator(seed)), read_linker),
    "FrozenWordTagger": HeadCase(
        frozen_tagger, read_tagger, single=True,
        open=lambda head, folder: FrozenWordTagger.beside(head.reads, folder),
    ),
    "KALM": HeadCase(kalm_of, read_kalm),
    "KAR": HeadCase(
        lambda seed: KAR(KARConfig(linker=LINKER, layer=1, heads=2, inner=12), generator(seed)), read_kar
    ),
    "KBert": HeadCase(lambda _: KBert(bert()), read_kbert),
    "KamBert": HeadCase(
        lambda seed: KamBert(
            model := bert(), KamBertConfig.of(model, maps=("entity", "correlation"))
        ),
        read_kambert,
    ),
    "KnowBert": HeadCase(
        lambda seed: KnowBert(
            bert(), {"words": KARConfig(linker=LINKER, layer=1, heads=2, inner=12)}, generator(seed)
        ),
        read_knowbert,
    ),
    "WordTagger": HeadCase(
        lambda seed: WordTagger(
            tagger_encoder(), WordTaggerConfig(types=("PER",), shapes=3), generator(seed)
        ),
        read_tagger,
    ),
}  # fmt: skip
PARTS = {"KAR"}
"""Heads that lie in the folder of another."""

_FOLDER: list[Any] = []


def tagger_encoder():
    return Encoder.load(str(_FOLDER[0]), device="cpu", dtype="float32")


@pytest.fixture(autouse=True, scope="module")
def encoder_folder(tmp_path_factory):
    _FOLDER.append(tiny_encoder(tmp_path_factory.mktemp("tiny")))
    yield
    _FOLDER.clear()


def test_no_head_lacks_its_row():
    heads = [getattr(kgkit.heads, name) for name in kgkit.heads.__all__]
    assert {head.__name__ for head in heads if issubclass(head, nn.Module)} == CASES.keys()


@pytest.fixture
def case(name):
    return CASES[name]


@pytest.fixture
def make(case):
    """Return what makes a head far from its beginning, whose weights are the same for a seed."""

    def make_head(seed=0):
        torch.manual_seed(seed)
        return case.make(seed).eval()

    return make_head


@pytest.mark.parametrize("name", CASES)
class TestEveryHead:
    def test_padding_order_and_batch_size_change_nothing(self, make, case):
        head = make() if case.single else make().double()
        near = {"atol": 1e-4, "rtol": 1e-3} if case.single else {"atol": 1e-9, "rtol": 1e-6}
        together = case.read(head, [0, 1, 2], 7)
        assert len({tuple(text.flatten().tolist()) for text in together}) == 3
        turned = case.read(head, [2, 0, 1], 11)
        alone = [case.read(head, [row], LENGTHS[row])[0] for row in range(3)]
        for row in range(3):
            torch.testing.assert_close(alone[row], together[row], **near)
            torch.testing.assert_close(turned[[1, 2, 0][row]], together[row], **near)

    def test_weights_survive_a_round_trip(self, make, case, name, tmp_path):
        if name in PARTS:
            assert "KAR" in repr(CASES["KnowBert"].make(0))  # which takes it to the disk
            return
        head = make()
        head.save_pretrained(tmp_path)
        opened = case.open(head, tmp_path)
        weights, copies = head.state_dict(), opened.state_dict()
        assert weights.keys() == copies.keys() and not opened.training
        assert all(torch.equal(weight, copies[key]) for key, weight in weights.items())
        with torch.no_grad():
            texts = zip(case.read(head, [0, 1, 2], 7), case.read(opened, [0, 1, 2], 7), strict=True)
            assert all(torch.equal(before, after) for before, after in texts)

    def test_a_seed_decides_the_first_weights(self, make):
        first, again, seeded = (dict(make(seed).named_parameters()) for seed in (0, 0, 1))
        assert all(torch.equal(weight, again[key]) for key, weight in first.items())
        assert any(not torch.equal(weight, seeded[key]) for key, weight in first.items())

    def test_a_gradient_reaches_every_weight_that_is_trained(self, make, case):
        head = make() if case.single else make().double()
        spread(head)
        numbers = torch.cat([text.flatten() for text in case.read(head, [0, 1, 2], 7)])
        (numbers * drawn(len(numbers), seed=5)).sum().backward()
        trained = {key: weight for key, weight in head.named_parameters() if weight.requires_grad}
        unreached = {key for key, weight in trained.items() if weight.grad is None or not weight.grad.any()}
        assert {key for key in unreached if not any(part in key for part in UNREACHED)} == set()
        assert all(weight.grad is None or weight.grad.isfinite().all() for weight in trained.values())

    def test_products_in_bfloat16_are_near(self, make, case):
        head = make()
        with torch.no_grad():
            exact = torch.cat([text.flatten() for text in case.read(head, [0, 1, 2], 7)])
            with torch.autocast("cpu", torch.bfloat16):
                rounded = torch.cat([text.flatten() for text in case.read(head, [0, 1, 2], 7)])
        assert rounded.isfinite().all()
        assert float((rounded.float() - exact).norm() / exact.norm()) < 0.05


@torch.no_grad()
def spread(head):
    """Move the weights of a head, some of which begin as zeros, behind which nothing is reached."""
    moved = generator(9)
    for weight in head.parameters():
        weight += 0.05 * torch.randn(weight.shape, generator=moved, dtype=weight.dtype)


UNREACHED = (
    "pooler", "decoder.bias", "cls.predictions.bias", "key.bias", "score.down.bias", "pool.attend.bias",
)  # fmt: skip
"""Weights of an encoder that no head reads, and those that move all logits of a softmax alike."""
