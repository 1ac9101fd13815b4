"""Training an encoder from nothing, as a masked language model: a KnowBert without knowledge bases."""

import hashlib
from dataclasses import replace
from pathlib import Path

from kgkit.catalog.runs import sha256_of
from kgkit.encoder.fresh import EncoderShape, fresh_encoder
from kgkit.home import Home
from kgkit.methods.knowbert_settings import KnowBertTraining
from kgkit.versions import write_once


def begin_encoder(
    home: Home, training: KnowBertTraining, vocabulary: Path, shape: EncoderShape
) -> KnowBertTraining:
    """Draw the weights of an encoder, and return the settings that train it as a masked language model.

    It is a KnowBert without knowledge bases, and trained as one; the encoder is then in `knowbert/encoder`
    of the model, as transformers has it.

    Args:
        home: home whose cache keeps what the training begins as.
        training: data and settings; its encoder is not looked at.
        vocabulary, shape: as `fresh_encoder` takes them.

    Raises:
        The errors of `fresh_encoder`.
    """
    identity = repr((sha256_of(vocabulary), shape, training.seed)).encode()
    folder = home.path / "cache" / "fresh" / hashlib.blake2b(identity, digest_size=6).hexdigest()
    if not folder.exists():
        with write_once(folder) as staged:
            fresh_encoder(staged, vocabulary, shape, training.seed)
    return replace(training, encoder=str(folder), control=True)
