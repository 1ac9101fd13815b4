"""Views of what a home has: knowledge bases, models, runs, scores.

No paths of this machine are shown: files by their names, commands without folders.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kgkit.errors import KgkitError, NotThere
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.models.listing import ModelSummary, describe_model, models
from kgkit.serving.problems import without_paths
from kgkit.serving.service import Service
from kgkit.vectors import vectors_names

if TYPE_CHECKING:
    from kgkit.catalog import Run
from fastapi import APIRouter
from fastapi.responses import Response

from kgkit.serving.forms import parse_integer
from kgkit.serving.page.addresses import paging_of
from kgkit.serving.page.rendering import render

EXAMPLES: Final = 8
"""Entities of a knowledge base that its view shows."""


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A training or an evaluation, without paths.

    Attributes:
        run: row of the catalog.
        command: command as it was typed.
        config: settings by name.
        data: digest of each file that was read, by its name.
    """

    run: "Run"
    command: str
    config: Mapping[str, str]
    data: Mapping[str, str]


def kb_rows(service: Service) -> list[dict[str, Any]]:
    """Return the rows of the list of knowledge bases, the default one first."""
    rows = []
    for name in service.kb_names():
        kb = service.kb(name)
        manifest = kb.manifest
        rows.append(
            {
                "name": name,
                "build": kb.build,
                "entities": manifest.entities,
                "triples": manifest.triples,
                "aliases": manifest.aliases,
                "source": f"{manifest.source.name} {manifest.source.version}".strip(),
                "vectors": vectors_names(kb.home),
                "models": service.served(name).models,
            }
        )
    return rows


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


def model_rows(service: Service) -> list[ModelSummary]:
    """Return the models of the home, and those that come with kgkit."""
    return [
        summary
        if summary.error is None
        else msgspec.structs.replace(summary, error=without_paths(summary.error, service.home))
        for summary in models(service.home.path)
    ]


def model_facts(service: Service, name: str) -> dict[str, Any]:
    """Return the content of the view of a model.

    Raises:
        UnknownName, NotThere: if there is no such model.
        DamagedModel: if it cannot be read.
    """
    if name not in {summary.name for summary in models(service.home.path)}:  # a path is no name
        raise NotThere(f"no model {name!r}; the page of models lists those of this machine")
    facts = describe_model(name, service.home)
    hidden = ("path", "sizes", "sha256", "needs")
    shown = {
        key: without_paths(_plain(value), service.home)
        for key, value in facts.items()
        if key not in hidden and value not in ("", None, [], {})
    }
    return {"shown": shown, "needs": facts["needs"]}


def run_page(home: Home, model: str, start: int, size: int) -> tuple[int, list[RunView]]:
    """Return the number of runs, and some of them, newest first.

    Args:
        home: home with the catalog.
        model: name of the only model; empty for all.
        start: position of the first run, from 0.
        size: largest number of runs.
    """
    from sqlalchemy import func, select

    from kgkit.catalog import Catalog, Model, Run

    with Catalog.open(home) as catalog, catalog.reading() as session:
        query = select(Run).where(Run.home == catalog.home)
        if model:
            query = query.join(Run.model).where(Model.name == model)
        total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
        rows = session.scalars(query.order_by(Run.started.desc(), Run.id.desc()).offset(start).limit(size))
        return total, [_run_view(row, home) for row in rows.unique()]


def run_view(home: Home, number: int) -> RunView:
    """Return a run by its number.

    Raises:
        NotThere: if there is none.
    """
    from kgkit.catalog import Catalog, Run

    with Catalog.open(home) as catalog, catalog.reading() as session:
        row = session.get(Run, number)
        if row is None or row.home != catalog.home:
            raise NotThere(f"no run {number:,} in the catalog; the page of runs lists them")
        return _run_view(row, home)


def score_page(
    home: Home, task: str, dataset: str, start: int, size: int
) -> tuple[int, Sequence[Any], list[str], list[str]]:
    """Return the number of scores, some of them, newest first, and the tasks and data sets that there are.

    Args:
        home: home with the catalog.
        task: name of the only task; empty for all.
        dataset: name of the only data set; empty for all.
        start: position of the first score, from 0.
        size: largest number of scores.
    """
    from sqlalchemy import func, select

    from kgkit.catalog import Catalog, Model, Run, Score

    with Catalog.open(home) as catalog, catalog.reading() as session:
        of_home = Run.home == catalog.home
        query = (
            select(Score, Run.id, Run.started, Model.name).join(Score.run).outerjoin(Run.model).where(of_home)
        )
        if task:
            query = query.where(Score.task == task)
        if dataset:
            query = query.where(Score.dataset == dataset)
        total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
        ordered = query.order_by(Run.started.desc(), Run.id.desc(), Score.id)
        rows = session.execute(ordered.offset(start).limit(size)).all()
        names = [
            sorted(session.scalars(select(column).distinct().join(Score.run).where(of_home)))
            for column in (Score.task, Score.dataset)
        ]
        return total, rows, names[0], names[1]


def _run_view(run: "Run", home: Home) -> RunView:
    config = {
        name: without_paths(_plain(value), home)
        for name, value in run.config.items()
        if value not in (None, "", [], {})
    }
    data = {Path(name).name: digest or "" for name, digest in run.data.items()}
    return RunView(run=run, command=without_paths(run.command, home), config=config, data=data)


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
        rows = await service.call(kb_rows, service)
        return render("kbs.html", "kbs", rows=rows, problems=service.problems())

    @routes.get("/kb")
    async def show_kb(name: str) -> Response:
        """Show what a knowledge base says of itself."""
        return render("kb.html", "kbs", kb=name, facts=await service.call(kb_facts, service, name))

    @routes.get("/models")
    async def show_models() -> Response:
        """List the trained models."""
        return render("models.html", "models", rows=await service.call(model_rows, service))

    @routes.get("/model")
    async def show_model(name: str) -> Response:
        """Show what a model says of itself."""
        facts = await service.call(model_facts, service, name)
        return render("model.html", "models", name=name, facts=facts)

    @routes.get("/runs")
    async def show_runs(model: str = "", page: str = "") -> Response:
        """List trainings and evaluations, newest first."""
        number = parse_integer("page", page, 1, most=1_000_000)
        total, rows = await service.call(run_page, service.home, model, (number - 1) * ROWS, ROWS)
        paging = paging_of("/runs", total, number, ROWS, model=model)
        return render("runs.html", "runs", rows=rows, model=model, paging=paging)

    @routes.get("/run")
    async def show_run(id: str) -> Response:
        """Show a training or an evaluation."""
        number = parse_integer("id", id, 1, most=2**62)
        return render("run.html", "runs", run=await service.call(run_view, service.home, number))

    @routes.get("/scores")
    async def show_scores(task: str = "", dataset: str = "", page: str = "") -> Response:
        """List what runs have measured."""
        number = parse_integer("page", page, 1, most=1_000_000)
        total, rows, tasks, datasets = await service.call(
            score_page, service.home, task, dataset, (number - 1) * ROWS, ROWS
        )
        paging = paging_of("/scores", total, number, ROWS, task=task, dataset=dataset)
        return render(
            "scores.html", "scores", rows=rows, task=task, dataset=dataset, tasks=tasks, datasets=datasets,
            paging=paging,
        )  # fmt: skip
