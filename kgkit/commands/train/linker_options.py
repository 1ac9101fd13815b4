"""Options of `kgkit train linker`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kgkit.commands.options import flag, repeated

LinkerTaskOption = Annotated[
    Literal["wsd", "el"] | None,
    typer.Option(
        "--task",
        metavar="TASK",
        help="What the data are: wsd (senses) or el (entities). Needed without --preset, but for plain text "
        "alone.",
    ),
]
PresetOption = Annotated[
    Literal["news"] | None,
    typer.Option(
        "--preset",
        metavar="PRESET",
        help="news: a tagger, coherence and a threshold from one file of entities; no vectors needed.",
    ),
]
LinkerTypeOption = Annotated[
    Literal["ridge", "head", "prior", "gloss", "tempered-gloss"],
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Model type: ridge, in seconds, or head, in minutes; the others: with --coherence.",
    ),
]
LinkerTaggerOption = Annotated[
    str,
    typer.Option(
        "--mentions",
        metavar="NAME",
        help="el: tagger whose names the linker links by default; the threshold is chosen with it, on "
        "one document in ten.",
    ),
]
LinkerEncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="ENCODER",
        help="Encoder of texts and mentions: folder, package or hub id.",
        show_default=False,
    ),
]
SecondStageOption = Annotated[
    bool, flag("--coherence", help="Train a second stage too: names, words and links of a document.")
]
PopularityOption = Annotated[
    list[str] | None,
    repeated(
        "--popularity", "ATTRIBUTE", "Coherence: a number of entities that tells how well known they are"
    ),
]
LinkerDataOption = Annotated[
    list[Path] | None,
    repeated("--data", "FILE", "wsd: X.data.xml; el: any format of evaluate el. May be compressed"),
]
SenseGoldOption = Annotated[
    list[Path] | None,
    typer.Option("--gold", metavar="FILE", help="wsd: X.gold.key.txt; as often as --data, in its order."),
]
CandidatesOption = Annotated[
    Literal["surface", "lemma"],
    typer.Option(
        "--candidates",
        metavar="BY",
        help="wsd: of the word as it is written (surface), or of the lemma of the data (lemma).",
    ),
]
NilOption = Annotated[
    bool,
    flag("--nil", help="Coherence: learn from mentions without a right candidate that they mean nothing."),
]
PortableOption = Annotated[
    Literal["kb", "data"] | None,
    typer.Option(
        "--portable",
        metavar="PRIOR",
        help="head: nothing of single entities; the prior is the kb's own, or counted on the data.",
    ),
]
TextWeightOption = Annotated[
    float | None,
    typer.Option(
        "--text-weight",
        metavar="WEIGHT",
        help="head --portable: how much the cosine of a mention with the text of an entity counts beside the "
        "head's score; by default 0.6 for senses, else 0.",
    ),
]
YieldingOption = Annotated[
    bool, flag("--yielding", help="ridge, head: a prior that yields where the context speaks.")
]
VectorControlOption = Annotated[
    bool,
    flag("--control", help="head: train without the vectors of entities."),
]
LinkerEpochsOption = Annotated[
    int | None,
    typer.Option("--epochs", metavar="N", help="head: number of times that all data are read."),
]
NeighboursOption = Annotated[
    list[str] | None,
    repeated(
        "--neighbours",
        "RELATION",
        "ridge, head: read the texts of neighbours too, by a relation, or any",
    ),
]
BalanceOption = Annotated[
    float,
    typer.Option(
        "--balance",
        metavar="SHARE",
        help="ridge, head: how far a rare meaning counts as much as a frequent one, from 0 to 1.",
    ),
]
LearntPriorOption = Annotated[
    Literal["kb", "data"],
    typer.Option(
        "--prior",
        metavar="PRIOR",
        help="ridge, head: weights are learnt with the prior of the kb, or one counted on the data.",
    ),
]
HeadsOption = Annotated[
    int,
    typer.Option(
        "--heads",
        min=1,
        metavar="N",
        help="head: number of heads, each with a seed of its own; their scores are averaged.",
    ),
]
LinkerBf16Option = Annotated[
    bool | None,
    typer.Option(
        "--bf16/--no-bf16",
        help="head: multiply in bfloat16, or in float32, which is usual.",
        show_default=False,
    ),
]
TeacherOption = Annotated[
    str,
    typer.Option(
        "--teacher",
        metavar="MODEL",
        help="Linker that says what mentions in plain text mean: a portable head learns its scores. The text "
        "is --data, or --text beside data with gold.",
    ),
]
TeacherTextOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--text",
        metavar="FILE",
        help="head: plain text that --teacher reads, beside --data with gold; repeat it for more.",
    ),
]
