"""Training an encoder from nothing, as a masked language model."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Final

from kgkit.catalog.runs import sha256_of
from kgkit.encoder.fresh import EncoderShape, fresh_encoder
from kgkit.home import Home
from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.models.kinds import KNOWBERT
from kgkit.training.tasks import train_method
from kgkit.types import Progress
from kgkit.versions import write_once

KIND: Final = KNOWBERT
"""The kind of the model: its encoder is that of a KnowBert without knowledge bases."""

EncoderTraining = KnowBertTraining
"""Data and settings of a training."""


def train_encoder(
    home: Home,
    name: str,
    training: EncoderTraining,
    vocabulary: Path,
    shape: EncoderShape,
    *,
    device: str = "auto",
    command: str = "",
    progress: Progress | None = None,
) -> Path:
    """Train an encoder from nothing as a masked language model, and write it to `models/NAME` of *home*.

    It is a KnowBert without knowledge bases, and trained as one.

    Args:
        home: home that the model is kept in; what it begins as is kept in its cache.
        vocabulary, shape: as `fresh_encoder` takes them.
        training: data and settings; its encoder is not looked at.
        name, device, command, progress: as `train_method` takes them.

    Returns:
        Folder of the model's files, a version of `models/NAME`; the encoder is in `knowbert/encoder`, as
        transformers has it.

    Raises: as `fresh_encoder` and `train_method` do.
    """
    identity = repr((sha256_of(vocabulary), shape, training.seed)).encode()
    folder = home.path / "cache" / "fresh" / hashlib.blake2b(identity, digest_size=6).hexdigest()
    if not folder.exists():
        with write_once(folder) as staged:
            fresh_encoder(staged, vocabulary, shape, training.seed)
    begins = replace(training, encoder=str(folder), control=True)
    return train_method(KNOWBERT, home, name, begins, device=device, command=command, progress=progress)
