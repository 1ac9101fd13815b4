"""`kgkit align`: a map from vectors into the space of an encoder's word pieces."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgkit.commands.messages import Messages
from kgkit.commands.options import DeviceOption, JSONOption, flag
from kgkit.commands.output import Column, write_json, write_table

if TYPE_CHECKING:
    from kgkit.embedding.align import Alignment, Check, Norms, Report
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
        str,
        typer.Option(
            "--encoder",
            metavar="ENCODER",
            help="Into its word pieces: a trained model, a folder, an installed package or a model of the "
            "Hugging Face hub.",
        ),
    ],
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Pairs to map, a word and a word piece a line with a tab between; by default equal words. "
            "For vectors of texts: a text and a word piece.",
        ),
    ] = None,
    rescale: Annotated[
        bool,
        flag(
            "--rescale",
            help="Give all mapped vectors the mean norm of the word pieces; least squares make them shorter.",
        ),
    ] = False,
    device: DeviceOption = "auto",
    as_json: JSONOption = False,
) -> None:
    """Fit the linear map that brings vectors into the space of an encoder's word pieces, as E-BERT does.

    The table says how often what a vector is mapped to is nearest to its own word: on pairs that the map
    was fitted on, on pairs held out, and on entities whose label is a word. The map that is kept is fitted
    on all pairs. Vectors of texts keep no words: the encoder that made them encodes the words of ENCODER.
    """
    from kgkit.embedding.align import align_encoder
    from kgkit.home import Home
    from kgkit.kb import open_kb
    from kgkit.models.encoders import load_encoder

    messages = Messages(bars=not as_json)
    began = time.monotonic()
    home = Home.find()
    vectors, kb_name = _open_vectors(home, name)
    with messages.progress(f"mapping {vectors.name}") as show, open_kb(kb_name, home.path) as kb:
        alignment = align_encoder(
            vectors, load_encoder(encoder, home, device=device), rescale=rescale, pairs=pairs, kb=kb,
            device=device,
            progress=lambda stage, count, total: show(f"{stage} {count:,} of {total:,}", count, total),
        )  # fmt: skip
    report = alignment.report
    messages.write(
        f"mapped {alignment.source} to {alignment.target} by {report.anchors:,} pairs in "
        f"{time.monotonic() - began:.1f} s"
    )
    if as_json:
        write_json(_as_dict(alignment))
    else:
        write_table(_columns(report), _rows(report))


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


def _columns(report: "Report") -> tuple[Column, ...]:
    accuracies = [f"Acc@{k}" for k in report.train.accuracy]
    headings = ("pairs", *accuracies, "error", "norm")
    return Column(heading=""), *(Column(heading=heading, align="right") for heading in headings)


def _rows(report: "Report") -> list[tuple[str, ...]]:
    checks = {"fitted on": report.train, "held out": report.held_out, "labels": report.labels}
    rows = [_row(label, check) for label, check in checks.items() if check is not None]
    blank = [""] * (len(report.train.accuracy) + 2)
    norms = {"entities": report.entities, "word pieces": report.target}
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
