"""Opening a trained model in one of its roles, whatever its kind."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.errors import SourceError, UnknownName, UsageError
from kgkit.home import Home
from kgkit.models.folder import read_model
from kgkit.models.kinds import LACKS, Role, find_kind
from kgkit.models.manifest import check_sizes, damaged, decode_manifest, read_header

if TYPE_CHECKING:
    from typing import Self

    from kgkit.kb import KnowledgeBase


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How a model is to be opened; each role takes what concerns it.

    Attributes:
        home: where models and knowledge bases lie.
        device: torch device that the model computes on.
        kb: knowledge base that a linker scores candidates of.
        vectors: name of the entities' vectors that a linker takes in the place of its own.
        use_threshold: whether a linker with a threshold of its own links only what scores above it.
    """

    home: Home
    device: str = "auto"
    kb: "KnowledgeBase | None" = None
    vectors: str | None = None
    use_threshold: bool = False

    def kb_for(self, model: str) -> "KnowledgeBase":
        """Return the knowledge base that a linker, called *model*, is opened on.

        Raises:
            UsageError: if there is none.
        """
        if self.kb is None:
            raise UsageError(
                f"the model {model} scores the candidates of a knowledge base, and none is given: open it "
                f"with kb=…, or link texts with kgkit.Linker.open(KB, model={model!r})"
            )
        return self.kb


class OpenModel:
    """A model that may have opened knowledge bases, which `close`, or the end of `with`, closes."""

    _resources: ExitStack

    def close(self) -> None:
        """Close what was opened for it."""
        self._resources.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_model(
    model: str | os.PathLike[str],
    role: Role | None = None,
    *,
    home: Home | str | os.PathLike[str] | None = None,
    device: str = "auto",
    kb: "KnowledgeBase | None" = None,
    vectors: str | None = None,
    use_threshold: bool = False,
) -> Any:
    """Open a trained model.

    Args:
        model: its name in *home*, or its folder.
        role: what it is opened as, see `kgkit.models.kinds`; None: what it mainly is.
        home: where models and knowledge bases lie.
        device: torch device that the model computes on.
        kb: as in `Opening`, for linkers.
        vectors: as in `Opening`, for linkers.
        use_threshold: as in `Opening`, for linkers.

    Returns:
        What the role asks for: a linker is a `Scorer`, a tagger a `MentionTagger`, ….

    Raises:
        UnknownName, NotThere: if there is no such model, or something that it needs is gone.
        UsageError: if the model does not have the role; says what it does instead. If *kb* is a name, or
            *model* neither a name nor a path.
        DamagedModel, StaleModel: if it cannot be read, or was trained for something else.
        MissingExtra: if torch, transformers or safetensors is not installed.

    Examples:
        >>> tagger = open_model("conll")
        >>> [document] = tagger(["EU rejects German call."])
    """
    if isinstance(kb, str | os.PathLike):
        raise UsageError(
            f"kb is {kb!r}; it is a knowledge base that is open: open it with kgkit.open_kb({str(kb)!r}), or "
            f"link texts with kgkit.Linker.open({str(kb)!r}, model={model!r})"
        )
    opening = Opening(
        home=home if isinstance(home, Home) else Home.find(home), device=device, kb=kb, vectors=vectors,
        use_threshold=use_threshold,
    )  # fmt: skip
    return read_model(model, opening.home, role, lambda folder: open_folder(folder, role, opening))


def open_folder(folder: Path, role: Role | None, opening: Opening) -> Any:
    """Open the model whose files lie in *folder*; see `open_model`."""
    header = read_header(folder)
    kind = find_kind(header, folder)
    if role is not None and role not in kind.roles:
        if role not in LACKS:
            raise UnknownName("role", role, tuple(LACKS))
        raise kind.missing(role, header)
    manifest = decode_manifest(folder, kind.manifest)
    roles = kind.roles_in(manifest)
    if role is not None and role not in roles:
        raise kind.missing(role, manifest)
    check_sizes(folder, manifest)
    chosen = role or roles[0]
    open_role = kind.load(kind.roles[chosen], f"the role {chosen} of")
    try:
        return open_role(folder, manifest, opening)
    except SourceError as error:
        if error.path is None or not error.path.resolve().is_relative_to(folder.resolve()):
            raise
        raise damaged(folder, str(error)) from error
