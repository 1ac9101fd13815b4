"""Models whose weights are so large that they compute no numbers: one error, and no answer, rank or link."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from safetensors.torch import load_file, save_file  # noqa: E402

from kgkit.encoder import Encoder  # noqa: E402
from kgkit.errors import DamagedModel  # noqa: E402
from kgkit.evaluation.cloze import NameQuestion  # noqa: E402
from kgkit.evaluation.facts import ClozeQuestion  # noqa: E402
from kgkit.inputs.masking import HiddenPieces  # noqa: E402
from kgkit.inputs.pieces import PieceTokenizer  # noqa: E402
from kgkit.linking import Linker, Scorer  # noqa: E402
from kgkit.methods.cloze import ClozeModel, cloze_guesses, name_guesses, recall_ranks  # noqa: E402
from kgkit.models.opening import open_model  # noqa: E402
from kgkit.tagging.tagger import Tagger  # noqa: E402
from kgkit.types import Document  # noqa: E402
from tests.model_folders import tagger_folder  # noqa: E402
from tests.small_kb import lexicon_kb  # noqa: E402
from tests.tiny_encoder import tiny_encoder  # noqa: E402

QUESTIONS = [
    ClozeQuestion(f"{number}.object", "eats", "the dog eats fruit", (13, 18), "object") for number in range(3)
]


def test_a_tagger_says_so(tmp_path):
    folder = tagger_folder(tmp_path / "names")
    tagger = Tagger.open(folder, home=tmp_path, device="cpu")
    assert len(tagger.typed_words([Document("1", "the dog")])[0]) == 2
    path = folder / "head" / "model.safetensors"
    save_file({name: torch.full_like(weight, 3e38) for name, weight in load_file(path).items()}, path)
    broken = open_model(folder, "tagger", home=tmp_path, device="cpu")
    for call in (lambda: [*broken(["the dog"])], lambda: broken.typed_words([Document("1", "the dog")])):
        with pytest.raises(
            DamagedModel, match="the model names gives words no probabilities: its weights are"
        ):
            call()


class Guesser(ClozeModel):
    """A masked language model whose logits are all one number."""

    logit = 0.0

    def predict(self, questions):
        shape = len(questions), max(self.words) + 1
        return HiddenPieces(torch.full(shape, self.logit), torch.full(shape[:1], 5), [1] * len(questions))


@pytest.fixture(scope="module")
def guesser(tmp_path_factory):
    folder = tiny_encoder(tmp_path_factory.mktemp("tiny"), mask=True)
    encoder = Encoder.load(str(folder), device="cpu", dtype="float32")
    return Guesser("guesser", encoder, PieceTokenizer(encoder.pieces))


@pytest.mark.parametrize("logit", [float("nan"), float("inf"), -float("inf")])
def test_no_cloze_question_is_answered_first_by_what_is_no_number(guesser, logit, monkeypatch):
    assert [ranks for _, ranks in recall_ranks(guesser, QUESTIONS)] == [[1]] * 3
    assert len(cloze_guesses(guesser, QUESTIONS).guesses) == 3
    monkeypatch.setattr(Guesser, "logit", logit)
    message = "the model guesser gives hidden words no probabilities: its weights are damaged, or too large"
    for call in (
        lambda: [*recall_ranks(guesser, QUESTIONS)],
        lambda: cloze_guesses(guesser, QUESTIONS),
        lambda: name_guesses(guesser, [NameQuestion("Anna", "city")]),
    ):
        with pytest.raises(DamagedModel, match=message):
            call()


class Overflow(Scorer):
    """Scores each candidate with what is no number."""

    name = "overflow"

    def __call__(self, documents):
        return [
            [
                np.full(len(mention.candidates or ()), np.nan, np.float32)
                for mention in document.mentions or ()
            ]
            for document in documents
        ]


def test_a_linker_says_so(tmp_path):
    with lexicon_kb(tmp_path) as kb:
        texts = ["the dogs bark in the bank and run"]
        assert any(linked.links for linked in Linker.open(kb)(texts))
        linker = Linker.open(kb)
        linker.scorer = Overflow()
        with pytest.raises(DamagedModel, match="the model overflow gives candidates no probabilities"):
            [*linker(texts)]
