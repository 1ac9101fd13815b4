"""Facts of other entities: the control that tells what is known from what comes with it.

    python -m benchmarks.other_facts HowNet.spo OUT_DIR/other.spo
    kgkit build-kb spo OUT_DIR/other.spo --name hownet-other

Injected facts also show a K-BERT where a word of the knowledge base begins and ends, and which words it has.
Here every subject keeps its number of facts; predicates and objects are drawn from those of all subjects.
"""

import argparse
from pathlib import Path

import numpy as np

from kgkit.files import opened, written


def write_other_facts(source: Path, target: Path, seed: int = 0) -> int:
    """Write the lines of a file of subject, predicate and object, with predicates and objects permuted.

    Args:
        source: file of lines of three fields with tabs between; other lines are left out.
        target: file to write.
        seed: seed of the permutation.

    Returns:
        Number of facts whose subject has the same fact as before.
    """
    with opened(source) as lines:
        triples = [line.rstrip("\n").split("\t") for line in lines.read().decode().splitlines()]
    triples = [triple for triple in triples if len(triple) == 3]
    drawn = np.random.default_rng(seed).permutation(len(triples)).tolist()
    facts = {(subject, *fact) for subject, *fact in triples}
    same = 0
    with written(target) as file:
        for (subject, _, _), other in zip(triples, drawn, strict=True):
            _, predicate, named = triples[other]
            same += (subject, predicate, named) in facts
            file.write(f"{subject}\t{predicate}\t{named}\n".encode())
    return same


def main() -> None:
    """Write the file, and how many facts are as they were."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.other_facts")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    same = write_other_facts(chosen.source, chosen.target, chosen.seed)
    print(f"{same:,} facts are as they were")


if __name__ == "__main__":
    main()
