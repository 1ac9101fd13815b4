"""Linkers that answer the documents of a corpus."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from kgkit.commands.corpora.chunks import Answerer, DocumentAnswer
from kgkit.commands.messages import ProgressCallback
from kgkit.commands.output import counted
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking import Linker
from kgkit.linking.multi_kb import MultiKBLinker
from kgkit.types import Document


@dataclass(frozen=True, kw_only=True)
class LinkerFactory:
    """Opens linkers of one setting, in this process or in workers.

    Attributes:
        models: names of the builds of knowledge bases, and of their models.
        references: whether words that refer back are linked.
        settings: further arguments of `Linker.open`.
    """

    models: tuple[tuple[str, str], ...]
    references: bool
    settings: Mapping[str, Any]

    @contextmanager
    def open(self) -> "Iterator[LinkAnswerer]":
        """Give what links documents."""
        from kgkit.encoder.import_stubs import only_encodes

        if self.settings["mentions"] is not None or any(model != "prior" for _, model in self.models):
            only_encodes()
        with ExitStack() as stack:
            linkers = [
                stack.enter_context(Linker.open(kb, model=model, **self.settings))
                for kb, model in self.models
            ]
            if len(linkers) == 1 and not self.references:
                yield LinkAnswerer(linkers[0], linkers)
            else:
                yield LinkAnswerer(MultiKBLinker(linkers, references=self.references), linkers)

    def described(self, home: Home, kbs: Mapping[str, KnowledgeBase]) -> dict[str, str]:
        """Return what links depend on, by name: settings, builds, and digests of models."""
        from kgkit.linking.auto import auto_models
        from kgkit.methods.links import linker_sha256_of

        names, vectors = [], self.settings["vectors"]
        for kb, (build, model) in zip(kbs.values(), self.models, strict=True):
            # Without a warning: the linker that is opened for the documents gives it.
            name = next(auto_models(kb, vectors=vectors, warn=False)) if model == "auto" else model
            names.append(f"{build}={name} {linker_sha256_of(home, name)[:16]}".rstrip())
        settings = {name: str(value) for name, value in self.settings.items() if name != "device"}
        return {"kb": ", ".join(names), "references": str(self.references), **settings}


class LinkAnswerer(Answerer):
    """Links documents, for the output.

    Args:
        linker: linker of one knowledge base or several.
        linkers: linkers of single knowledge bases that it has.
    """

    def __init__(self, linker: Linker | MultiKBLinker, linkers: Sequence[Linker]) -> None:
        self._linker, self._linkers, self.model = linker, linkers, linker.model

    def __call__(self, documents: Iterable[Document]) -> Iterator[DocumentAnswer]:
        """Yield the fields of each linked document."""
        for linked in self._linker(documents):
            record = {name: getattr(linked, name) for name in linked.__struct_fields__}
            yield DocumentAnswer(record, len(linked.links), linked)

    def omissions(self) -> list[str]:
        """Return surfaces that texts have in lower case, and a knowledge base with capitals only."""
        return [surface for linker in self._linkers for surface in linker.generator.omissions]

    def report_encoding(self, report: ProgressCallback) -> None:
        """Set what is called while texts of entities are encoded for vectors that fill as they are used."""
        for linker in self._linkers:
            vectors: Any = getattr(linker.scorer, "vectors", None)
            if hasattr(vectors, "progress"):
                vectors.progress = lambda stage, count, total: report(
                    f"{stage}, {count:,} of {counted(total, 'text')}", count, total
                )
