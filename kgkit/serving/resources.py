"""Knowledge bases that a process of the service has open, and their linkers.

    start     opens the published builds, and their models
    refresh   opens newly published builds, and those whose files have changed, beside the open ones, and
              switches to those that fit

A `ServedKB` is never changed, but replaced: requests that use the old one finish with it. A build whose model
or vectors do not fit is not taken; `problems` has the reason. Files are compared by device, inode, size and
time of change: a build that was damaged and is built again has the same name.
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Unpack

from kgkit.candidates import generator_for
from kgkit.errors import KgkitError, NotThere, UnknownName, UsageError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.linking import Linker, LinkSettings
from kgkit.linking.auto import NAMES_MODEL, named_model, suits_names_model
from kgkit.linking.settings import LinkArguments
from kgkit.models.folder import AUTO, BUILT_IN, find_model_folder
from kgkit.reconciling.reconciler import ReconcileConfig, Reconciler
from kgkit.serving.settings import ServiceSettings
from kgkit.store.layout import DATA, MANIFEST, SURFACES, TRIGRAMS
from kgkit.types import Candidates, Mention
from kgkit.vectors import vectors_names
from kgkit.versions import current_version

log = logging.getLogger(__name__)

PRIOR: Final = "prior"
"""The model that every knowledge base can be linked with, whatever else is served."""

_MAX_VARIANTS: Final = 16  # linkers of other thresholds, and reconcilers of other kinds, that are remembered


class ServedKB:
    """A build with all that was opened on it.

    Args:
        kb: handle of the build; it is closed when no request uses it any more.
        linkers: linkers by the names of their models, the default one first.
        state: versions of build, vectors and models on disk that were opened.

    Attributes:
        damage_logged: whether damage that look-ups have found is in the log.
        reconciler: function that returns a reconciler of given settings; those used last are kept.
    """

    def __init__(self, kb: KnowledgeBase, linkers: Mapping[str, Linker], state: Sequence[str]) -> None:
        self.kb, self.linkers, self.state = kb, dict(linkers), tuple(state)
        self.damage_logged = False
        self._generator, self._lock = generator_for(kb, max_candidates=None), threading.Lock()

        @lru_cache(_MAX_VARIANTS)
        def variant(settings: LinkSettings) -> Linker:
            """Return a linker of other settings; it shares what was opened."""
            base = linkers[settings.model]
            return Linker(kb, settings, generator=base.generator, scorer=base.scorer, tagger=base.tagger)

        @lru_cache(_MAX_VARIANTS)
        def reconciler(config: ReconcileConfig) -> Reconciler:
            """Return a reconciler of these settings, which keeps what it remembers."""
            return Reconciler(kb, config, check_kind=False)  # a check reads all entities

        self._variant, self.reconciler = variant, reconciler

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models that link to it, the default one first."""
        return tuple(self.linkers)

    def linker(self, **settings: Unpack[LinkArguments]) -> Linker:
        """Return a linker; those of one model share its scorer, whatever their settings.

        Args:
            settings: settings that need no other scorer; the model `auto` is the default one.

        Raises:
            UnknownName: if no such model is served.
            UsageError: if a setting is out of range.
        """
        chosen = LinkSettings(**settings)
        if chosen.model == AUTO:
            chosen = replace(chosen, model=next(iter(self.linkers)))
        base = self.linkers.get(chosen.model)
        if base is None:
            raise UnknownName(f"model served for {self.kb.name!r}", chosen.model, self.models)
        return base if chosen == LinkSettings(model=chosen.model) else self._variant(chosen)

    def candidates(self, text: str, pos: str = "") -> Candidates:
        """Return what a text means as a whole, and its lemmas where the generator looks for some."""
        with self._lock:
            return self._generator.candidates_of(Mention(0, len(text), text, pos=pos))


class ServiceResources:
    """The knowledge bases and linkers that a process has open.

    Args:
        settings: settings of the service.
        home: folder of knowledge bases and models.
    """

    def __init__(self, settings: ServiceSettings, home: Home) -> None:
        self.settings, self.home = settings, home
        self._served: dict[str, ServedKB] = {}
        self._problems: dict[str, str] = {}
        self._refused: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    @property
    def problems(self) -> Mapping[str, str]:
        """Reasons why a published build is not served, or damage to a served one, by knowledge base."""
        return {**self._problems, **self.damages}

    @property
    def damages(self) -> Mapping[str, str]:
        """Damage that look-ups have found in served builds, by the name of the knowledge base."""
        found = {name: served.kb.store.damage_found for name, served in list(self._served.items())}
        return {name: damage for name, damage in found.items() if damage}

    def start(self) -> None:
        """Open all that is to be served.

        Raises:
            NotThere: if nothing can be served, or a knowledge base that the settings name.
            KgkitError: if a knowledge base that the settings name, or its model, cannot be opened.
        """
        for name in self._kb_names():
            try:
                self._served[name] = self._open(name, self._model_names(name))
            except (KgkitError, OSError) as error:
                if self.settings.kbs:
                    raise
                self._problems[name] = str(error)
                log.warning("knowledge base %s is not served: %s", name, error)
        if not self._served:
            self.home.default_kb()  # raises, and says how to build one
            raise NotThere("no knowledge base can be served: " + "; ".join(self._problems.values()))

    def names(self) -> list[str]:
        """Return the names of the knowledge bases that are served, the default one first."""
        default = self.default_name()
        return sorted(self._served, key=lambda name: (name != default, name))

    def default_name(self) -> str | None:
        """Return the name of the knowledge base of requests that name none; None: they have to."""
        chosen = self.settings.default_kb or next(iter(self.settings.kbs), None) or self.home.chosen_default
        if chosen in self._served:
            return chosen
        return next(iter(self._served)) if len(self._served) == 1 else None

    def served(self, name: str | None = None) -> ServedKB:
        """Return a knowledge base with what is open on it.

        Raises:
            UnknownName: if it is not served.
            UsageError: if none is named, and none is the default.
        """
        chosen = name or self.default_name()
        if chosen is None:
            raise UsageError(
                f"which knowledge base? Served are {', '.join(self.names())}: name one as kb, or set the "
                "default with `kgkit serve --default KB` or `kgkit kb default KB`"
            )
        served = self._served.get(chosen)
        if served is None:
            raise UnknownName("knowledge base served here", chosen, self.names())
        return served

    def refresh(self) -> None:
        """Switch to new or changed builds whose models and vectors fit; of others note the problem."""
        with self._lock:
            self._log_damages()
            for name in self._kb_names():
                served = self._served.get(name)
                models = self._model_names(name) if served is None else served.models
                state = self._state(name, models)
                if served is not None and state == served.state:
                    self._problems.pop(name, None)
                    self._refused.pop(name, None)
                elif state and state != self._refused.get(name):
                    self._replace(name, models, state)

    def _log_damages(self) -> None:
        """Log damage that look-ups have found, once for each opened build."""
        for name, damage in self.damages.items():
            if not self._served[name].damage_logged:
                self._served[name].damage_logged = True
                log.error("knowledge base %s answers some requests only: %s", name, damage)

    def _replace(self, name: str, models: Sequence[str], state: tuple[str, ...]) -> None:
        """Open what is published of a knowledge base, and serve it from now on, if all of it fits."""
        try:
            successor = self._open(name, models)
            if (served := self._served.get(name)) is not None:
                _check_vectors(served.kb, successor.kb)
        except (KgkitError, OSError) as error:
            self._refused[name] = state
            self._problems[name] = str(error)
            log.warning("a new build of %s is not taken: %s", name, error)
            return
        self._served[name] = successor
        self._problems.pop(name, None)
        self._refused.pop(name, None)
        log.info("knowledge base %s is served from build %s", name, successor.kb.build)

    def _kb_names(self) -> list[str]:
        """Return the names of the knowledge bases that are to be served."""
        return list(self.settings.kbs) or [kb.name for kb in self.home.kbs()]

    def _model_names(self, name: str) -> tuple[str, ...]:
        """Return the names of the models that are to link to a knowledge base."""
        return self.settings.kbs.get(name) or (AUTO,)

    def _open(self, name: str, models: Sequence[str]) -> ServedKB:
        """Open the published build of a knowledge base, its models and its vectors."""
        state = self._state(name, models)
        kb = open_kb(self.settings.build_name(name), self.home.path)
        try:
            linkers: dict[str, Linker] = {}
            for model in models:
                linker = Linker.open(kb, model=model, device=self.settings.device)
                linkers[linker.model if model == AUTO else model] = linker
            is_chosen = AUTO in models and named_model() is None
            if is_chosen and NAMES_MODEL not in linkers and suits_names_model(kb):
                with suppress(KgkitError):  # beside a trained linker, to compare them
                    linkers[NAMES_MODEL] = Linker.open(kb, model=NAMES_MODEL, device=self.settings.device)
            if PRIOR not in linkers:
                linkers[PRIOR] = Linker.open(kb, model=PRIOR)
            list(_fitting_vectors(kb))  # once opened, they stay
        except BaseException:
            kb.close()
            raise
        return ServedKB(kb, linkers, state)

    def _state(self, name: str, models: Sequence[str]) -> tuple[str, ...]:
        """Return the versions on disk of a knowledge base, its vectors and its models; none if it is gone."""
        kb = self.home.kb(name)
        build = self.settings.builds.get(name) or kb.published()
        if build is None or not (files := _file_versions(kb.builds / build)):
            return ()
        versions = (f"{name}={current_version(kb.vectors / name)}" for name in vectors_names(kb))
        state = [build, *files, *versions]
        for model in models:
            if model not in (AUTO, *BUILT_IN):
                with suppress(KgkitError):
                    state.append(str(find_model_folder(model, self.home)))
        return tuple(state)


def check_resources(settings: ServiceSettings, home: Home) -> None:
    """Refuse settings that name what is not there, before anything that takes long; nothing stays open.

    Args:
        settings: settings of the service.
        home: folder of knowledge bases and models.

    Raises:
        NotThere: if there is no knowledge base, or not one of those that are named.
        UnknownName: if there is no model of a name.
        StoreError: if a knowledge base that is named cannot be opened.
    """
    if not settings.kbs and not home.kbs():
        home.default_kb()  # raises, and says how to build one
    for name, models in settings.kbs.items():
        open_kb(settings.build_name(name), home.path).close()
        for model in models:
            if model not in (AUTO, *BUILT_IN):
                find_model_folder(model, home, "linker")


def _file_versions(folder: Path) -> list[str]:
    """Return a text for each file of a build, another one once the file has changed; none if it is gone."""
    versions = []
    for name in (MANIFEST, DATA, SURFACES, TRIGRAMS):
        try:
            status = (folder / name).stat()
        except OSError:
            if name == DATA:
                return []
            continue
        # A copy that keeps the time of modification does not keep that of change. `kb add` links the index
        # of surfaces into the next build, which changes its time of change, and nothing else.
        time = status.st_mtime_ns if name in (SURFACES, TRIGRAMS) else status.st_ctime_ns
        numbers = status.st_dev, status.st_ino, status.st_size, time
        versions.append(f"{name}={numbers}")
    return versions


def _fitting_vectors(kb: KnowledgeBase) -> Iterator[str]:
    """Yield the names of the vectors of a build that fit it, once they are open."""
    for name in vectors_names(kb.home):
        with suppress(KgkitError):
            kb.vectors(name)
            yield name


def _check_vectors(served: KnowledgeBase, successor: KnowledgeBase) -> None:
    """Refuse a successor that lacks vectors which the served build has.

    Raises:
        StaleVectors, DamagedVectors, NotThere: if vectors are missing, or do not fit the successor.
    """
    for name in _fitting_vectors(served):
        successor.vectors(name)
