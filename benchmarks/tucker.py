"""`python -m benchmarks.tucker`: TuckER by our training loop beside PyKEEN's own.

    subset     ours on a graph of WN18RR's size, measured by the clock
    stock      PyKEEN's pipeline with a stock loop on the same graph, by the same clock
    small      both on UMLS, a graph that PyKEEN carries, to the end
    wordnet    all of WordNet: minutes, memory, ranks, near neighbours
    table      what the others wrote, as Markdown

Each writes lines of JSON into the folder `--work`; `table` reads them. Seconds are CPU seconds of the process
with one thread, so that what else the machine does weighs little, and do not include ranking.
"""

import argparse
import json
import resource
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pykeen.models import TuckER
from pykeen.training import LCWATrainingLoop

import kgkit
from benchmarks.tucker_stock import Clock, OutOfTime, factory, run
from benchmarks.tucker_subset import SYMMETRIC, Subset, subset
from benchmarks.tucker_table import page
from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.embedding.tucker.method import _loop, _quiet, both_ways, embed_tucker, pykeen_settings
from kgkit.embedding.tucker.ranking import RankingScores, ranks
from kgkit.embedding.tucker.shared_negatives import SharedNegativesTrainingLoop
from kgkit.embedding.tucker.triples import stored_triples
from kgkit.embedding.tucker.true_tails import TrueTails

SUBSET = "subset.npz"
NEIGHBOURS_OF = (
    "dog.n.01", "car.n.01", "paris.n.01", "run.v.01", "happy.a.01", "jazz.n.02", "physics.n.01",
    "king.n.01", "eat.v.01", "water.n.01",
)  # fmt: skip
# PyKEEN's own reproduction of the paper has LCWA with batches of 128: here that would take 4.1 GB for each of
# several tensors of batch x entities x width.
STOCK: dict[str, dict[str, Any]] = {
    "lcwa": {
        "training_loop": "lcwa",
        "loss": "crossentropy",
        "training_kwargs": {"batch_size": 16},
    },
    "lcwa-bce": {
        "training_loop": "lcwa",
        "loss": "bcewithlogits",
        "training_kwargs": {"batch_size": 16, "label_smoothing": 0.1},
    },
    "slcwa": {
        "training_loop": "slcwa",
        "loss": "bcewithlogits",
        "training_kwargs": {"batch_size": 256},
    },
    "slcwa-nssa": {
        "training_loop": "slcwa",
        "loss": "nssa",
        "negative_sampler_kwargs": {"num_negs_per_pos": 8},
        "training_kwargs": {"batch_size": 64},
    },
}


def the_subset(work: Path) -> Subset:
    """Return the graph, made from WordNet if it is not in *work* yet."""
    path = work / SUBSET
    if not path.exists():
        with kgkit.open_kb("wordnet") as kb:
            subset(kb, seed=0).save(path)
    return Subset.load(path)


def ours_on_the_subset(work: Path, seconds: float, every: float, changes: dict[str, Any], name: str) -> None:
    """Train by our loop with the preset `cpu` and *changes*."""
    data = the_subset(work)
    config = TuckERConfig.preset("cpu", device="cpu", **changes)
    graph = factory(data, data.train)
    clock = Clock(data, seconds, every, work / f"{name}.jsonl")
    with _quiet():
        torch.manual_seed(config.seed)
        steps = 2 * len(data.train) // config.batch_size
        settings = pykeen_settings(config, len(data.entities), steps)
        loop = _loop(graph, config, settings, torch.device("cpu"))
        with suppress(OutOfTime):
            loop.train(
                graph, num_epochs=10_000, batch_size=config.batch_size, callbacks=clock, use_tqdm=False,
                label_smoothing=config.label_smoothing,
            )  # fmt: skip
    groups(loop.model, data, work / f"{name}-groups.json")


def groups(model: Any, data: Subset, path: Path) -> None:
    """Write the scores of the test triples by group of relations."""
    questions = both_ways(data.test)
    true_tails = TrueTails(both_ways(np.concatenate([data.train, data.valid, data.test])))
    test_ranks = ranks(model, questions, true_tails)
    names = np.array(data.relations)[questions[:, 1] // 2]
    symmetric = np.isin(names, SYMMETRIC)
    lines = {"all": test_ranks, "symmetric": test_ranks[symmetric], "others": test_ranks[~symmetric]}
    lines |= {str(name): test_ranks[names == name] for name in np.unique(names)}
    path.write_text(
        json.dumps({name: asdict(RankingScores.of(rows)) for name, rows in lines.items()}, indent=1)
    )


def stock_on_the_subset(work: Path, which: str, seconds: float, every: float) -> None:
    """Train by PyKEEN's pipeline, with the dimensions and dropouts of ours."""
    the_subset(work)
    config = TuckERConfig.preset("cpu", relation_dim=200)
    model = pykeen_settings(config, 1, 1)["model_kwargs"]
    optimizer = {"optimizer": "adam", "optimizer_kwargs": {"lr": 0.001}}
    settings = {"model_kwargs": model, **optimizer, **STOCK[which]}
    run(str(work / SUBSET), str(work / f"stock-{which}.jsonl"), seconds, every, settings)


def small(work: Path, seeds: int, epochs: int) -> None:
    """Train on UMLS by PyKEEN's LCWA loop and by ours, with the same settings."""
    from pykeen.datasets import UMLS

    data = UMLS(create_inverse_triples=True)
    for loss, way, seed in product(LOSSES, WAYS, range(seeds)):
        line = train_and_rank(data, loss, way, seed, epochs)
        with (work / "small.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def train_and_rank(data: Any, loss: str, way: str, seed: int, epochs: int) -> dict[str, Any]:
    """Train once, and rank the test triples."""
    torch.manual_seed(seed)
    model = TuckER(
        triples_factory=data.training, embedding_dim=64, relation_dim=30, dropout_0=0.2, dropout_1=0.2,
        dropout_2=0.3, loss=loss, random_seed=seed,
    )  # fmt: skip
    kind, more = WAYS[way]
    if kind is SharedNegativesTrainingLoop:
        more = {**more, "seed": seed, "sparse": False}
    loop = kind(
        model=model, triples_factory=data.training, optimizer="adam", optimizer_kwargs={"lr": 0.003},
        automatic_memory_optimization=False, **more,
    )  # fmt: skip
    start = time.process_time()
    with _quiet():
        loop.train(
            data.training, num_epochs=epochs, batch_size=128, use_tqdm=False,
            label_smoothing=0.1 if loss == "bcewithlogits" else 0.0,
        )  # fmt: skip
    seconds = time.process_time() - start
    parts = [getattr(data, part).mapped_triples.numpy() for part in ("training", "validation", "testing")]
    true_tails = TrueTails(both_ways(np.concatenate(parts)))
    scores = RankingScores.of(ranks(model, both_ways(parts[2]), true_tails))
    return {"loss": loss, "way": way, "seed": seed, "epochs": epochs, "seconds": seconds, **asdict(scores)}


WAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "PyKEEN, LCWA": (LCWATrainingLoop, {}),
    "ours, grouped": (SharedNegativesTrainingLoop, {"grouped": True}),
    "ours, 64 shared negatives": (SharedNegativesTrainingLoop, {"num_negatives": 64}),
}
LOSSES = ("crossentropy", "bcewithlogits")


def wordnet(work: Path, changes: dict[str, Any], name: str) -> None:
    """Train on all of WordNet and publish; write figures and neighbours."""
    start = time.time()
    with kgkit.open_kb("wordnet") as kb:
        vectors = embed_tucker(kb, TuckERConfig.preset("cpu", name=name, **changes))
        figures = {
            **vectors.manifest.results,
            "wall": time.time() - start,
            "cpu": time.process_time(),
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "triples": len(stored_triples(kb)),
            "neighbours": neighbours(kb, name),
        }
    (work / f"{name}.json").write_text(json.dumps(figures, indent=1))


def neighbours(kb: kgkit.KnowledgeBase, name: str, k: int = 8) -> dict[str, list[tuple[str, float]]]:
    """Return the synsets nearest to each of ten by cosine."""
    matrix = np.array(kb.vectors(name).matrix)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    synsets = np.array([entity.kind == "synset" for entity in kb])
    nearest = {}
    for key in NEIGHBOURS_OF:
        number = kb.id(key)
        scores = np.where(synsets, matrix @ matrix[number], -1)
        scores[number] = -1
        nearest[key] = [(kb.key(int(each)), float(scores[each])) for each in np.argsort(-scores)[:k]]
    return nearest


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tucker", description=__doc__)
    parser.add_argument("what", choices=["subset", "stock", "small", "wordnet", "table"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--every", type=float, default=60)
    parser.add_argument("--way", choices=[*STOCK], default="lcwa", help="which of PyKEEN's loops")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=150, help="of small")
    parser.add_argument("--name", default=None)
    parser.add_argument("--set", type=json.loads, default={}, help="settings of TuckERConfig, as JSON")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    match chosen.what:
        case "subset":
            ours_on_the_subset(chosen.work, chosen.seconds, chosen.every, chosen.set, chosen.name or "ours")
        case "stock":
            stock_on_the_subset(chosen.work, chosen.way, chosen.seconds, chosen.every)
        case "small":
            small(chosen.work, chosen.seeds, chosen.epochs)
        case "wordnet":
            wordnet(chosen.work, chosen.set, chosen.name or "tucker")
        case "table":
            sys.stdout.write(page(chosen.work))


if __name__ == "__main__":
    main()
