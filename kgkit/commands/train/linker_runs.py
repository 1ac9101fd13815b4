"""Trainings of linkers as runs of the catalog, and what is written of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgkit.commands.messages import Messages
from kgkit.commands.output import Column, write_line, write_table
from kgkit.commands.train.methods import TrainingOptions, record_training, write_figures

if TYPE_CHECKING:
    from kgkit.catalog.runs import RunRecord
    from kgkit.home import Home
    from kgkit.kb import KnowledgeBase
    from kgkit.models.manifest import ModelManifest
    from kgkit.training.linkers.settings import LinkerTraining
    from kgkit.types import Progress

_SCORES = ("held_out_accuracy", "calibration_error_before", "calibration_error")
_SHARES = (*_SCORES, "prior_accuracy", "linked_f1", "threshold")


def record_linker(
    kb: "KnowledgeBase",
    name: str,
    training: "LinkerTraining",
    options: TrainingOptions,
) -> None:
    """Train a linker as a run of the catalog, and write what was measured.

    Args:
        kb: knowledge base that is linked to.
        name: name of the linker.
        training: settings.
        options: as `record_training` takes them.
    """
    from kgkit.home import Home
    from kgkit.models.kinds import LINKER
    from kgkit.models.needs import needed_builds
    from kgkit.training.linkers.comparison import COMPARED, HELPS
    from kgkit.training.linkers.train import train_linker

    def note_scores(record: "RunRecord", manifest: "ModelManifest") -> None:
        results = manifest.results
        held_out = int(results.get("held_out", 0))
        for metric in _SCORES if held_out else ():
            record.score(training.task, "held out", metric, results[metric], held_out)
        if documents := int(results.get("linked_documents", 0)):
            record.score(training.task, "held out", "micro f1", results["linked_f1"], documents)

    def train(_: "Home", tell: "Progress") -> Path:
        return train_linker(kb, name, training, device=options.device, progress=tell)

    manifest = record_training(
        LINKER, name, asdict(training), training.files, train, note_scores, options, seeds=[training.seed]
    )
    if manifest is None:
        return
    builds = needed_builds(manifest.needs, Home.find())
    title = ", ".join(f"{kb}@{build}" for kb, build in builds.items()) or "any knowledge base"
    write_line(f"{name}: {manifest.type}, {manifest.task}, for {title}")
    write_figures(
        (what.replace("_", " "), f"{value:.3f}" if what in _SHARES else f"{value:,.0f}")
        for what, value in manifest.results.items()
        if what not in (COMPARED, HELPS)
    )
    if rows := manifest.results[COMPARED]:
        _write_comparison(name, rows, manifest.mentions)


def _write_comparison(name: str, rows: Sequence[Mapping[str, Any]], mentions: str) -> None:
    """Write how a linker compares with no training on what was held out.

    Args:
        name: name of the linker.
        rows: rows of `kgkit.training.linkers.comparison`, as a manifest has them.
        mentions: tagger whose names the linker links by default; "": none.
    """
    import msgspec

    from kgkit.training.linkers.comparison import ComparisonRow, table_cells

    heading, *lines = table_cells([msgspec.convert(row, ComparisonRow) for row in rows])
    write_line()
    write_table([Column(heading=cell) for cell in heading], lines)
    tried = {row["mentions"] for row in rows} - {"given"}
    if len(tried) > 1:
        Messages().write(f"{name} links the names of {mentions or 'the knowledge base'}, which does best")
