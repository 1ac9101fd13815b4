"""Training a linker: from data to a model's folder."""

import hashlib
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from kgkit.candidates import Generator, generator_for
from kgkit.embedding.text import encoder_of
from kgkit.errors import MissingExtra, NotThere, UnknownName, UsageError, WriteFailed
from kgkit.home import Home
from kgkit.inputs import SpanConfig, SpanReader
from kgkit.linking.gloss import text_vectors
from kgkit.linking.head import HEAD, SCALE
from kgkit.linking.head import KIND as HEAD_RUNG
from kgkit.linking.model_folder import FORMAT, MANIFEST, ModelManifest, model_folder
from kgkit.linking.ridge import KIND as RIDGE
from kgkit.linking.ridge import RidgeConfig
from kgkit.training.means import Part
from kgkit.training.ridge import Progress, Trained, train_ridge
from kgkit.training.runs import sha256_of
from kgkit.training.taught import Given, Taught, taught_entities, taught_examples, taught_senses

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.training.head import HeadConfig, TrainedHead
    from kgkit.vectors import Vectors

RUNGS = (RIDGE, HEAD_RUNG)
"""What can be trained."""


@dataclass(frozen=True, kw_only=True)
class LinkerTraining:
    """What a linker is trained on, and how.

    Attributes:
        task: `wsd` or `el`: what the data are.
        data: files; each is read with the file of *gold* at its place, if the task is `wsd`.
        gold: files.
        rung: what is trained.
        candidates: of the mentions of `wsd`: by `lemma` and part of speech, or by `surface`.
        examples: learn from the KB's usage examples too, if it has any.
        without: files of sentences that must not be learnt from, one a line, letters compared alone.
        vectors: of the entities' texts.
        reader: how mentions are read.
        ridge: settings of the means and the map.
        head: settings of the rung `head`.
    """

    task: Literal["wsd", "el"]
    data: tuple[Path, ...]
    gold: tuple[Path, ...] = ()
    rung: str = RIDGE
    candidates: Given = "surface"
    examples: bool = False
    without: frozenset[str] = frozenset()
    vectors: str | None = None
    reader: SpanConfig = field(default_factory=lambda: SpanConfig(layers=(-1, -2, -3)))
    ridge: RidgeConfig = field(default_factory=RidgeConfig)
    head: "HeadConfig | None" = None

    def __post_init__(self) -> None:
        if self.rung not in RUNGS:
            raise UnknownName("rung", self.rung, RUNGS)
        if self.task == "wsd" and len(self.data) != len(self.gold):
            raise UsageError(
                f"{len(self.data)} files of data and {len(self.gold)} of gold: each needs the other"
            )
        if self.task == "el" and self.gold:
            raise UsageError("the data of entity linking hold their gold: leave out the files of gold")
        if not self.data and not self.examples:
            raise UsageError("there is nothing to learn from: name files of data")


def train_linker(
    kb: "KnowledgeBase",
    name: str,
    training: LinkerTraining,
    *,
    device: str = "auto",
    progress: Progress | None = None,
) -> Path:
    """Train a linker for *kb*, and write it to `models/NAME` of its home, in the place of an older one.

    Args:
        kb: what is linked to.
        name: of the model.
        training: what, on what, how.
        device: of the encoder.
        progress: is told what is done.

    Returns:
        The model's folder.

    Raises:
        UsageError: if *name* cannot name a model, or there is nothing to learn.
        NotThere: if the vectors, the encoder or a file are not there.
        SourceError: if a file is not what it should be.
        WriteFailed: if the disk refuses; an older model of that name is as it was.
    """
    home = Home(kb.home.path.parents[1])
    folder = model_folder(home, name)
    began = time.monotonic()
    vectors = kb.vectors(text_vectors(kb, training.vectors))
    encoder = encoder_of(vectors, device=device)
    reader = SpanReader(encoder, training.reader)
    generator = generator_for(kb, max_candidates=None, overlaps=True)
    sources = [*_sources(kb, generator, training, progress)]
    parts = [
        Part(reader, source, home.cache / "features", _telling(progress, f"reading set {number}"))
        for number, source in enumerate(sources, 1)
    ]
    data = {str(path): sha256_of(path) for path in (*training.data, *training.gold)}
    job = hashlib.blake2b(repr((training, kb.build, vectors.manifest.version, data)).encode(), digest_size=6)
    work = home.path / "runs" / f"linker-{name}-{job.hexdigest()}"  # other settings, another folder
    trained = _trained(training, reader, vectors, parts, work, device, progress)
    with _published(folder) as staged:
        trained.arrays.save(staged)
        if not isinstance(trained, Trained):
            trained.head.save_pretrained(staged / HEAD)
            np.save(staged / SCALE, trained.scale)
        manifest = ModelManifest(
            format=FORMAT,
            kind=training.rung,
            name=name,
            task=training.task,
            kb=kb.name,
            build=kb.build,
            vectors=vectors.manifest.name,
            version=vectors.manifest.version,
            encoder=encoder.name,
            fingerprint=encoder.fingerprint,
            reader=asdict(training.reader),
            config=asdict(training.ridge),
            temperature=trained.temperature,
            results={**trained.results, "seconds": round(time.monotonic() - began, 1)},
            data=data,
            sizes={
                str(path.relative_to(staged)): path.stat().st_size
                for path in sorted(staged.rglob("*"))
                if path.is_file()
            },
            kgkit_version=_version(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        (staged / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    for stopped in work.parent.glob(f"linker-{name}-{'[0-9a-f]' * 12}"):
        shutil.rmtree(stopped, ignore_errors=True)
    return folder


def _trained(
    training: LinkerTraining,
    reader: SpanReader,
    vectors: "Vectors",
    parts: Sequence[Part],
    work: Path,
    device: str,
    progress: Progress | None,
) -> "Trained | TrainedHead":
    if training.rung == RIDGE:
        return train_ridge(reader, vectors, parts, training.ridge)
    try:
        from kgkit.training.head import HeadConfig, train_head  # here: torch takes seconds to load
    except ImportError as error:
        raise MissingExtra(error.name or "accelerate", "models") from error

    config = training.head or HeadConfig()
    return train_head(reader, vectors, parts, training.ridge, config, work, device=device, progress=progress)


def _telling(progress: Progress | None, stage: str) -> Callable[[int, int], object] | None:
    return None if progress is None else lambda done, total: progress(stage, done, total)


def _sources(
    kb: "KnowledgeBase", generator: Generator, training: LinkerTraining, progress: Progress | None
) -> Iterator[Sequence[Taught]]:
    """Yield the sets of documents, the data before the examples."""
    if training.task == "wsd":
        pairs = zip(training.data, training.gold, strict=True)
        parts = [taught_senses(kb, generator, data, gold, training.candidates) for data, gold in pairs]
    else:
        parts = [taught_entities(kb, generator, data) for data in training.data]
    if parts:
        yield _listed(chain.from_iterable(parts), "looking up documents", progress)
    if training.examples:
        found = _listed(
            taught_examples(kb, generator, without=training.without), "looking up examples", progress
        )
        if not found:
            raise NotThere(f"knowledge base {kb.name!r} has no usage examples: train without them")
        yield found


def _listed(taught: Iterator[Taught], stage: str, progress: Progress | None) -> list[Taught]:
    found = []
    for one in taught:
        found.append(one)
        if progress is not None:
            progress(stage, len(found), 0)
    return found


@contextmanager
def _published(folder: Path) -> Iterator[Path]:
    """Give a folder to write to, which then takes the place of *folder*; after an error all is as it was."""
    staged = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    old = staged.with_suffix(".old")
    try:
        staged.mkdir(parents=True)
        yield staged
        if folder.exists():
            folder.rename(old)
        staged.rename(folder)
    except OSError as error:
        free = shutil.disk_usage(next(path for path in folder.parents if path.exists())).free
        raise WriteFailed(str(error), written=0, free=free, where=folder) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _version() -> str:
    try:
        return version("kgkit")
    except PackageNotFoundError:
        return "unknown"
