"""`kgkit align`: a map from vectors into the space of an encoder's word pieces."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, JSONOption, flag
from kgkit.commands.output import Column, write_json, write_table
from kgkit.errors import UsageError

if TYPE_CHECKING:
    from kgkit.embedding.align import AlignConfig, Alignment, Check, Norms, Report
    from kgkit.home import Home
    from kgkit.vectors import Vectors

_DEFAULT = "wikipedia2vec"
"""The vectors of a KB that are meant where only the KB is named, and it has several."""


def align(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KB", help="KB/NAME, or a KB whose only vectors are meant, or those called wikipedia2vec."
        ),
    ],
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="ENCODER",
            help="Into its word pieces: a trained model, a folder, an installed package or a model of the "
            "Hugging Face hub.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="KB/NAME", help="Map into the space of these vectors, and not of an encoder."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Pairs to map, two names a line with a tab between; by default equal words, or keys. For "
            "vectors of texts: a text and a word piece.",
        ),
    ] = None,
    held_out: Annotated[
        float,
        typer.Option("--held-out", metavar="SHARE", help="Share of the pairs held out for the check."),
    ] = 0.1,
    ridge: Annotated[
        float,
        typer.Option("--ridge", metavar="X", help="Ridge penalty, for few pairs; 0 is plain least squares."),
    ] = 0.0,
    rescale: Annotated[
        bool,
        flag(
            "--rescale",
            help="Give all mapped vectors the mean norm of the word pieces; least squares make them shorter.",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Random seed for the choice of held-out pairs.")
    ] = 0,
    device: DeviceOption = "auto",
    as_json: JSONOption = False,
) -> None:
    """Fit the linear map that brings vectors into another space, as E-BERT does.

    The table says how often what a vector is mapped to is nearest to its own word: on pairs that the map
    was fitted on, on pairs held out, and on entities whose label is a word. The map that is kept is fitted
    on all pairs. Vectors of texts keep no words: the encoder that made them encodes the words of ENCODER.
    """
    from kgkit.embedding.align import AlignConfig
    from kgkit.home import Home

    if (encoder is None) == (to is None):
        raise UsageError(
            "give exactly one of --encoder ENCODER and --to KB/NAME, the space that vectors are mapped into"
        )
    config = AlignConfig(held_out=held_out, ridge=ridge, rescale=rescale, seed=seed)
    messages = Messages(bars=not as_json)
    began = time.monotonic()
    where = Home.find()
    if encoder is not None:
        alignment = _to_encoder(where, name, encoder, pairs, config, device, messages)
    else:
        alignment = _by_entities(where, name, to or "", pairs, config, messages)
    report = alignment.report
    messages.write(
        f"mapped {alignment.source} to {alignment.target} by {report.anchors:,} pairs in "
        f"{time.monotonic() - began:.1f} s"
    )
    if as_json:
        write_json(_as_dict(alignment))
        return
    write_table(_columns(config.neighbours), _rows(report, "target" if encoder is None else "word pieces"))


def _to_encoder(
    home: "Home",
    name: str,
    encoder: str,
    pairs: Path | None,
    config: "AlignConfig",
    device: str,
    messages: Messages,
) -> "Alignment":
    from kgkit.embedding.align import align_encoder
    from kgkit.kb import open_kb
    from kgkit.models.encoders import load_encoder

    vectors, kb_name = _open_vectors(home, name)
    with messages.progress(f"mapping {vectors.name}") as show, open_kb(kb_name, home.path) as kb:
        loaded = load_encoder(encoder, home, device=device)
        return align_encoder(
            vectors, loaded, config, pairs=pairs, kb=kb, device=device,
            progress=lambda stage, count, total: show(f"{stage} {count:,} of {total:,}", count, total),
        )  # fmt: skip


def _by_entities(
    home: "Home", name: str, to: str, pairs: Path | None, config: "AlignConfig", messages: Messages
) -> "Alignment":
    from kgkit.embedding.align import align_entities
    from kgkit.kb import open_kb

    (source, kb), (target, other) = _open_vectors(home, name), _open_vectors(home, to)
    with (
        messages.progress(f"mapping {source.name}") as show,
        open_kb(kb, home.path) as source_kb,
        open_kb(other, home.path) as target_kb,
    ):
        pairing = None if pairs is None else (pairs, source_kb.store.id_of, target_kb.store.id_of)
        return align_entities(
            source,
            target,
            config,
            pairs=pairing,
            progress=lambda stage, count, total: show(f"{stage} {count:,} of {total:,}", count, total),
        )


def _open_vectors(home: "Home", name: str) -> "tuple[Vectors, str]":
    """Open vectors; return them and the name of their KB."""
    from kgkit.kb import open_kb
    from kgkit.models.folder import VECTORS
    from kgkit.vectors import vectors_names

    kb, _, last = name.partition("/")
    with open_kb(kb, home.path) as opened:
        names = vectors_names(opened.home)
        only = names[0] if len(names) == 1 else _DEFAULT if names else VECTORS
        return opened.vectors(last or only), kb


def _columns(neighbours: tuple[int, ...]) -> tuple[Column, ...]:
    figures = [
        Column(heading=heading, align="right")
        for heading in ("pairs", *_accuracies(neighbours), "error", "norm")
    ]
    return Column(heading=""), *figures


def _accuracies(neighbours: tuple[int, ...]) -> list[str]:
    return [f"Acc@{k}" for k in neighbours]


def _rows(report: "Report", target: str) -> list[tuple[str, ...]]:
    checks = {"fitted on": report.train, "held out": report.held_out, "labels": report.labels}
    blank = [""] * (len(report.train.accuracy) + 2)
    rows = []
    for label, check in checks.items():
        if check is not None:
            rows.append(_row(label, check))
        elif label == "held out":
            rows.append((label, "0", *blank))
    norms = {"entities": report.entities, target: report.target}
    return rows + [(label, *blank, _number(each)) for label, each in norms.items()]


def _row(label: str, check: "Check") -> tuple[str, ...]:
    return (
        label,
        str(check.anchors),
        *(f"{share:.3f}" for share in check.accuracy.values()),
        f"{check.error:.3f}",
        _number(check.norms),
    )


def _number(norms: "Norms | None") -> str:
    return "" if norms is None else f"{norms.mean:.3f}"


def _as_dict(alignment: "Alignment") -> dict[str, Any]:
    import msgspec

    report: dict[str, Any] = msgspec.to_builtins(alignment.report, str_keys=True)
    return {
        **report,
        "vectors": alignment.source,
        "target": alignment.target,
        "fingerprint": alignment.fingerprint,
        "target_norms": report["target"],
    }
