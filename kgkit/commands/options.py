"""What several commands share: options, and functions that find a KB and an entity."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kgkit.errors import NotThere, UsageError

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Candidates, Entity


def flag(*names: str, help: str) -> Any:
    """Return an option that is there or not, whose help names no value; *names* as `--json`."""
    return typer.Option(*names, metavar="", help=help)


def limit_option(help: str) -> Any:
    """Return the option `--limit`, a number of things of which 0 stands for all."""
    return typer.Option("--limit", "-n", min=0, metavar="N", help=help)


HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home", metavar="DIR", help="Folder of the data; by default KGKIT_HOME, else the platform's folder."
    ),
]
KBOption = Annotated[
    str | None,
    typer.Option("--kb", metavar="KB", help="NAME or NAME@BUILD; not needed when there is one KB only."),
]
KBArgument = Annotated[
    str | None,
    typer.Argument(metavar="KB", help="NAME or NAME@BUILD; not needed when there is one KB only."),
]
JSONOption = Annotated[bool, flag("--json", help="Write JSON.")]
DataOption = Annotated[
    list[Path],
    typer.Option(
        "--data",
        metavar="FILE",
        help="wsd: X.data.xml; el: JSON lines; ner: as CoNLL-2003. May be compressed; repeat it for more.",
    ),
]
PlainTextsOption = Annotated[
    list[Path],
    typer.Option(
        "--data",
        metavar="FILE",
        help="Plain text, a blank line between documents. May be compressed; repeat it for more.",
    ),
]
PredictionsOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="Write predictions. wsd: as gold files; el: document, start, end, entity; ner: for conlleval.",
    ),
]
NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Name of the model; --model NAME then uses it.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Random seed.")]
TaughtExamplesOption = Annotated[
    bool, flag("--examples", help="wsd: learn from the knowledge base's usage examples too.")
]
WithoutOption = Annotated[
    Path | None,
    typer.Option(
        "--without",
        metavar="FILE",
        help="Examples that must not be learnt from, one a line; only letters are compared.",
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="What scores the candidates: prior, gloss, or a trained linker; `kgkit models list` names them.",
    ),
]
TaggerOption = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME", help="Name of a tagger (`kgkit models list` names them), or its folder."
    ),
]
TypePriorOption = Annotated[
    float | None,
    typer.Option(
        "--type-prior",
        min=0,
        max=1,
        metavar="SHARE",
        help="For a KALM: share of the knowledge base in the type of a word, 0.6 by default; the context has "
        "the rest.",
    ),
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        "--vectors",
        metavar="NAME",
        help="Vectors of the entities, for a model that uses some; by default text.",
    ),
]
CoherenceOption = Annotated[
    Literal["graph"] | None,
    typer.Option(
        "--coherence",
        metavar="KIND",
        help="Rescore the links of a document for coherence: graph, by neighbours in the KB.",
    ),
]
InputFormatOption = Annotated[
    Literal["auto", "text", "lines", "jsonl"],
    typer.Option(
        "--input-format",
        help="What a document is: a file (text), a line (lines), a record of JSON lines (jsonl); "
        "auto goes by the suffix.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to FILE; it appears whole or not at all."),
]
QueryOption = Annotated[
    Literal["longest", "jieba", "link"],
    typer.Option(
        "--query", metavar="BY", help="Which words are looked up: longest surfaces, jieba's, or link."
    ),
]
OverlapsOption = Annotated[
    Literal["longest", "keep", "score"],
    typer.Option(
        "--overlaps",
        help="Of overlapping mentions, score the longest only (longest); or score all, and keep all links "
        "(keep), or the link with the highest score (score).",
    ),
]
ThresholdOption = Annotated[
    float,
    typer.Option(
        "--threshold",
        min=0,
        max=1,
        metavar="SCORE",
        help="Links below this score mean nothing in the KB: they are NIL.",
    ),
]
MaxCandidatesOption = Annotated[
    int,
    typer.Option(
        "--max-candidates", min=0, metavar="N", help="Candidates of a mention, the likeliest; 0: all."
    ),
]
QuietOption = Annotated[
    bool, flag("--quiet", "-q", help="No messages and no progress, only results and errors.")
]
AllSurfacesOption = Annotated[
    bool,
    flag(
        "--all-surfaces",
        help="Take function words too, surfaces that are hardly ever links, and words in lower case that the "
        "KB writes with capitals only.",
    ),
]
BatchOption = Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Texts in a batch.")]
EntityKindOption = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", help="Only entities of this kind: synset.")
]
DeviceOption = Annotated[str, typer.Option("--device", metavar="DEVICE", help="auto, cpu, cuda, cuda:1, …")]

_PIECES = re.compile(r"[.%#:(/]")
_SUGGESTED = 5
_MANY_SURFACES = 1_000_000


def chosen_kb(name: str | None, home: Path | None) -> str:
    """Return the KB the user named, or the only one there is.

    Raises:
        NotThere: if none has been built.
        UsageError: if there are several and none was named.
    """
    from kgkit.home import Home

    return name if name is not None else Home.find(home).only_kb()


def open_chosen_kb(name: str | None, home: Path | None, *, verify: bool = False) -> "KnowledgeBase":
    """Open the KB the user named, or the only one there is; *verify* as in `open_kb`."""
    from kgkit.kb import open_kb

    return open_kb(chosen_kb(name, home), home, verify=verify)


def check_text(text: str, what: str) -> str:
    """Return *text*, which came from the command line.

    Raises:
        UsageError: if its bytes were not in the encoding of the locale.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} is not valid UTF-8: {text!r}") from None
    return text


def find_entity(kb: "KnowledgeBase", key: str) -> "Entity":
    """Return the entity of *key*.

    Raises:
        NotThere: if the KB does not have it; names those that the user may have meant.
    """
    entity = kb.get(check_text(key, "the name of an entity"))
    if entity is not None:
        return entity
    suggestions = dict.fromkeys(candidate.entity.key for candidate in kb.decode(_suggest_candidates(kb, key)))
    if not suggestions:
        hint = f"`kgkit candidates TEXT --kb {kb.name}` lists what a word can mean"
    else:
        listed = ", ".join(suggestions)
        hint = f"did you mean {listed}?"
    raise NotThere(f"no entity {key!r} in knowledge base {kb.name!r}; {hint}")


def _suggest_candidates(kb: "KnowledgeBase", key: str) -> "Candidates":
    """Return what a name that is no key could stand for: as a word, as the word in a key, as one misspelt."""
    word = _PIECES.split(key.replace("_", " "))[0] or key
    for text in (key, word):
        candidates = kb.candidates(text, k=_SUGGESTED)
        if len(candidates):
            return candidates
    return kb.candidates(word, k=_SUGGESTED, fuzzy=kb.manifest.aliases < _MANY_SURFACES)


def check_pos(kb: "KnowledgeBase", pos: str | None) -> str | None:
    """Return *pos*.

    Raises:
        UsageError: if *kb* does not distinguish this part of speech.
    """
    from kgkit.kb import POS

    classes = kb.store.classes
    if pos is None or pos in classes or any(name in classes for name in POS.get(pos, ())):
        return pos
    names = [
        *classes,
        *(name for name, stored in POS.items() if name not in classes and set(stored) & set(classes)),
    ]
    if not names:
        raise UsageError(f"knowledge base {kb.name!r} has no parts of speech")
    raise UsageError(
        f"no part of speech {pos!r} in knowledge base {kb.name!r}; there are: {', '.join(names)}"
    )
