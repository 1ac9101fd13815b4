"""The first view: a text with its links."""

from dataclasses import replace
from typing import Annotated, Any, Final
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Form
from fastapi.responses import RedirectResponse, Response

from kgkit.errors import KgkitError
from kgkit.linking import Linker
from kgkit.serving.page.addresses import address, fits_address
from kgkit.serving.page.inputs import kb_name, number
from kgkit.serving.page.linked_text import FindEntity, TextView, text_view
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import Service
from kgkit.types import Document, Entity

EXAMPLES: Final = (
    "The bank raised its rates while the river rose over its bank.",
    "Germany beat Japan in the final, and the coach praised his players.",
)
CANDIDATES: Final = 6
"""Candidates of a link that are shown."""

COHERENCE: Final = (("", "none"), ("graph", "by the graph"))


class ExplainingLinkers:
    """Linkers whose candidates have the parts of their scores.

    They share scorer and generator with those that are served, and go when these go.
    """

    def __init__(self) -> None:
        self._linkers: WeakKeyDictionary[Linker, dict[tuple[float | None, bool], Linker]] = (
            WeakKeyDictionary()
        )

    def linker(self, base: Linker, threshold: float | None, *, coherence: bool) -> Linker:
        """Return a linker of other settings.

        Args:
            base: linker that is served.
            threshold: least score of a link; None: that of the base.
            coherence: whether links of a document are weighed by the graph.
        """
        variants = self._linkers.setdefault(base, {})
        variant = threshold, coherence
        if variant not in variants:
            if len(variants) >= CANDIDATES:
                variants.clear()
            config = replace(
                base.config,
                explain=True,
                top_k=CANDIDATES,
                threshold=base.config.threshold if threshold is None else threshold,
                coherence="graph" if coherence else base.config.coherence,
            )
            variants[variant] = Linker(
                base.kb, config, generator=base.generator, scorer=base.scorer, tagger=base.tagger
            )
        return variants[variant]


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the view of a text to a router."""
    linkers = ExplainingLinkers()

    @routes.get("/")
    async def show_text(
        text: str = "", kb: str = "", model: str = "", threshold: str = "", coherence: str = ""
    ) -> Response:
        """Show a form, and the links of its text."""
        return await _answer(service, linkers, text, kb, model, threshold, coherence)

    @routes.post("/")
    async def post_text(
        text: Annotated[str, Form()] = "",
        kb: Annotated[str, Form()] = "",
        model: Annotated[str, Form()] = "",
        threshold: Annotated[str, Form()] = "",
        coherence: Annotated[str, Form()] = "",
    ) -> Response:
        """Lead to the address of a text, or show its links where the text is too long for an address."""
        text = text.replace("\r\n", "\n")
        target = address("/", text=text, kb=kb, model=model, threshold=threshold, coherence=coherence)
        if fits_address(target):
            return RedirectResponse(target, status_code=303)
        return await _answer(service, linkers, text, kb, model, threshold, coherence)


async def _answer(
    service: Service,
    linkers: ExplainingLinkers,
    text: str,
    kb: str,
    model: str,
    threshold: str,
    coherence: str,
) -> Response:
    name = kb_name(service, kb)
    view: TextView | None = None
    problem: Problem | None = None
    if text.strip():
        try:
            view = await _linked(service, linkers, text, name, model, threshold, coherence)
        except (KgkitError, Problem) as error:
            problem = problem_of(error, service.home)
    context: dict[str, Any] = {
        "kb_names": service.kb_names(),
        "kb": name,
        "models": [("", f"default ({service.served(name).models[0]})"), *_options(_model_names(service))],
        "model": model,
        "text": text,
        "threshold": threshold,
        "coherence": coherence,
        "coherence_options": COHERENCE,
        "max_characters": service.limits.characters,
        "view": view,
        "error": problem,
        "examples": EXAMPLES,
    }
    return render("text.html", "text", status=problem.status if problem else 200, **context)


async def _linked(
    service: Service,
    linkers: ExplainingLinkers,
    text: str,
    kb: str,
    model: str,
    threshold: str,
    coherence: str,
) -> TextView:
    if coherence not in dict(COHERENCE):
        raise Problem(422, f"coherence is {coherence!r}; it is 'graph' or empty", field="coherence")
    base = service.served(kb).linker(model or None)
    linker = linkers.linker(base, number("threshold", threshold), coherence=coherence == "graph")
    documents = [Document("text", text)]
    service.check_documents(documents)
    [document] = await service.queue.link(linker, documents)
    return await service.call(text_view, document, _finder(service))


def _finder(service: Service) -> FindEntity:
    def find_entity(kb: str, key: str) -> Entity | None:
        return service.kb(kb).get(key)

    return find_entity


def _model_names(service: Service) -> list[str]:
    """Return the names of all models that link, those of the first knowledge base first."""
    return list(dict.fromkeys(model for kb in service.kb_names() for model in service.served(kb).models))


def _options(names: list[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]
