"""The encoder that a method begins as: a folder, a package, a hub id, or that of a trained KnowBert."""

from typing import Any

from kgkit.encoder import Encoder
from kgkit.errors import UsageError
from kgkit.home import Home
from kgkit.linking.knowbert import FOLDER
from kgkit.models.encoders import load_encoder as load_by_name
from kgkit.models.folder import find_trained, has_model
from kgkit.models.kinds import EBERT, KBERT, KNOWBERT, Kind
from kgkit.models.manifest import read_header

ENCODER = "encoder"


def encoder_at(home: Home, name: str, kind: Kind[Any] = KBERT) -> str:
    """Return where an encoder is: the name of a KnowBert, as `kgkit train encoder` makes, means its own.

    Args:
        home: home of the models.
        name: name of a model, or of an encoder.
        kind: kind that begins as it.

    Raises:
        UsageError: if it is a K-BERT or an E-BERT, or was trained with knowledge bases.
    """
    if not has_model(home, name):
        return name
    folder = find_trained(home, name)
    header = read_header(folder)
    for trained in (KBERT, EBERT):
        if header.kind == trained.name:
            raise UsageError(f"{name} is {trained.title}, and no encoder: begin as what it began as")
    if header.kind != KNOWBERT.name:
        return name
    if any(about.joint for about in KNOWBERT.read(folder).kbs.values()):
        raise UsageError(
            f"the encoder of {name} was trained with its knowledge bases, which {kind.title} does not read: "
            "begin as one that was trained without, as `kgkit train encoder` makes"
        )
    return str((folder / FOLDER / ENCODER).absolute())


def load_encoder(home: Home, name: str, kind: Kind[Any], device: str) -> Encoder:
    """Load the encoder of `encoder_at`; it is called *name*.

    Raises:
        UsageError: as `encoder_at` does, or if a model has no encoder of its own.
        NotThere: if there is no such encoder.
    """
    encoder_at(home, name, kind)
    return load_by_name(name, home, device=device)
