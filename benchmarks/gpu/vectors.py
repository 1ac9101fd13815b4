"""Lines of vectors: TuckER's epoch, texts through an encoder, the nearest rows."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.gpu import stand_ins
from benchmarks.gpu.clocks import Pace, measure_calls, now, peak_memory
from benchmarks.gpu.lines import Row, Setting, attempt, line, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kgkit.embedding.tucker.triples import Split
    from kgkit.encoder import Encoder
    from kgkit.types import Matrix, Numbers

ENTITIES, RELATIONS, TRIPLES = 117_659, 20, 285_000  # about WordNet's synsets, and the facts among them
TRAINED: Final = (20.0, 600)
"""Seconds and steps that are measured at most."""

TUCKER_NOTES: Final = """
`kgkit.embedding.tucker`, by the steps a second of part of the first epoch; ranking is left out.
Without a home that holds WordNet the graph is drawn: as many entities, and as many facts, without its
structure.
"""
TEXT_NOTES: Final = """
`Encoder.encode`, with tokens made on the processor, and all of `kgkit embed --method text`, to published
vectors. Without a home that holds WordNet, and MiniLM: drawn texts of about 17 word pieces, random weights of
MiniLM's shape.
"""
INDEX_NOTES: Final = """
The ten nearest of drawn, clustered vectors, as many as WordNet has synsets; queries are rows that were moved,
queries and answers lie in the host's memory. `TorchSearch` is kgkit's search on a GPU, whose rows and scores
are those of `exact`; `torch` is a bare product and `topk`, whose equal rows come in any order.
"""
WIDTH: Final = 384
BATCHES: Final = (64, 256, 1024)
NEAREST: Final = 10


# -- TuckER -----------------------------------------------------------------


@line(
    "tucker",
    "TuckER: an epoch",
    limit=110,
    order=4,
    notes=TUCKER_NOTES,
    needs=("torch", "pykeen", "safetensors", "lmdb"),
)
def tucker(setting: Setting) -> Iterator[Row]:
    """Yield the seconds of an epoch, on the device and on the CPU."""
    parts, entities, relations, about = _graph(setting)

    def measured() -> Row:
        own, steps, memory = _epoch(setting, parts, entities, relations, setting.device)
        slow = None
        if setting.on_gpu:
            slow, _, _ = _epoch(setting, parts, entities, relations, "cpu")
        return Row(
            what=setting.name, value=own, unit="s",
            control="" if slow is None else "CPU", control_value=slow, memory=memory,
            note=f"an epoch of {steps:,} steps; {about}",
        )  # fmt: skip

    yield attempt("TuckER", measured)


def _graph(setting: Setting) -> "tuple[Split, int, int, str]":
    """Return WordNet's triples, or drawn ones, how many entities and relations there are, and a note."""
    import numpy as np

    from kgkit.embedding.tucker.triples import Split, stored_triples

    kb = stand_ins.open_real(setting, "wordnet")
    if kb is None:
        entities, count = setting.size(ENTITIES, 200), setting.size(TRIPLES, 20_000)
        drawn = np.random.default_rng(0)
        ends = drawn.integers(0, entities, (2, count))
        triples = np.stack([ends[0], drawn.integers(0, RELATIONS, count), ends[1]], axis=1)
        about = f"drawn: {entities:,} entities, {count:,} triples"
    else:
        with kb:
            triples, entities = stored_triples(kb), len(kb)
        about = f"WordNet: {entities:,} entities, {len(triples):,} triples"
    used, triples[:, 1] = np.unique(triples[:, 1], return_inverse=True)
    triples = np.unique(triples, axis=0)
    return Split(triples, triples[:1]), entities, len(used), about


def _epoch(
    setting: Setting, parts: "Split", entities: int, relations: int, device: str
) -> tuple[float, int, int | None]:
    """Return the seconds and the steps of an epoch, and the bytes of the device's memory."""
    import tempfile

    import torch

    from kgkit.embedding.tucker import TuckERConfig
    from kgkit.embedding.tucker.training import train

    config = TuckERConfig(epochs=1, device=device, dim=8 if setting.small else 200)
    where = torch.device(device)
    seconds, steps = TRAINED
    pace = Pace(device, seconds=seconds if device != "cpu" else seconds / 2, steps=steps)
    with tempfile.TemporaryDirectory(dir=setting.scratch) as folder:

        def trained() -> None:
            train(parts, entities, relations, config, Path(folder), where, progress=pace)

        memory = peak_memory(device, lambda: pace.run(trained))
    warm = min(5, len(pace.times) // 4 + 1)
    return pace.total / pace.rate(warm), pace.total, memory


# -- texts ------------------------------------------------------------------


@line(
    "text",
    "Text vectors on a GPU",
    limit=90,
    order=6,
    notes=TEXT_NOTES,
    needs=("torch", "transformers", "lmdb"),
    stand_ins=True,
)
def text(setting: Setting) -> Iterator[Row]:
    """Yield texts a second in float32 and bfloat16, on the CPU, and of the whole job."""
    from kgkit.embedding.text import TextConfig, embed_text

    texts, about = _texts(setting)
    slow, most = _rate(setting, "cpu", "auto", texts[: setting.size(4_000, 50)], about)
    for dtype in ("float32", "bfloat16"):
        what = f"{setting.name}, {dtype}"

        def measured(dtype: str = dtype, what: str = what) -> Row:
            memory: list[int | None] = []
            rate, kind = _rate(setting, setting.device, dtype, texts, about, memory)
            return Row(
                what=what, value=rate, unit="texts/s", control=f"CPU, {most}", control_value=slow,
                memory=memory[0], note=f"{kind}; {len(texts):,} texts; {about}",
            )  # fmt: skip

        yield attempt(what, measured)

    def embedded() -> Row:
        encoder = _encoder(setting, setting.device, "auto", about)
        config = TextConfig(encoder=str(encoder.folder), name="gpu", device=setting.device)
        with stand_ins.open_stand_in(setting) as kb:
            began = time.perf_counter()
            vectors = embed_text(kb, config, encoder=encoder, resume=False)
            seconds = time.perf_counter() - began
        count = int(vectors.manifest.results["texts"])
        return Row(
            what=f"`kgkit embed`, {setting.name}, {encoder.dtype}", value=count / seconds, unit="texts/s",
            note=f"{count:,} texts of the stand-in in {seconds:.1f} s",
        )  # fmt: skip

    yield attempt("`kgkit embed`", embedded)


def _texts(setting: Setting) -> tuple[list[str], str]:
    """Return texts of entities, and their kind: `glosses` or `drawn`."""
    from kgkit.encoder.finding import find_in_package

    real = stand_ins.open_real(setting, "wordnet") if find_in_package(stand_ins.ENCODER) else None
    with real or stand_ins.open_stand_in(setting) as kb:
        texts = [f"{entity.label}: {entity.description}" for entity in kb if entity.description]
    return texts, "drawn" if real is None else "glosses"


def _encoder(setting: Setting, device: str, dtype: str, about: str) -> "Encoder":
    from kgkit.encoder import Encoder

    if about == "drawn":
        return stand_ins.stand_in_encoder(setting, device, dtype)
    return Encoder.load(stand_ins.ENCODER, device=device, dtype=dtype)  # type: ignore[arg-type]


def _rate(
    setting: Setting,
    device: str,
    dtype: str,
    texts: "Sequence[str]",
    about: str,
    memory: list[int | None] | None = None,
) -> tuple[float, str]:
    """Return the texts a second, and what products were computed in; *memory* gets the device's bytes."""
    encoder = _encoder(setting, device, dtype, about)
    encoder.encode(texts[: max(1, len(texts) // 10)])
    began = now(device)
    peak = peak_memory(device, lambda: encoder.encode(texts))
    seconds = now(device) - began
    if memory is not None:
        memory.append(peak)
    return len(texts) / seconds, encoder.dtype


# -- the nearest rows -------------------------------------------------------


@line(
    "index", "Nearest rows on a GPU", limit=90, order=5, notes=INDEX_NOTES, needs=("numpy", "torch", "lmdb")
)
def index(setting: Setting) -> Iterator[Row]:
    """Yield queries a second in batches: kgkit on the CPU and on the device, and a bare product there."""
    import numpy as np
    import torch

    from kgkit.vectors.indexing import build_index, recall_of, sampled_queries
    from kgkit.vectors.scan import unit
    from kgkit.vectors.torch_search import TorchSearch

    matrix = _clustered(setting.size(ENTITIES, 2_000), setting.size(WIDTH, 16))
    queries = sampled_queries(matrix, np.arange(len(matrix)), max(BATCHES), seed=12_345)
    control: dict[int, float] = {}
    truth = np.empty((0, NEAREST), np.int64)

    def measured(what: str, batch: int, device: str, search: "Callable[[Matrix], Numbers]") -> Row:
        some = queries[:batch]
        took = measure_calls(device, lambda: search(some), rounds=setting.size(10, 2))
        return Row(
            what=f"{what}, batches of {batch:,}", value=batch / took.median, unit="queries/s",
            control="exact, CPU" if batch in control else "", control_value=control.get(batch),
            memory=took.memory, note=f"recall@{NEAREST} {recall_of(search(some), truth[:batch]):.4f}",
        )  # fmt: skip

    def on_cpu(kind: str) -> "Callable[[Matrix], Numbers]":
        folder = Path(setting.scratch) / f"index-{kind}"
        folder.mkdir(exist_ok=True)
        built = build_index(matrix, folder, kind=kind)
        return lambda some: built.search(some, NEAREST).rows

    def by_kgkit() -> "Callable[[Matrix], Numbers]":
        search = TorchSearch(matrix, setting.device)
        return lambda some: search.search(some, NEAREST).rows

    def by_torch() -> "Callable[[Matrix], Numbers]":
        rows = torch.from_numpy(unit(matrix)).to(setting.device)

        def search(some: "Matrix") -> "Numbers":
            found = torch.from_numpy(unit(some)).to(setting.device) @ rows.T
            numbers: Numbers = found.topk(NEAREST).indices.cpu().numpy()
            return numbers

        return search

    ways: list[tuple[str, str, Callable[[], Callable[[Matrix], Numbers]]]] = [
        ("exact, CPU", "cpu", lambda: on_cpu("exact")),
        (f"`TorchSearch`, {setting.name}", setting.device, by_kgkit),
        (f"torch, {setting.name}", setting.device, by_torch),
        ("hnsw, CPU", "cpu", lambda: on_cpu("hnsw")),
    ]
    for what, device, opened in ways:
        try:
            search = opened()
        except Exception as error:  # noqa: BLE001  as `attempt` has it
            yield Row(what=what, note=f"not measured: {reason_of(error)}")
            continue
        if not control:
            truth = search(queries)
        rows = [attempt(what, lambda: measured(what, batch, device, search)) for batch in BATCHES]  # noqa: B023
        if not control:
            control.update((batch, row.value) for batch, row in zip(BATCHES, rows, strict=True) if row.value)
        yield from rows


def _clustered(rows: int, width: int) -> "Matrix":
    """Return (rows, width) float32 that lie in clusters, as vectors of texts do."""
    import numpy as np

    drawn = np.random.default_rng(0)
    centers = drawn.standard_normal((max(2, rows // 100), width), np.float32)
    matrix: Matrix = centers[drawn.integers(0, len(centers), rows)]
    matrix += np.float32(0.7) * drawn.standard_normal((rows, width), np.float32)
    return matrix
