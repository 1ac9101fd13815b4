"""spaCy's `entity_linker` over a knowledge base of kgkit, and over its own with the same candidates.

    OMP_NUM_THREADS=1 python -m benchmarks.spacy_entity_linker --home HOME [--kb aida] [--vectors text]

AIDA's train, its mentions given, once over: an `InMemoryLookupKB` with all entities of the knowledge base,
and the candidates of all its surfaces and of the mentions as they are written, is filled and saved. Then
each of the two trains in a process of its own, with the same seed, predicts the entities of documents of
testa, and saves its pipeline, which another process loads. Memory is resident memory above that of a
process that has imported all and read the documents; what is mapped and shared counts too.
"""

import argparse
import json
import lzma
import os
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.harness import REPOSITORY, call, run
from benchmarks.report import Table

DATA: Final = REPOSITORY.parent / "shared" / "data" / "aida"
BATCH: Final = 16
PREDICTED: Final = 40

NOTES: Final = """
One pass over {docs} documents of AIDA's train over {kb} and its vectors {vectors}, batches of {batch}, the
same seed; then {predicted} documents of testa. {steps} losses, equal to the last digit: {losses}; {mentions}
predicted entities, equal: {entities} (of those with a gold entity right: {correct}). {aliases:,} aliases were
copied into the `InMemoryLookupKB`; {refused} were refused by it. Memory is resident above imports and
documents, at most while training, and after loading and a prediction.
"""


def sentences(split: str, count: int | None) -> Iterator[dict[str, Any]]:
    """Yield the documents of a part of AIDA."""
    with lzma.open(DATA / f"aida_{split}.jsonl.xz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, islice(lines, count))


def examples_of(vocab: Any, split: str, count: int | None, keys: dict[str, str]) -> list[Any]:
    """Return examples of spaCy, whose mentions are set, with their gold entities."""
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    examples = []
    for line in sentences(split, count):
        starts = {start for start, _ in line["sentences"]}
        pair = []
        for with_gold in (False, True):
            words = line["tokens"]
            doc = Doc(vocab, words=words, sent_starts=[index in starts for index in range(len(words))])
            doc.ents = [
                Span(
                    doc, mention["start"], mention["end"], mention["type"],
                    kb_id=keys.get(mention["entity"], "") if with_gold else "",
                )
                for mention in line["mentions"]
            ]  # fmt: skip
            pair.append(doc)
        examples.append(Example(*pair))
    return examples


def gold_keys(kb: str) -> dict[str, str]:
    """Return the keys of AIDA's gold entities that the knowledge base has."""
    import kgkit

    keys = {}
    with kgkit.open_kb(kb) as opened:
        for split in ("train", "testa"):
            for line in sentences(split, None):
                for mention in line["mentions"]:
                    title = mention["entity"]
                    if title and title not in keys and (entity := opened.get(title)) is not None:
                        keys[title] = entity.key
    return keys


def fill(kb: str, vectors: str, out: str) -> dict[str, int]:
    """Save an `InMemoryLookupKB` with the entities and candidates of the knowledge base."""
    import spacy
    from spacy.kb import InMemoryLookupKB

    import kgkit
    from kgkit.spacy.kb import knowledge_base

    vocab = spacy.blank("en").vocab
    stored = knowledge_base(kb, vectors)(vocab)
    copied = InMemoryLookupKB(vocab, entity_vector_length=stored.entity_vector_length)
    with kgkit.open_kb(kb) as opened:
        for entity in opened:
            copied.add_entity(entity.key, 0.0, stored.get_vector(entity.key).tolist())
        surfaces = set(opened.surfaces())
    for split in ("train", "testa"):
        for line in sentences(split, None):
            words = line["tokens"]
            surfaces.update(" ".join(words[each["start"] : each["end"]]) for each in line["mentions"])
    refused = 0
    for surface in sorted(surfaces):
        rows = stored.get_alias_candidates(surface)
        try:
            if rows:
                copied.add_alias(surface, [row.entity_ for row in rows], [row.prior_prob for row in rows])
        except ValueError:  # priors that add up to more than 1.00001
            refused += 1
    copied.to_disk(out)
    return {"aliases": copied.get_size_aliases(), "refused": refused}


def resident() -> int:
    """Return the bytes of resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """Return the largest resident memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def pipeline(kind: str, kb: str, vectors: str, saved: str) -> tuple[Any, Any]:
    """Return a pipeline with an `entity_linker`, and the loader of its knowledge base if it has one."""
    import spacy
    from spacy.kb import InMemoryLookupKB

    nlp = spacy.blank("en")
    config: dict[str, Any] = {"use_gold_ents": False}
    loader = None
    if kind == "stored":
        source = {"@misc": "kgkit.KnowledgeBase.v1", "kb": kb, "vectors": vectors}
        config["generate_empty_kb"] = source
    else:

        def loader(vocab: Any) -> Any:
            """Return the saved knowledge base."""
            loaded = InMemoryLookupKB(vocab, entity_vector_length=1)
            loaded.from_disk(saved)
            return loaded

    nlp.add_pipe("entity_linker", config=config)
    return nlp, loader


def train(kind: str, kb: str, vectors: str, saved: str, docs: int, out: str) -> dict[str, Any]:
    """Train, predict and save; return losses, entities and memory."""
    from spacy.util import fix_random_seed, minibatch

    keys = gold_keys(kb)
    nlp, loader = pipeline(kind, kb, vectors, saved)
    examples = examples_of(nlp.vocab, "train", docs, keys)
    testa = examples_of(nlp.vocab, "testa", PREDICTED, keys)
    linker = nlp.get_pipe("entity_linker")
    before = resident()
    fix_random_seed(0)
    linker.initialize(lambda: examples, nlp=nlp, kb_loader=loader)
    optimizer = nlp.create_optimizer()
    random.shuffle(examples)
    start = time.process_time()
    losses = [
        linker.update(batch, sgd=optimizer)["entity_linker"] for batch in minibatch(examples, size=BATCH)
    ]
    seconds = time.process_time() - start
    fix_random_seed(0)
    start = time.process_time()
    entities = linker.predict([example.predicted for example in testa])
    predicting = time.process_time() - start
    gold = [ent.kb_id_ for example in testa for ent in example.reference.ents]
    memory = peak() - before
    nlp.to_disk(out)
    size = sum(path.stat().st_size for path in Path(out).rglob("*") if path.is_file())
    correct = sum(entity == key for entity, key in zip(entities, gold, strict=True) if key)
    return {
        "losses": losses, "entities": entities, "correct": f"{correct} of {sum(map(bool, gold))}",
        "seconds": seconds, "predicting": predicting, "memory": memory, "size": size,
    }  # fmt: skip


def load(path: str) -> dict[str, float]:
    """Load a pipeline and link a document; return seconds and memory."""
    import spacy
    from spacy.tokens import Doc, Span

    import kgkit.spacy.kb

    assert kgkit.spacy.kb
    blank = spacy.blank("en")
    blank.add_pipe("entity_linker")
    before = resident()
    start, clock = time.process_time(), time.perf_counter()
    nlp = spacy.load(path)
    seconds, clock = time.process_time() - start, time.perf_counter() - clock
    doc = Doc(nlp.vocab, words=["Germany", "beat", "Japan", "."], sent_starts=[True, False, False, False])
    doc.ents = [Span(doc, 0, 1, "LOC"), Span(doc, 2, 3, "LOC")]
    nlp.get_pipe("entity_linker")(doc)
    return {"seconds": seconds, "clock": clock, "memory": resident() - before}


def measure(options: argparse.Namespace, folder: Path) -> Table:
    """Measure in processes of their own, and return the table."""
    environment = {"KGKIT_HOME": options.home}
    saved = folder / "in-memory"
    common = {"kb": options.kb, "vectors": options.vectors}
    module = "benchmarks.spacy_entity_linker"
    filled = run(call("fill", f"{module}:fill", {**common, "out": saved}, environment)).result
    trained, loaded = {}, {}
    for kind in ("stored", "in memory"):
        arguments = {**common, "kind": kind, "saved": saved, "docs": options.docs, "out": folder / kind}
        trained[kind] = run(call(kind, f"{module}:train", arguments, environment)).result
    for kind in trained:
        job = call(kind, f"{module}:load", {"path": folder / kind}, environment)
        loaded[kind] = min((run(job).result for _ in range(3)), key=lambda result: result["seconds"])
    stored, memory = trained["stored"], trained["in memory"]
    rows = []
    for name, values in (
        ("training, CPU s", [result["seconds"] for result in (stored, memory)]),
        ("predicting, CPU s", [result["predicting"] for result in (stored, memory)]),
        ("memory while training, MB", [result["memory"] / 1e6 for result in (stored, memory)]),
        ("pipeline on disk, MB", [result["size"] / 1e6 for result in (stored, memory)]),
        ("`spacy.load`, CPU s", [loaded[kind]["seconds"] for kind in trained]),
        ("memory after loading, MB", [loaded[kind]["memory"] / 1e6 for kind in trained]),
    ):
        rows.append([name, *(f"{value:.2f}" for value in values), f"{values[0] / values[1]:.3f}"])
    notes = NOTES.format(
        docs=options.docs, kb=options.kb, vectors=options.vectors, batch=BATCH, predicted=PREDICTED,
        steps=len(stored["losses"]), losses=stored["losses"] == memory["losses"],
        mentions=len(stored["entities"]), entities=stored["entities"] == memory["entities"],
        correct=stored["correct"], aliases=filled["aliases"], refused=filled["refused"],
    )  # fmt: skip
    columns = ("", "kgkit", "`InMemoryLookupKB`", "ratio")
    return Table(title="(x) spaCy's `entity_linker`", notes=notes, columns=columns, rows=rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spacy_entity_linker")
    parser.add_argument("--home", required=True, help="home with the knowledge base and its vectors")
    parser.add_argument("--kb", default="aida")
    parser.add_argument("--vectors", default="text")
    parser.add_argument("--docs", type=int, default=946, help="documents of AIDA's train")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(measure(options, Path(folder)).markdown())


if __name__ == "__main__":
    main()
