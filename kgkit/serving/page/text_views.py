"""The first view: a text with its links."""

from dataclasses import asdict, dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form
from fastapi.responses import RedirectResponse, Response

from kgkit.errors import KgkitError
from kgkit.models.folder import AUTO
from kgkit.serving.forms import parse_number
from kgkit.serving.page.addresses import address, fits_address
from kgkit.serving.page.inputs import kb_name
from kgkit.serving.page.linked_text import TextView, text_view
from kgkit.serving.page.rendering import render
from kgkit.serving.problems import Problem, problem_of
from kgkit.serving.service import Service
from kgkit.types import Document

EXAMPLES: Final = (
    "The bank raised its rates while the river rose over its bank.",
    "Germany beat Japan in the final, and the coach praised his players.",
)
CANDIDATES: Final = 6
"""Candidates of a link that are shown."""

COHERENCE: Final = (("", "none"), ("graph", "by the graph"))


@dataclass(frozen=True, kw_only=True)
class TextForm:
    """The fields of the form.

    Attributes:
        text: text to link.
        kb: name of the knowledge base; empty for the first one.
        model: name of the model; empty for the default one of the knowledge base.
        threshold: least score of a link, as text; empty for the model's own.
        coherence: `graph`, or empty for none.
    """

    text: str = ""
    kb: str = ""
    model: str = ""
    threshold: str = ""
    coherence: str = ""


def posted_form(
    text: Annotated[str, Form()] = "",
    kb: Annotated[str, Form()] = "",
    model: Annotated[str, Form()] = "",
    threshold: Annotated[str, Form()] = "",
    coherence: Annotated[str, Form()] = "",
) -> TextForm:
    """Return the fields of a posted form, with line ends as they were written."""
    text = text.replace("\r\n", "\n")
    return TextForm(text=text, kb=kb, model=model, threshold=threshold, coherence=coherence)


def add_views(routes: APIRouter, service: Service) -> None:
    """Add the view of a text to a router."""

    @routes.get("/")
    async def show_text(fields: Annotated[TextForm, Depends()]) -> Response:
        """Show a form, and the links of its text."""
        return await _page(service, fields)

    @routes.post("/")
    async def post_text(fields: Annotated[TextForm, Depends(posted_form)]) -> Response:
        """Lead to the address of a text, or show its links where the text is too long for an address."""
        target = address("/", **asdict(fields))
        if fits_address(target):
            return RedirectResponse(target, status_code=303)
        return await _page(service, fields)


async def _page(service: Service, fields: TextForm) -> Response:
    name = kb_name(service, fields.kb)
    view: TextView | None = None
    problem: Problem | None = None
    if fields.text.strip():
        try:
            view = await _linked_view(service, fields, name)
        except (KgkitError, Problem) as error:
            problem = problem_of(error, service.home)
    default = f"default ({service.served(name).models[0]})"
    return await service.call(  # in a thread: of a long text it takes a while
        render, "text.html", "text", error=problem, kb_names=service.kb_names(), kb=name, fields=fields,
        view=view, models=[("", default), *((model, model) for model in _model_names(service))],
        coherence_options=COHERENCE, max_characters=service.limits.characters, examples=EXAMPLES,
    )  # fmt: skip


async def _linked_view(service: Service, fields: TextForm, kb: str) -> TextView:
    if fields.coherence not in dict(COHERENCE):
        raise Problem(
            422, f"coherence is {fields.coherence[:40]!r}; it is 'graph' or empty", field="coherence"
        )
    linker = service.served(kb).linker(
        model=fields.model or AUTO,
        threshold=parse_number("threshold", fields.threshold),
        coherence="graph" if fields.coherence else None,
        explain=True,
        top_k=CANDIDATES,
    )
    documents = [Document("text", fields.text)]
    service.check_documents(documents)
    [document] = await service.queue.link((linker,), documents)
    return await service.call(text_view, document, linker.kb.get)


def _model_names(service: Service) -> list[str]:
    """Return the names of all models that link, those of the first knowledge base first."""
    return list(dict.fromkeys(model for kb in service.kb_names() for model in service.served(kb).models))
