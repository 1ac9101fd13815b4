"""Passages of plain text: files in which an encoder has no word piece say so."""

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.evaluation.examples import warn_of_few_held_out
from kgkit.inputs.texts import TextReader
from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.training.passages import passages_of
from tests.tiny_encoder import tiny_encoder

NOTHING = "\u200b\n\n\u200b\u200d\n"
"""Characters that BERT's tokenizer leaves out: documents without a word piece."""


@pytest.fixture
def read(tmp_path):
    encoder = Encoder.load(str(tiny_encoder(tmp_path / "tiny")), device="cpu", dtype="float32")

    def read(data: str, *dev: str, paired: bool = False):
        paths = []
        for name, content in zip(("data.txt", "dev.txt"), (data, *dev), strict=False):
            paths.append(tmp_path / name)
            paths[-1].write_text(content, encoding="utf-8")
        files: list[tuple[Path, ...]] = [tuple(paths[:1]), tuple(paths[1:])]
        training = KnowBertTraining(task="mlm", data=files[0], dev=files[1], encoder="e", control=True)
        return passages_of(training, TextReader(encoder, size=16), paired=paired, progress=None)

    return read


def test_files_that_choose_the_epoch_have_word_pieces(read):
    assert len(read("the dog barks\n", "a cat eats\n").held_out) == 1
    with pytest.raises(
        UsageError, match=r"choose the epoch by: the encoder .* of .*dev\.txt, which begins with"
    ):
        read("the dog barks\n", NOTHING)


@pytest.mark.parametrize("paired", [False, True])
def test_data_have_word_pieces(read, paired):
    with pytest.raises(
        UsageError, match=r"nothing to learn: the encoder .* of .*data\.txt, which begins with '"
    ):
        read(NOTHING, paired=paired)


def test_few_passages_are_counted(caplog):
    warn_of_few_held_out(1, "passages")
    warn_of_few_held_out(2, "passages")
    one, two = (record.getMessage() for record in caplog.records)
    assert one.startswith("1 held-out passage is too few to choose an epoch by")
    assert two.startswith("2 held-out passages are few to choose an epoch by")
