"""Views of what a home has: knowledge bases, models, runs, scores."""

from typing import Final

from fastapi import APIRouter
from fastapi.responses import Response

from kgkit.serving.forms import parse_integer
from kgkit.serving.page.catalog_queries import (
    kb_facts,
    kb_rows,
    model_facts,
    model_rows,
    run_page,
    run_view,
    score_page,
)
from kgkit.serving.page.inputs import paging_of
from kgkit.serving.page.rendering import render
from kgkit.serving.service import Service

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
