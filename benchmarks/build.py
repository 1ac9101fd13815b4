"""Building WordNet: kgkit, KnowBert's extraction through nltk, `wn.add` of a WN-LMF file."""

from benchmarks.harness import call, in_turn, median
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target

TIMES_FASTER = {"KnowBert": 5.0, "wn": 1.7}
PEAK_MB = 400.0

NOTES = """
Whole processes, from the start of the interpreter to its end. The WN-LMF file is written beforehand, from
the same files. `times`: CPU seconds divided by kgkit's.
"""


def bench(inputs: Inputs) -> list[Table]:
    """Build from the same files, in turn."""
    inputs.nltk_data()
    lmf = inputs.lmf()
    home, wn_home = inputs.work / "build-home", inputs.work / "build-wn"
    entities, relations = inputs.work / "entities.jsonl", inputs.work / "relations.tsv"
    extraction: dict[str, object] = {"entities": entities, "relations": relations}
    if inputs.knowbert is None:
        knowbert, whose = "benchmarks.peers.nltk_wordnet:extract", "its job in our words"
    else:
        knowbert, whose = "benchmarks.peers.knowbert:extract", "its own file"
        extraction["checkout"] = inputs.knowbert
    samples = in_turn(
        [
            call("kgkit", "benchmarks.own:build", {"wordnet": inputs.wordnet, "out": home}, writes=(home,)),
            call("KnowBert", knowbert, extraction, inputs.environment, writes=(entities, relations)),
            call("wn", "benchmarks.peers.wn_wordnet:add", {"lmf": lmf, "out": wn_home}, writes=(wn_home,)),
        ],
        inputs.repeat,
    )
    labels = {
        "kgkit": "kgkit, `build_kb`",
        "KnowBert": f"KnowBert, extraction through nltk ({whose})",
        "wn": "wn, `wn.add` of WN-LMF with sense relations",
    }
    own = samples["kgkit"]
    own_cpu = median(own, lambda run: run.cpu)
    own_peak = median(own, lambda run: run.peak / 1e6)
    targets = [Target(what="build, peak memory", value=own_peak, aim=PEAK_MB, unit="MB", at_most=True)]
    rows = []
    for name, runs in samples.items():
        cpu, wall = median(runs, lambda run: run.cpu), median(runs, lambda run: run.wall)
        peak = median(runs, lambda run: run.peak / 1e6)
        rows.append([labels[name], f"{cpu:.2f}", f"{wall:.2f}", f"{peak:.0f}", f"{cpu / own_cpu:.2f}"])
        if name in TIMES_FASTER:
            what = f"build, times faster than {name}"
            targets.append(Target(what=what, value=cpu / own_cpu, aim=TIMES_FASTER[name], unit="times"))
    return [
        Table(
            title="(a) Build of WordNet",
            notes=NOTES,
            columns=("", "CPU s", "wall s", "peak MB", "times"),
            rows=rows,
            targets=targets,
        )
    ]
