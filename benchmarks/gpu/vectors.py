"""Lines of vectors: TuckER's epoch, texts through an encoder, the index."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.gpu import stand_ins
from benchmarks.gpu.clocks import Pace, measure_calls, now, peak_memory
from benchmarks.gpu.lines import Row, Setting, attempt, line, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from kgkit.embedding.tucker.triples import Split
    from kgkit.encoder import Encoder

ENTITIES, RELATIONS, TRIPLES = 117_659, 20, 285_000  # about WordNet's synsets, and the facts among them
TRAINED: Final = (20.0, 600)
"""Seconds and steps that are measured at most."""
WIDTH: Final = 384
BATCHES: Final = (64, 1024)
NEAREST: Final = 10

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
The ten nearest of drawn, clustered vectors, as many as WordNet has synsets; queries are rows that were moved.
Recall is that of the ten by comparing all. kgkit on a GPU compares all rows there, by faiss-gpu, from 64
queries on. `torch` is a product and a selection on the GPU, no part of kgkit: what a GPU can do at best
without faiss.
"""


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
        entities, count = setting.size(ENTITIES, 200), setting.size(TRIPLES, 1_000)
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
    order=5,
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


# -- the index --------------------------------------------------------------


@line(
    "index",
    "The index on a GPU",
    limit=90,
    order=6,
    notes=INDEX_NOTES,
    needs=("numpy", "lmdb"),
)
def index(setting: Setting) -> Iterator[Row]:
    """Yield queries a second in batches: kgkit with a GPU and without, and a bare product on the GPU."""
    import numpy as np

    from benchmarks.harness import JobFailed, call, run

    folder = Path(setting.scratch) / "index"
    folder.mkdir(exist_ok=True)
    matrix = folder / "matrix.npy"
    np.save(matrix, clustered(setting.size(ENTITIES, 2_000), setting.size(WIDTH, 16)))
    kinds = ("exact", "hnsw")
    failed: dict[str, str] = {}
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for kind in kinds:
        arguments = {"folder": folder, "kind": kind, "small": setting.small}
        for name in ("CPU", setting.name) if kind == "exact" else ("CPU",):
            hidden = {"CUDA_VISIBLE_DEVICES": ""} if name == "CPU" else {}
            try:
                answers[kind, name] = run(
                    call("index", "benchmarks.gpu.vectors:searched", arguments, hidden | _threads())
                ).result
            except JobFailed as error:
                failed[f"{kind}, {name}"] = str(error).strip().splitlines()[-1][:200]
    for what, why in failed.items():
        yield Row(what=what, note=f"not measured: {why}")
    yield from _compared(setting, answers)
    if setting.on_gpu:
        for batch in BATCHES:
            what = f"torch, {setting.name}, batches of {batch:,}"
            yield attempt(what, lambda: _bare(setting, folder, batch, what, answers))  # noqa: B023


def _compared(setting: Setting, answers: dict[tuple[str, str], dict[str, Any]]) -> Iterator[Row]:
    """Yield the rows of the index, each beside the same kind on the CPU."""
    for (kind, name), answer in answers.items():
        control = answers.get(("exact", "CPU"))
        for batch in map(str, BATCHES):
            other = control if control is not None and (kind, name) != ("exact", "CPU") else None
            note = f"recall@{NEAREST} {answer['recall'][batch]:.3f}"
            if name == "GPU" and not answer["gpu"]:
                yield Row(
                    what=f"{kind}, GPU, batches of {int(batch):,}", note=f"not measured: {answer['reason']}"
                )
                continue
            yield Row(
                what=f"{kind}, {name}, batches of {int(batch):,}", value=answer["rate"][batch],
                unit="queries/s", control="" if other is None else "exact, CPU",
                control_value=None if other is None else other["rate"][batch], note=note,
            )  # fmt: skip


def _threads() -> dict[str, str]:
    """Return the variables that say how many threads this process may use, for one that it starts."""
    import os

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return {name: os.environ[name] for name in names if name in os.environ}


def clustered(rows: int, width: int) -> "np.ndarray":
    """Return (rows, width) float32 that lie in clusters, as vectors of texts do."""
    import numpy as np

    drawn = np.random.default_rng(0)
    centers = drawn.standard_normal((max(2, rows // 100), width), np.float32)
    matrix = centers[drawn.integers(0, len(centers), rows)]
    matrix += np.float32(0.7) * drawn.standard_normal((rows, width), np.float32)
    return matrix


def queries_for(matrix: "np.ndarray", count: int) -> "np.ndarray":
    """Return rows of the matrix that were moved, as the index is tuned with, but others."""
    import numpy as np

    from kgkit.vectors.tuning import sampled_queries

    return sampled_queries(matrix, np.arange(len(matrix)), count, seed=12_345)


def searched(folder: str, kind: str, small: bool) -> dict[str, Any]:
    """Build an index and search it: the measured process, which sees a GPU or none.

    Returns:
        By the size of batches, `rate` in queries a second and `recall`; `gpu`: whether a GPU answered, else
        `reason`.
    """
    import numpy as np

    from kgkit.vectors.indexing import build_index
    from kgkit.vectors.kinds import faiss_module, has_gpu_package
    from kgkit.vectors.scan import scan
    from kgkit.vectors.tuning import recall_of

    matrix = np.load(Path(folder) / "matrix.npy", mmap_mode="r")
    own = Path(folder) / kind
    own.mkdir(exist_ok=True)
    index = build_index(matrix, own, kind=kind)
    truth = scan(matrix, queries_for(matrix, max(BATCHES)), NEAREST).rows
    results: dict[str, Any] = {"rate": {}, "recall": {}, "gpu": False, "reason": "faiss-gpu is not installed"}
    if has_gpu_package():
        try:
            results["gpu"] = faiss_module().get_num_gpus() > 0
            results["reason"] = "faiss-gpu finds no GPU"
        except Exception as error:  # noqa: BLE001  whatever the package raises is the reason
            results["reason"] = reason_of(error)
    for batch in BATCHES:
        some = queries_for(matrix, max(BATCHES))[:batch]
        rows = index.search(some, NEAREST).rows
        took = measure_calls("cpu", lambda: index.search(some, NEAREST), rounds=2 if small else 10)  # noqa: B023
        results["rate"][str(batch)] = len(some) / took.median
        results["recall"][str(batch)] = recall_of(rows, truth[:batch])
    return results


def _bare(
    setting: Setting,
    folder: Path,
    batch: int,
    what: str,
    answers: dict[tuple[str, str], dict[str, Any]],
) -> Row:
    """Return what a product and a selection in torch do, queries and answers being on the processor."""
    import numpy as np
    import torch

    from kgkit.vectors.scan import unit

    matrix = np.load(folder / "matrix.npy")
    some = torch.from_numpy(unit(queries_for(matrix, max(BATCHES))[:batch]))
    on_device = torch.from_numpy(unit(matrix)).to(setting.device)

    def search() -> object:
        return (some.to(setting.device) @ on_device.T).topk(NEAREST).indices.cpu()

    took = measure_calls(setting.device, search, rounds=10)
    control = answers.get(("exact", "CPU"))
    return Row(
        what=what, value=batch / took.median, unit="queries/s",
        control="" if control is None else "exact, CPU",
        control_value=None if control is None else control["rate"][str(batch)], memory=took.memory,
    )  # fmt: skip
