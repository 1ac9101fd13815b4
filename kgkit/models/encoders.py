"""The encoder that a name stands for: that of a trained model, or one that `Encoder.load` finds.

And the one inside a head that has been opened.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.errors import UsageError
from kgkit.home import Home, explicit_path
from kgkit.models.folder import has_model, read_model
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST, read_header
from kgkit.versions import find_content

if TYPE_CHECKING:
    from kgkit.encoder import Encoder
    from kgkit.heads.folder import EncoderHead


def load_encoder(name: str, home: Home, *, device: str = "auto") -> "Encoder":
    """Load an encoder by its name, or the one that a trained model has with it.

    A trained model goes before a package or a model of the hub with the same name. Its encoder is
    what it reads texts with; knowledge that the model adds to it stays away.

    Args:
        name: name of a trained model in *home*, or its folder; else a name that `Encoder.load` knows.
        home: home that trained models lie in.
        device: torch device of the encoder.

    Returns:
        The encoder; it is called *name*.

    Raises:
        UsageError: if the model has no encoder of its own.
        NotThere, MissingExtra, SourceError: as `Encoder.load` does.
        DamagedModel: if the model cannot be read.
    """
    from kgkit.encoder import Encoder

    def load(folder: Path) -> Encoder:
        encoder = Encoder.load(_encoder_in(folder), device=device)
        encoder.name = name
        return encoder

    path = explicit_path(name)
    if has_model(home, name) if path is None else find_content(path, MANIFEST) is not None:
        return read_model(name, home, None, load)
    return Encoder.load(name, device=device)


def _encoder_in(folder: Path) -> str:
    """Return the path of the encoder of the model in *folder*.

    Raises:
        UsageError: if it has none.
    """
    header = read_header(folder)
    kind = find_kind(header, folder)
    path = folder.absolute() / kind.encoder
    if not kind.encoder or not path.is_dir():
        advice = f": name {header.encoder}, which it takes" if header.encoder else ""
        raise UsageError(
            f"the model {header.name} is {kind.called(header)}, and has no encoder of its own{advice}"
        )
    return str(path)


def encoder_inside(head: "EncoderHead", name: str, folder: Path) -> "Encoder":
    """Return the encoder inside a head, with the tokenizer in *folder*."""
    from kgkit.encoder import Encoder
    from kgkit.encoder.loading import load_tokenizer

    model: Any = head.model.base_model
    return Encoder(name, folder, model, load_tokenizer(folder))
