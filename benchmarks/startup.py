"""From nothing to the first answer."""

import statistics
import sys

from benchmarks.harness import Job, Sample, in_turn
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target

TIMES = 8  # times the number of runs of the other benches: these are short
FIRST_ANSWER_MS = 10.0
PROCESS_MS = 150.0
NOT_LOADED = ("sqlalchemy", "torch", "faiss", "spacy", "transformers")

FIRST = f"""
import json, sys, time
from kgkit import open_kb
wall, cpu = time.perf_counter(), time.process_time()
open_kb('wordnet')['dog.n.01']
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps(dict(wall=wall, cpu=cpu, loaded=sorted(set({NOT_LOADED!r}) & set(sys.modules)))))
"""
PROCESSES = {
    "bare": "pass",
    "kgkit": "import kgkit; kgkit.open_kb('wordnet')['dog.n.01']",
    "wn": "import wn; wn.Wordnet('bench:3.0').synset({wn_id!r}).definition()",
    "nltk": "from nltk.corpus import wordnet; wordnet.synset('dog.n.01')",
}
DOG = "bench-02084071-n"  # dog.n.01 in WordNet 3.0

NOTES = """
Medians of {runs} runs, the kinds in turn; files are in the page cache. The targets are held against CPU
time, like all others; the wall clock also waits for whatever else the machine does. `import kgkit` alone
loads next to nothing; the first row starts its clock after `from kgkit import open_kb`, the whole process
does not.

Loaded by kgkit among {not_loaded}: {loaded}.
"""


def bench(inputs: Inputs) -> list[Table]:
    """Measure a first answer inside a process, and whole processes against a bare interpreter."""
    inputs.nltk_data()
    inputs.wn_data()
    inputs.home()

    def job(name: str, code: str) -> Job:
        return Job(name=name, command=(sys.executable, "-c", code), environment=inputs.environment)

    jobs = [job("first", FIRST)] + [job(name, code.format(wn_id=DOG)) for name, code in PROCESSES.items()]
    samples = in_turn(jobs, inputs.repeat * TIMES)
    first = [sample.result for sample in samples.pop("first")]
    loaded = sorted({name for result in first for name in result["loaded"]})

    def milliseconds(runs: list[Sample]) -> tuple[float, float]:
        cpu, wall = (sample.cpu for sample in runs), (sample.wall for sample in runs)
        return 1e3 * statistics.median(cpu), 1e3 * statistics.median(wall)

    cpu, wall = (1e3 * statistics.median(result[clock] for result in first) for clock in ("cpu", "wall"))
    rows = [["kgkit imported: `open_kb` to the first answer", f"{cpu:.1f}", f"{wall:.1f}"]]
    targets = [_at_most("first answer, kgkit imported", cpu, FIRST_ANSWER_MS)]
    bare_cpu, bare_wall = milliseconds(samples.pop("bare"))
    rows.append(["bare interpreter, whole process", f"{bare_cpu:.1f}", f"{bare_wall:.1f}"])
    for name, runs in samples.items():
        cpu, wall = milliseconds(runs)
        label = f"{name}, whole process above the bare interpreter"
        rows.append([label, f"{cpu - bare_cpu:.1f}", f"{wall - bare_wall:.1f}"])
        if name == "kgkit":
            targets.append(_at_most("first answer, whole process", cpu - bare_cpu, PROCESS_MS))
    return [
        Table(
            title="(c) Start",
            notes=NOTES.format(
                runs=inputs.repeat * TIMES,
                not_loaded=", ".join(NOT_LOADED),
                loaded=", ".join(loaded) or "none",
            ),
            columns=("", "CPU ms", "wall ms"),
            rows=rows,
            targets=targets,
        )
    ]


def _at_most(what: str, milliseconds: float, aim: float) -> Target:
    return Target(what=what, value=milliseconds, aim=aim, unit="ms", at_most=True)
