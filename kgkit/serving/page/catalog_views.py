"""Views of what a home has: knowledge bases, models, runs, scores.

No paths of this machine are shown: files by their names, commands without folders.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter
from fastapi.responses import Response

from kgkit.errors import KgkitError, NotThere
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.models.listing import describe_model
from kgkit.serving.forms import parse_integer
from kgkit.serving.page.addresses import paging_of
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import without_paths
from kgkit.serving.rest import kb_records
from kgkit.serving.service import Service
from kgkit.vectors import vectors_names

if TYPE_CHECKING:
    from kgkit.catalog import Run, Score

EXAMPLES: Final = 8
"""Entities of a knowledge base that its view shows."""


def _kb_rows(service: Service) -> list[dict[str, Any]]:
    """Return the rows of the list of knowledge bases, the default one first."""
    return [
        record | {"vectors": vectors_names(service.kb(record["name"]).home)} for record in kb_records(service)
    ]


def kb_facts(service: Service, name: str) -> dict[str, Any]:
    """Return the content of the view of a knowledge base.

    Raises:
        UnknownName: if it is not served.
    """
    kb = service.kb(name)
    manifest, source = kb.manifest, kb.manifest.source
    return {
        "manifest": manifest,
        "source": source,
        "size": sum(manifest.files.values()),
        "kinds": manifest.counts.entities,
        "relations": kb.relations,
        "vectors": [_vectors_row(service, kb, vectors) for vectors in vectors_names(kb.home)],
        "models": service.served(name).models,
        "problem": service.problems().get(name, ""),
        "examples": kb.store.entities([*_first_ids(kb)]),
    }


def _vectors_row(service: Service, kb: KnowledgeBase, name: str) -> dict[str, Any]:
    """Return the vectors that the view of a knowledge base shows."""
    try:
        manifest = kb.vectors(name).manifest
    except KgkitError as error:
        return {"name": name, "error": without_paths(str(error), service.home)}
    return {
        "name": name,
        "error": "",
        "method": manifest.method,
        "rows": manifest.rows,
        "width": manifest.width,
    }


def _first_ids(kb: KnowledgeBase) -> Iterator[int]:
    """Yield the ids of the first entities that have not been retired."""
    yield from islice((number for number in range(kb.id_count) if number not in kb.store.retired), EXAMPLES)


def _model_facts(service: Service, name: str) -> dict[str, Any]:
    """Return the content of the view of a model.

    Raises:
        UnknownName, NotThere: if there is no such model.
        DamagedModel: if it cannot be read.
    """
    if name not in {summary.name for summary in service.installed_models()}:  # a path is no name
        raise NotThere(f"no model {name!r}; the page of models lists those of this machine")
    facts = describe_model(name, service.home)
    hidden = ("path", "sizes", "sha256", "needs")
    shown = {
        key: without_paths(_plain(value), service.home)
        for key, value in facts.items()
        if key not in hidden and value not in ("", None, [], {})
    }
    return {"shown": shown, "needs": facts["needs"]}


def _recorded_runs(home: Home, model: str = "") -> list["Run"]:
    """Return the runs in the catalog, newest first; those of one model, unless *model* is empty."""
    from kgkit.catalog import Catalog

    with Catalog.open(home) as catalog:
        return catalog.runs(model or None)


def _recorded_scores(home: Home) -> list[tuple["Score", "Run"]]:
    """Return the scores in the catalog with their runs, newest first."""
    return [(score, run) for run in _recorded_runs(home) for score in run.scores]


def _run_view(run: "Run", home: Home) -> dict[str, Any]:
    config = {
        name: without_paths(_plain(value), home)
        for name, value in run.config.items()
        if value not in (None, "", [], {})
    }
    data = {Path(name).name: digest or "" for name, digest in run.data.items()}
    return {"run": run, "command": without_paths(run.command, home), "config": config, "data": data}


def _plain(value: Any) -> str:
    """Return a setting as people write it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return str(value)


ROWS: Final = 50
"""Runs, or scores, of a page."""


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the views of the catalog to a router."""

    @routes.get("/kbs")
    async def show_kbs() -> Response:
        """List the knowledge bases that are served."""
        rows = await service.call(_kb_rows, service)
        return render("kbs.html", "kbs", rows=rows, problems=service.problems())

    @routes.get("/kb")
    async def show_kb(name: str) -> Response:
        """Show what a knowledge base says of itself."""
        return render("kb.html", "kbs", kb=name, facts=await service.call(kb_facts, service, name))

    @routes.get("/models")
    async def show_models() -> Response:
        """List the trained models."""
        return render("models.html", "models", rows=await service.call(service.installed_models))

    @routes.get("/model")
    async def show_model(name: str) -> Response:
        """Show what a model says of itself."""
        facts = await service.call(_model_facts, service, name)
        return render("model.html", "models", name=name, facts=facts)

    @routes.get("/runs")
    async def show_runs(model: str = "", page: str = "") -> Response:
        """List trainings and evaluations, newest first."""
        number = parse_integer("page", page, 1, most=1_000_000)
        runs = await service.call(_recorded_runs, service.home, model)
        paging = paging_of("/runs", len(runs), number, ROWS, model=model)
        rows = [_run_view(run, service.home) for run in runs[paging.start : paging.last]]
        return render("runs.html", "runs", rows=rows, model=model, paging=paging)

    @routes.get("/run")
    async def show_run(id: str) -> Response:
        """Show a training or an evaluation."""
        number = parse_integer("id", id, 1, most=2**62)
        runs = await service.call(_recorded_runs, service.home)
        if not (found := [run for run in runs if run.id == number]):
            raise NotThere(f"no run {number:,} in the catalog; the page of runs lists them")
        return render("run.html", "runs", run=_run_view(found[0], service.home))

    @routes.get("/scores")
    async def show_scores(task: str = "", dataset: str = "", page: str = "") -> Response:
        """List what runs have measured."""
        number = parse_integer("page", page, 1, most=1_000_000)
        scores = await service.call(_recorded_scores, service.home)
        chosen = [
            (score, run)
            for score, run in scores
            if task in ("", score.task) and dataset in ("", score.dataset)
        ]
        paging = paging_of("/scores", len(chosen), number, ROWS, task=task, dataset=dataset)
        tasks, datasets = (
            sorted({getattr(score, name) for score, _ in scores}) for name in ("task", "dataset")
        )
        return render(
            "scores.html", "scores", rows=chosen[paging.start : paging.last], task=task, dataset=dataset,
            tasks=tasks, datasets=datasets, paging=paging,
        )  # fmt: skip
