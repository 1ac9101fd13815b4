"""Running one bench of a large source alone, of another size than `make bench-scale` gives it."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import report
from benchmarks.inputs import Inputs
from benchmarks.report import Table


def main(name: str, bench: Callable[..., list[Table]], size: str, defaults: tuple[int, str, int]) -> None:
    """Run `bench(inputs, size, memory, workers)` as the command line says, and write its page.

    Args:
        name: of the module.
        bench: its function.
        size: what the option for the size is called.
        defaults: size, memory, workers.
    """
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}")
    parser.add_argument(f"--{size}", dest="size", type=int, default=defaults[0])
    parser.add_argument("--memory", default=defaults[1])
    parser.add_argument("--workers", type=int, default=defaults[2])
    parser.add_argument("--work", type=Path, help="keep what is made on the way here")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = (chosen.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        inputs = Inputs(wordnet=work, data=work, work=work, knowbert=None, repeat=1)
        tables = bench(inputs, chosen.size, chosen.memory, chosen.workers)
    print(report.page(tables, 1))
