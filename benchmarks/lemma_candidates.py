"""Mentions and candidates over running text, and plain alias matching."""

from benchmarks.harness import Job, call, in_turn, median
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target, figures

TOKENS_A_SECOND = 800_000.0
PEAK_MB = 200.0

NOTES = """
The valid and test parts of WikiText-2, {tokens:,} whitespace tokens, one document a line. Nothing has been
looked up before the clock starts. `tokens/s` counts opening the KB and making the generator (for a peer:
loading its table, or making its automaton); `after opening` does not.

kgkit and KnowBert hand out mentions with their candidates; `AliasGenerator` keeps the longest of the
spans that overlap. The two matchers give every span of an alias as written: no inflected forms, no
candidates.

KnowBert's generator is run from a checkout of allenai/kb that `KGKIT_BENCH_KNOWBERT` names, with a table of
lemmas in place of spaCy, which costs it less.
"""


def bench(inputs: Inputs) -> list[Table]:
    """Read the same text with every generator and matcher."""
    keys, text = inputs.keys(), inputs.text()
    inputs.home()

    def own(generator: str) -> Job:
        arguments = {"generator": generator, "text": text}
        return call(f"kgkit, `{generator}`", "benchmarks.own:mentions", arguments, inputs.environment)

    def matcher(name: str, function: str) -> Job:
        return call(name, f"benchmarks.peers.matchers:{function}", {"keys": keys, "text": text})

    jobs = [
        own("LemmaGenerator"),
        *_knowbert(inputs),
        own("AliasGenerator"),
        matcher("ahocorasick_rs", "aho_corasick"),
        matcher("spaCy, `PhraseMatcher`", "phrase_matcher"),
    ]
    samples = in_turn(jobs, inputs.repeat)
    rows, tokens = [], 0
    for name, runs in samples.items():
        first = runs[0].result
        tokens = first["tokens"]
        opening = median(runs, lambda run: run.result["opening"])
        seconds = median(runs, lambda run: run.result["seconds"])
        speed, alone = figures(tokens / seconds), figures(tokens / (seconds - opening))
        spans = f"{first['spans'] / tokens:.3f}"
        candidates = f"{first['candidates'] / tokens:.2f}" if "candidates" in first else ""
        peak = f"{median(runs, lambda run: run.peak / 1e6):.0f}"
        rows.append([name, speed, alone, f"{1e3 * opening:.0f}", spans, candidates, peak])
    if inputs.knowbert is None:
        rows.insert(1, ["KnowBert's own generator: not run", *[""] * 6])
    own_runs = samples[jobs[0].name]
    speed_reached = tokens / median(own_runs, lambda run: run.result["seconds"])
    peak_reached = median(own_runs, lambda run: run.peak / 1e6)
    return [
        Table(
            title="(d) Candidates over text",
            notes=NOTES.format(tokens=tokens),
            columns=(
                *("", "tokens/s", "after opening", "opening ms"),
                *("spans a token", "candidates a token", "peak MB"),
            ),
            rows=rows,
            targets=[
                Target(what="lemma candidates", value=speed_reached, aim=TOKENS_A_SECOND, unit="tokens/s"),
                Target(
                    what="lemma candidates, peak memory",
                    value=peak_reached,
                    aim=PEAK_MB,
                    unit="MB",
                    at_most=True,
                ),
            ],
        )
    ]


def _knowbert(inputs: Inputs) -> list[Job]:
    """Return the job that runs KnowBert's own generator, where there is a checkout."""
    if inputs.knowbert is None:
        return []
    arguments = {"checkout": inputs.knowbert, "entities": inputs.entities(), "text": inputs.text()}
    return [
        call("KnowBert's own generator", "benchmarks.peers.knowbert:mentions", arguments, inputs.environment)
    ]
