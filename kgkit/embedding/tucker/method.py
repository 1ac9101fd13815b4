"""TuckER (Balažević et al. 2019, "TuckER: Tensor Factorization for Knowledge Graph Completion"), by PyKEEN.

From the triples of a knowledge base to vectors of its entities. The model is PyKEEN's, with an inverse for
each relation; held-out triples tell how good it is.

Departures from the paper: dropout of the contracted core is drawn for each relation of a step, not for each
triple; a softmax over a sample stands for binary cross entropy over all entities, and Adagrad with decay for
Adam on the entity table.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from kgkit.embedding.tucker import config as fixed
from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.embedding.tucker.training import train
from kgkit.embedding.tucker.triples import split, stored_triples
from kgkit.encoder import pick_device
from kgkit.errors import UsageError
from kgkit.files import replacing
from kgkit.types import Progress
from kgkit.vectors import Vectors, Work
from kgkit.versions import write_failures

if TYPE_CHECKING:
    from pykeen.models import TuckER

    from kgkit.kb import KnowledgeBase

METHOD: Final = "tucker"
REMAINING: Final = "rest.safetensors"
CURVE: Final = "curve.jsonl"
_TABLE: Final = "entity_representations.0._embeddings.weight"


def embed_tucker(
    kb: "KnowledgeBase",
    config: TuckERConfig | None = None,
    *,
    resume: bool = True,
    progress: Progress | None = None,
) -> Vectors:
    """Train TuckER on the facts of a knowledge base and publish the entities' vectors.

    Entities of which no fact tells have a row of zeros. A call with the same
    settings goes on where one that was stopped left off, and comes to the same
    numbers on a CPU.

    Args:
        kb: the open knowledge base.
        config: settings.
        resume: whether to go on with a stopped job; False begins again.
        progress: callback that is told steps done and steps at most.

    Raises:
        UsageError: if the knowledge base has no facts, or the device is not there.
        KBBusy: if another process is making these vectors.
        BuildFailed: if training diverges.
        WriteFailed: if the disk refuses.
    """
    config = config or TuckERConfig()
    device = pick_device(config.device)
    triples = stored_triples(kb)
    if not len(triples):
        raise UsageError(
            f"{kb.name!r} has no facts, so there is nothing for TuckER to learn from; "
            "vectors of its texts can be had: `kgkit embed --method text`"
        )
    relations = [relation for relation, _ in kb.store.relations]
    used = np.unique(triples[:, 1])
    triples[:, 1] = np.searchsorted(used, triples[:, 1])
    settings: dict[str, Any] = {"method": METHOD, **asdict(config)}
    del settings["name"]
    with Work(kb, config.name, settings, resume=resume) as work:
        count = min(round(fixed.HELD_OUT * len(triples)), fixed.HELD_OUT_AT_MOST)
        parts = split(triples, count, kb.id_count, np.random.default_rng([config.seed, 1]))
        trained = train(parts, kb.id_count, len(used), config, work.folder, device, progress=progress)
        _write(trained.model, triples, work)
        with write_failures(work.folder), replacing(work.folder / CURVE) as new:
            new.write_text("".join(json.dumps(line) + "\n" for line in trained.curve), encoding="utf-8")
        return work.publish(
            METHOD,
            files=[REMAINING, CURVE],
            config={
                **settings, "relations": [relations[index] for index in used],
                "triples": {"train": len(parts.train), "held_out": len(parts.held_out)},
            },
            results={
                **trained.best, "epochs": len(trained.curve),
                "seconds": round(sum(line["seconds"] for line in trained.curve), 1),
                "random_mrr": _random_mrr(kb.id_count),
            },
        )  # fmt: skip


def _write(model: "TuckER", triples: np.ndarray, work: Work) -> None:
    from safetensors.torch import save_file

    state = {key: value.cpu().contiguous() for key, value in model.state_dict().items()}
    table = state.pop(_TABLE)
    matrix = work.matrix(*table.shape)
    matrix[:] = 0
    rows = np.unique(triples[:, [0, 2]])
    matrix[rows] = table.numpy()[rows]
    cast("np.memmap[Any, Any]", matrix).flush()
    with write_failures(work.folder), replacing(work.folder / REMAINING) as new:
        save_file(state, new)


def _random_mrr(entities: int) -> float:
    """Return the mean of 1 / rank if each rank is as likely as the others."""
    return float((1.0 / np.arange(1, min(fixed.CANDIDATES + 1, entities) + 1)).mean())
