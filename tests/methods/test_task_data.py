"""The examples of a training: what is held out of them."""

import logging

import pytest

pytest.importorskip("torch")

from kgkit.methods.answering import TaskData
from kgkit.methods.kambert_settings import KamBertTraining


@pytest.mark.parametrize(
    ("examples", "with_dev", "warns"),
    [(9, False, False), (190, False, True), (200, False, False), (10, True, False)],
)
def test_fewer_than_twenty_held_out_examples_are_warned_of_unless_dev_has_them(
    tmp_path, caplog, examples, with_dev, warns
):
    data = tmp_path / "data.tsv"
    data.write_text("label\ttext_a\n" + "".join(f"{n % 2}\ttext {n}\n" for n in range(examples)))
    with caplog.at_level(logging.WARNING):
        read = TaskData.read(
            KamBertTraining(task="classification", data=(data,), dev=(data,) if with_dev else ())
        )
    assert (f"{len(read.held_out)} held-out examples are few to choose an epoch by" in caplog.text) == warns
