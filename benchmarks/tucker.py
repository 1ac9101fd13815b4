"""`python -m benchmarks.tucker`: TuckER by our training loop beside PyKEEN's own.

    subset     ours on a graph of WN18RR's size
    stock      PyKEEN's pipeline with a stock loop on the same graph, measured by the clock
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
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

import kgkit
from benchmarks.tucker_stock import run
from benchmarks.tucker_subset import SYMMETRIC, Subset, subset
from benchmarks.tucker_table import page
from kgkit.embedding.tucker import config as fixed
from kgkit.embedding.tucker.config import TuckERConfig
from kgkit.embedding.tucker.method import embed_tucker
from kgkit.embedding.tucker.scoring import RankingScores, ranks
from kgkit.embedding.tucker.training import train
from kgkit.embedding.tucker.triples import Split, TrueTails, both_ways, stored_triples

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


def ours_on_the_subset(work: Path, changes: dict[str, Any], name: str) -> None:
    """Train with *changes* of the settings; held-out triples are those of validation."""
    data = the_subset(work)
    began = time.process_time()
    steps = 0

    def count(stage: str, done: int, of: int) -> None:
        nonlocal steps
        steps = done

    trained = train(
        Split(data.train, data.valid), len(data.entities), len(data.relations),
        TuckERConfig(device="cpu", **changes), work, torch.device("cpu"), progress=count,
    )  # fmt: skip
    seconds = time.process_time() - began
    scores = groups(trained.model, data, work / f"{name}-groups.json")
    line = {"seconds": seconds, "seconds_a_step": seconds / steps, "part": "test", **asdict(scores)}
    (work / f"{name}.jsonl").write_text(json.dumps(line) + "\n")


def groups(model: Any, data: Subset, path: Path) -> RankingScores:
    """Write the scores of the test triples by group of relations; return those of all."""
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
    return RankingScores.of(test_ranks)


def stock_on_the_subset(work: Path, which: str, seconds: float, every: float) -> None:
    """Train by PyKEEN's pipeline, with the dimensions and dropouts of ours."""
    the_subset(work)
    model = {
        "embedding_dim": 200, "relation_dim": 200, "dropout_0": fixed.INPUT_DROPOUT,
        "dropout_1": fixed.RELATION_DROPOUT, "dropout_2": fixed.HIDDEN_DROPOUT,
    }  # fmt: skip
    optimizer = {"optimizer": "adam", "optimizer_kwargs": {"lr": 0.001}}
    settings = {"model_kwargs": model, **optimizer, **STOCK[which]}
    run(str(work / SUBSET), str(work / f"stock-{which}.jsonl"), seconds, every, settings)


def wordnet(work: Path, changes: dict[str, Any], name: str) -> None:
    """Train on all of WordNet and publish; write figures and neighbours."""
    start = time.time()
    with kgkit.open_kb("wordnet") as kb:
        vectors = embed_tucker(kb, TuckERConfig(name=name, **changes))
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
    parser.add_argument("what", choices=["subset", "stock", "wordnet", "table"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--every", type=float, default=60)
    parser.add_argument("--way", choices=[*STOCK], default="lcwa", help="which of PyKEEN's loops")
    parser.add_argument("--name", default=None)
    parser.add_argument("--set", type=json.loads, default={}, help="settings of TuckERConfig, as JSON")
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    match chosen.what:
        case "subset":
            ours_on_the_subset(chosen.work, chosen.set, chosen.name or "ours")
        case "stock":
            stock_on_the_subset(chosen.work, chosen.way, chosen.seconds, chosen.every)
        case "wordnet":
            wordnet(chosen.work, chosen.set, chosen.name or "tucker")
        case "table":
            sys.stdout.write(page(chosen.work))


if __name__ == "__main__":
    main()
