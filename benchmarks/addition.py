"""A thousand entities of one's own, added to WordNet: kgkit, kgkit building all anew, spaCy's KB."""

import json
from pathlib import Path

from benchmarks.harness import call, in_turn, median
from benchmarks.inputs import Inputs
from benchmarks.report import Table

NEW = 1_000
NOTES = """
1,000 made-up entities, with two aliases, two facts and a description each, go into a WordNet that is there.
CPU seconds from the file to the new knowledge base on disk, imports left out; then a text that names twenty
of them is linked, and all twenty must be found. spaCy's KB holds WordNet's synsets, their frequencies and
the lemmas with their priors, and vectors of one number: it is read from disk, added to, and written again.
`times`: CPU seconds divided by those of `add_to_kb`.
"""


def bench(inputs: Inputs) -> list[Table]:
    """Add to a copy of the same KB, in turn."""
    home, spacy_kb = inputs.home(), inputs.spacy_kb()
    source = write_entities(inputs.work / "thousand.jsonl")
    out = inputs.work / "added"
    samples = in_turn(
        [
            call(
                "kgkit, `add_to_kb`",
                "benchmarks.own:add",
                {"home": home, "source": source, "out": out},
                writes=(out,),
            ),
            call(
                "kgkit, `build_kb` of WordNet alone",
                "benchmarks.own:rebuild",
                {"wordnet": inputs.wordnet, "out": out},
                writes=(out,),
            ),
            call(
                "spaCy, `InMemoryLookupKB` read, added to, written",
                "benchmarks.peers.spacy_kb:add",
                {"kb": spacy_kb, "source": source, "out": out},
                writes=(out,),
            ),
        ],
        inputs.repeat,
    )
    own = median(samples["kgkit, `add_to_kb`"], lambda run: run.result["seconds"])
    rows = []
    for name, runs in samples.items():
        seconds = median(runs, lambda run: run.result["seconds"])
        peak = median(runs, lambda run: run.peak / 1e6)
        linked = runs[0].result["linked"]
        rows.append([name, f"{seconds:.2f}", f"{peak:.0f}", str(linked), f"{seconds / own:.2f}"])
    return [
        Table(
            title="(f) A thousand entities added to WordNet",
            notes=NOTES,
            columns=("", "CPU s", "peak MB", "linked of 20", "times"),
            rows=rows,
        )
    ]


def write_entities(path: Path) -> Path:
    """Write the entities as JSON lines."""
    with path.open("w", encoding="utf-8") as out:
        for number in range(NEW):
            entity = {
                "key": f"zorb_{number}",
                "label": f"Zorblax {number}",
                "description": f"The made-up thing that has the number {number}.",
                "types": ["zorb"],
                "aliases": [{"text": f"zorb number {number}", "count": number % 7}],
            }
            triples = [
                {"subject": f"zorb_{number}", "relation": "instance_hypernym", "object": "artifact.n.01"},
                {"subject": f"zorb_{number}", "relation": "next", "object": f"zorb_{(number + 1) % NEW}"},
            ]
            out.writelines(json.dumps(line) + "\n" for line in (entity, *triples))
    return path
