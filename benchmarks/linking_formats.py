"""A data set of entity linking in every format, linked and scored from each: the scores have to be equal.

    python -m benchmarks.linking_formats --home HOME --kb aida --model prior [--mentions given] [--out DIR]

It reads `aida_testa` of the shared data and writes it as NIF, as KILT and as spaCy's DocBin (which has to be
installed, as pyoxigraph has). KILT has no NIL: a mention without an output stands for it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from benchmarks.entities import DATA
from benchmarks.report import Table
from kgkit.evaluation.el_files import GoldDocument, read_gold_documents
from kgkit.evaluation.el_formats import KILT_MARKS
from kgkit.evaluation.nif import write_nif
from kgkit.files import written

NOTES: Final = """
The same documents read from each format; F1 of strong matching, InKB, micro and macro, all digits. Weak, with
NIL: that of the measure furthest from it.
"""


def write_kilt(path: Path, documents: Iterable[GoldDocument]) -> None:
    """Write documents as KILT does, a mention a line; documents without mentions are not in it."""
    begin, finish = KILT_MARKS
    with written(path) as stream:
        for gold in documents:
            text = gold.document.text
            for number, label in enumerate(gold.gold):
                marked = f"{begin}{text[label.start : label.end]}{finish}"
                output = [] if label.entity is None else [
                    {"answer": label.entity, "provenance": [{"title": label.entity}]}
                ]  # fmt: skip
                line = {
                    "id": f"{gold.document.id}:{number}",
                    "input": text[: label.start] + marked + text[label.end :],
                    "output": output,
                }
                stream.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


def write_doc_bin(path: Path, documents: Iterable[GoldDocument]) -> None:
    """Write documents with tokens as a `DocBin`, whose entities are the mentions."""
    from spacy.tokens import Doc, DocBin, Span
    from spacy.vocab import Vocab

    vocab, doc_bin = Vocab(), DocBin()
    for gold in documents:
        text, end, words, spaces = gold.document.text, 0, list[str](), list[bool]()
        for start, stop in gold.document.tokens or ():
            gap = text[end:start]
            if gap == " ":
                spaces[-1] = True
            elif gap:  # a line break, which is a token of spaCy
                words.append(gap)
                spaces.append(False)
            words.append(text[start:stop])
            spaces.append(False)
            end = stop
        doc = Doc(vocab, words=words, spaces=spaces)
        doc.ents = [
            Span(doc, span.start, span.end, label=type_name or "NAME", kb_id=label.entity or "NIL")
            for label, type_name in zip(gold.gold, gold.types or [""] * len(gold.entities), strict=True)
            if (span := doc.char_span(label.start, label.end)) is not None
        ]
        doc_bin.add(doc)
    with written(path) as stream:
        stream.write(doc_bin.to_bytes())


def evaluate(data: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the scores of a data set by `kgkit evaluate el`."""
    line = [
        sys.executable,
        "-m",
        "kgkit.commands",
        "evaluate",
        "el",
        "--data",
        str(data),
        "--json",
        "--quiet",
    ]
    line += ["--kb", chosen.kb, "--model", chosen.model, "--home", str(chosen.home)]
    line += ["--mentions", chosen.mentions, "--redirects", str(DATA / "redirects.json.xz")]
    completed = subprocess.run(line, capture_output=True, check=True)
    scores: dict[str, Any] = json.loads(completed.stdout)["sets"][0]
    return scores


def row(scores: dict[str, Any]) -> list[str]:
    """Return the row of a format."""
    strong, weak = scores["measures"]["strong"]["inkb"], scores["measures"]["weak"]["nil"]
    cells = [repr(measure) for measure in (strong["f1"], strong["macro_f1"], weak["f1"])]
    return [
        scores["format"],
        f"{scores['documents']:,}",
        f"{scores['mentions']:,}",
        f"{scores['nil']:,}",
        *cells,
    ]


def main() -> None:
    """Write the formats and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linking_formats")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--kb", default="aida")
    parser.add_argument("--model", default="prior")
    parser.add_argument("--mentions", default="given")
    parser.add_argument("--data", type=Path, default=DATA / "aida_testa.jsonl.xz")
    parser.add_argument("--out", type=Path, help="keep the files in this folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        out = chosen.out or Path(temporary)
        files = [chosen.data, out / "data.ttl", out / "data.kilt.jsonl", out / "data.spacy"]
        for path, write in zip(files[1:], (write_nif, write_kilt, write_doc_bin), strict=True):
            write(path, read_gold_documents(chosen.data))
        rows = [row(evaluate(path, chosen)) for path in files]
    columns = ("format", "documents", "mentions", "NIL", "F1", "macro F1", "weak F1, with NIL")
    title = f"{chosen.data.name}, {chosen.model} over {chosen.kb}, mentions {chosen.mentions}"
    print(Table(title=title, notes=NOTES, columns=columns, rows=rows).markdown())


if __name__ == "__main__":
    main()
