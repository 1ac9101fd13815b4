"""AIDA's Wikipedia slice: building it, and how far its aliases reach in AIDA's documents."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks import aida_kb
from benchmarks.aida_kb import SPLITS
from benchmarks.harness import call, in_turn, median, run
from benchmarks.inputs import Inputs
from benchmarks.report import Table

if TYPE_CHECKING:
    from kgkit import KnowledgeBase
    from kgkit.types import Candidates, Document

VARIANTS: Final = {
    "aida": ((), "whole"),
    "aida-testb": (("testb",), "without the mentions of testb"),
    "aida-redirects": (("redirects",), "without the redirects"),
    "aida-testb-redirects": (("testb", "redirects"), "without either"),
}
K: Final = 30
OF_MENTIONS: Final = ("found", "found of all", "prior")
KINDS: Final = ("longest", "all")
OF_SPANS: Final = ("spans", "mentions", "with gold")
EBERT_SPANS: Final = {"train": 153_103, "testa": 38_012, "testb": 34_936}  # Table 9
MOST_LINKS: Final = {"train": 82.7, "testa": 78.8, "testb": 78.2}  # of aliases.jsonl.xz, by its README

BUILD_NOTES = """
The files of `python -m benchmarks.aida_kb`, built with `build_kb("jsonl")`: whole processes. `lines/s`:
lines of those files by CPU second.
"""
MENTIONS_NOTES = f"""
The spans of AIDA's mentions are given, those with an entity counted. `found`: the gold entity is among the
first {K} candidates; `all`: among all of them; `prior`: it is the first. Two titles are equal if
`redirects.json.xz` leads both to one page. No split's entities are read to make the KB.

For orientation: taking the candidate with most links from PPRforNED's `aliases.jsonl.xz` is right in
{" / ".join(f"{value} %" for value in MOST_LINKS.values())} of train / testa / testb (its README; by title
alone). That file holds the gold entity for all mentions but two, by construction.
"""
TEXT_NOTES = f"""
`AliasGenerator` over whole documents, their tokens joined with spaces, {K} candidates at most. `longest`
keeps the leftmost-longest of the spans that overlap, `all` keeps every one. `mentions`: the share of gold
mentions with an entity whose very span is found; `with gold`: and the gold entity is among its candidates.

E-BERT's Table 9 counts 153,103 / 38,012 / 34,936 spans. They come from KnowBert's generator: every run of
at most five tokens that its table of CrossWikis, Wikipedia and YAGO knows, in any case, is a span, overlaps
and all, but for runs with punctuation and those that begin or end with a stop word. That table has the
anchors of links in all of Wikipedia and on the web, common words among them. Ours has the names of 36,545
pages, all of them candidates for a mention in AIDA; a common word is in it where it is such a title.
"""


def bench(inputs: Inputs) -> list[Table]:
    """Build every variant in turn, then look for AIDA's mentions in each."""
    sources, homes = {}, {}
    lines = {}
    for name, (without, _) in VARIANTS.items():
        sources[name], homes[name] = inputs.work / "aida" / name, inputs.work / "aida" / "home" / name
        arguments = {"folder": inputs.data / "aida", "out": sources[name], "without": without}
        lines[name] = sum(run(call(name, "benchmarks.aida:write", arguments)).result.values())
    jobs = [
        call(
            name,
            "benchmarks.aida:build",
            {"source": sources[name], "name": name, "out": homes[name]},
            writes=(homes[name],),
        )
        for name in VARIANTS
    ]
    samples = in_turn(jobs, inputs.repeat)
    build_rows, mention_rows, text_rows = [], [], []
    for name, (_, label) in VARIANTS.items():
        cpu = median(samples[name], lambda sample: sample.cpu)
        wall = median(samples[name], lambda sample: sample.wall)
        peak = median(samples[name], lambda sample: sample.peak / 1e6)
        rate = f"{lines[name] / cpu:,.0f}"
        counts = samples[name][0].result
        build_rows.append(
            [label, f"{counts['surfaces']:,}", f"{counts['pairs']:,}", f"{lines[name]:,}",
             f"{cpu:.2f}", f"{wall:.2f}", f"{peak:.0f}", rate]
        )  # fmt: skip
        job = call(
            name,
            "benchmarks.aida:measure",
            {"home": homes[name], "name": name, "folder": inputs.data / "aida"},
        )
        results = run(job).result
        for split in SPLITS:
            of = results[split]
            mention_rows.append(
                [label, split, f"{of['gold']:,}", *(_share(of[what], of["gold"]) for what in OF_MENTIONS)]
            )
            row = [label, split, f"{EBERT_SPANS[split]:,}"]
            for kind in KINDS:
                row += [f"{of[f'{kind} spans']:,}"]
                row += [_share(of[f"{kind} {what}"], of["gold"]) for what in OF_SPANS[1:]]
            text_rows.append(row)
    return [
        Table(
            title="(e) Build of AIDA's Wikipedia slice",
            notes=BUILD_NOTES,
            columns=("", "surfaces", "surface and entity", "lines", "CPU s", "wall s", "peak MB", "lines/s"),
            rows=build_rows,
        ),
        Table(
            title="(e) AIDA, given spans: candidates",
            notes=MENTIONS_NOTES,
            columns=("", "split", "mentions", f"found, k = {K}", "found, all", "prior"),
            rows=mention_rows,
        ),
        Table(
            title="(e) AIDA, raw text: spans",
            notes=TEXT_NOTES,
            columns=("", "split", "E-BERT", *(f"{kind}: {what}" for kind in KINDS for what in OF_SPANS)),
            rows=text_rows,
        ),
    ]


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.2f} %"


# -- what runs in a process of its own ----------------------------------------------


def write(folder: str, out: str, without: list[str]) -> dict[str, int]:
    """Write the files of a variant; return how many lines each has."""
    return aida_kb.write(Path(folder), Path(out), without)


def build(source: str, name: str, out: str) -> dict[str, int]:
    """Build a variant into the home *out*."""
    import kgkit

    manifest = kgkit.build_kb("jsonl", source=source, name=name, home=out).manifest
    return {"surfaces": manifest.aliases, "pairs": manifest.alias_rows}


def measure(home: str, name: str, folder: str, splits: Sequence[str] = SPLITS) -> dict[str, dict[str, int]]:
    """Count, by split, what the KB's candidates hold of the gold mentions."""
    import kgkit

    with kgkit.open_kb(name, home) as kb:
        page = _Pages(kb, Path(folder))
        return {split: _of_split(kb, page, Path(folder), split) for split in splits}


class _Pages:
    """Tells whether titles and candidates are of one page."""

    def __init__(self, kb: "KnowledgeBase", folder: Path) -> None:
        self.moved = aida_kb.redirects(folder)
        self.of_id = [self(entity.key) for entity in kb]

    def __call__(self, title: str) -> str:
        return self.moved.get(title, title)

    def among(self, candidates: "Candidates | None") -> list[str]:
        return [] if candidates is None else [self.of_id[id_] for id_ in candidates.ids.tolist()]


def _of_split(kb: "KnowledgeBase", page: _Pages, folder: Path, split: str) -> Counter[str]:
    from kgkit.candidates import AliasConfig, AliasGenerator, longest

    anything = AliasGenerator(kb, AliasConfig(max_candidates=None))
    generator = AliasGenerator(kb, AliasConfig(max_candidates=K, matches="all"))
    counts: Counter[str] = Counter()
    for line in aida_kb.records(folder, f"aida_{split}"):
        document, gold = _document(line)
        counts["gold"] += len(gold)
        [annotated] = anything([document])
        for mention in annotated.mentions or ():
            title = page(gold[mention.start, mention.end])
            titles = page.among(mention.candidates)
            counts["found"] += title in titles[:K]
            counts["found of all"] += title in titles
            counts["prior"] += title in titles[:1]
        every = generator.mentions(document.text)
        for kind, spans in (("all", every), ("longest", longest(every))):
            counts[f"{kind} spans"] += len(spans)
            for span in spans:
                if (span.start, span.end) in gold:
                    title = page(gold[span.start, span.end])
                    counts[f"{kind} mentions"] += 1
                    counts[f"{kind} with gold"] += title in page.among(span.candidates)
    return counts


def _document(line: dict[str, Any]) -> tuple["Document", dict[tuple[int, int], str]]:
    """Return a document with the mentions that have an entity, and span -> that entity."""
    from kgkit.types import Document, Mention

    text = " ".join(line["tokens"])
    starts, at = [], 0
    for token in line["tokens"]:
        starts.append(at)
        at += len(token) + 1
    mentions, gold = [], {}
    for mention in line["mentions"]:
        if mention["entity"]:
            last = mention["end"] - 1
            start, end = starts[mention["start"]], starts[last] + len(line["tokens"][last])
            mentions.append(Mention(start, end, text[start:end]))
            gold[start, end] = mention["entity"]
    return Document(str(line["doc_id"]), text, mentions=mentions), gold
