"""A thousand edits of WordNet, beside a thousand entities that are added: `python -m benchmarks.editing`."""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.addition import NEW, write_entities
from benchmarks.harness import call, in_turn, median
from benchmarks.inputs import Inputs
from benchmarks.report import Table

EDITS = 1_000
NOTES = """
`python -m benchmarks.editing`: {edits:,} edits of WordNet 3.0, an entity each, drawn evenly over its synsets:
a fifth each get a new label, get a new description and attribute, lose an alias, lose a fact, are retired.
Beside it the {new:,} entities of part (f), added to the same base. Each in a process of its own, in turn,
{repeat} times: medians, CPU seconds from the file to the new build on disk, imports left out. `ratio`: over
`add_to_kb`; the aim is below 1.5.
"""


def write_edits(home: Path, path: Path) -> Path:
    """Write the edits as JSON lines."""
    import kgkit

    with kgkit.open_kb("wordnet", home=home) as kb, path.open("w", encoding="utf-8") as out:
        synsets = [entity for entity in kb.entities("synset") if kb.degree(entity.id)]
        for number, entity in enumerate(synsets[:: len(synsets) // EDITS][:EDITS]):
            triple = next(kb.match(subject=entity.id))
            edit = (
                {"label": f"{entity.label} {number}"},
                {"description": f"{entity.description}, corrected", "attributes": {"checked": number}},
                {"remove_aliases": [kb.surfaces_of(entity.id)[0].surface]},
                {"remove_facts": [{"relation": triple.relation, "object": triple.object}]},
                {"retire": True},
            )[number % 5]
            out.write(json.dumps({"key": entity.key, **edit}) + "\n")
    return path


def bench(inputs: Inputs) -> Table:
    """Edit and add to copies of the same KB, in turn."""
    home, out = inputs.home(), inputs.work / "changed"
    entities = write_entities(inputs.work / "thousand.jsonl")
    edits = write_edits(home, inputs.work / "edits.jsonl")
    jobs = (("`add_to_kb`", "add", {"source": entities}), ("`edit_kb`", "edit", {"edits": edits}))
    calls = [
        call(name, f"benchmarks.own:{function}", {"home": home, "out": out, **source}, writes=(out,))
        for name, function, source in jobs
    ]
    samples = in_turn(calls, inputs.repeat)
    seconds = {name: median(runs, lambda run: run.result["seconds"]) for name, runs in samples.items()}
    rows = [
        [name, f"{seconds[name]:.2f}", f"{median(runs, lambda run: run.peak / 1e6):.0f}",
         f"{seconds[name] / seconds['`add_to_kb`']:.2f}"]
        for name, runs in samples.items()
    ]  # fmt: skip
    notes = NOTES.format(edits=EDITS, new=NEW, repeat=inputs.repeat)
    columns = ("", "CPU s", "peak MB", "ratio")
    return Table(title="(z) A thousand edits of WordNet", notes=notes, columns=columns, rows=rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editing")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of the WordNet 3.0 files")
    parser.add_argument("--repeat", type=int, default=5, help="how many times each is measured")
    parser.add_argument("--work", type=Path, help="keep what is made on the way here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (options.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        inputs = Inputs(
            wordnet=options.wordnet.resolve(), data=work, work=work, knowbert=None, repeat=options.repeat
        )
        print(bench(inputs).markdown())


if __name__ == "__main__":
    main()
