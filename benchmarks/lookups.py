"""Look-ups with random keys, one thread."""

from benchmarks.harness import Job, call, in_turn, median
from benchmarks.inputs import Inputs
from benchmarks.report import Table, Target, figures

COUNT = 100_000  # keys: half of them warm up, half are timed

OWN = "benchmarks.own"
WN = "benchmarks.peers.wn_wordnet"
NLTK = "benchmarks.peers.nltk_wordnet"
LMDB = "benchmarks.peers.bare_lmdb"

# (question, label, module, what the module's `look_up` is asked, look-ups a second aimed at)
LOOK_UPS: tuple[tuple[str, str, str, str, float | None], ...] = (
    ("an entity by its key", "kgkit, `kb[key]`, decoded", OWN, "entity", 300_000),
    ("", "wn, `synset(id)` (gloss not yet read)", WN, "entity", None),
    ("", "nltk, `synset(name)`", NLTK, "entity", None),
    ("", "LMDB, `get` of a record, not copied", LMDB, "views", None),
    ("", "LMDB, `get` and msgpack to a struct", LMDB, "decoded", None),
    ("candidates of a random lemma", "kgkit, `kb.candidates`, arrays", OWN, "lemmas, arrays", 500_000),
    ("", "kgkit, decoded", OWN, "lemmas, decoded", 200_000),
    ("", "wn, `synsets(form)`", WN, "lemmas", None),
    ("", "nltk, `synsets(lemma)`", NLTK, "lemmas", None),
    ("candidates of a polysemous lemma", "kgkit, `kb.candidates`, arrays", OWN, "polysemous, arrays", None),
    ("", "kgkit, decoded", OWN, "polysemous, decoded", None),
    ("", "wn, `synsets(form)`", WN, "polysemous", None),
    ("", "nltk, `synsets(lemma)`", NLTK, "polysemous", None),
    ("neighbours of a synset", "kgkit, `kb.neighbors(id)` → ids", OWN, "neighbour_ids", 500_000),
    ("", 'kgkit, `kb.neighbors(id, "hypernym")` → ids', OWN, "hypernym_ids", None),
    ("", "kgkit, `kb.neighbors(key)` → entities", OWN, "neighbours", 150_000),
    ("", "wn, `get_related()` of a synset in hand", WN, "related", None),
    ("", "wn, `synset(id).get_related()`", WN, "neighbours", None),
    ("", "nltk, `synset(name).hypernyms()`", NLTK, "neighbours", None),
)

NOTES = f"""
{COUNT:,} distinct random keys (fewer where fewer lemmas have several synsets): half of them warm the process
up and are not timed, half are timed. `new`: none of these was asked for before; `again`: the same ones a
second time, which shows what a cache gives. Opening is not timed. Peak memory includes the list of keys.
"""


def bench(inputs: Inputs) -> list[Table]:
    """Ask every library the same questions about the same keys."""
    keys, records = inputs.keys(), inputs.records()
    inputs.wn_data()
    inputs.home()

    def job(number: int) -> Job:
        _, label, module, what, _ = LOOK_UPS[number]
        question: dict[str, object] = {"what": what, "keys": keys, "count": COUNT}
        if module == LMDB:
            question["records"] = records
        return call(f"{number} {label}", f"{module}:look_up", question, inputs.environment)

    samples = in_turn([job(number) for number in range(len(LOOK_UPS))], inputs.repeat)
    rows, targets = [], []
    for (question, label, _, what, aim), runs in zip(LOOK_UPS, samples.values(), strict=True):
        new = median(runs, lambda run: run.result["new"])
        again = median(runs, lambda run: run.result["again"])
        peak = median(runs, lambda run: run.peak / 1e6)
        rows.append([question, label, figures(new), figures(again), f"{peak:.0f}"])
        if aim is not None:
            targets.append(Target(what=f"look-up: {what}", value=new, aim=aim, unit="/s"))
    return [
        Table(
            title="(b) Look-ups a second",
            notes=NOTES,
            columns=("question", "asked", "new", "again", "peak MB"),
            rows=rows,
            targets=targets,
        )
    ]
