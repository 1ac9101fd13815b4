"""What several verbs have in common: their options, and how they find a KB and an entity."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kgkit.errors import NotThere, UsageError

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Candidates, Entity

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home", metavar="DIR", help="Where knowledge bases lie; else KGKIT_HOME, else the platform's place."
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
JSONOption = Annotated[bool, typer.Option("--json", metavar="", help="Write JSON.")]
DataOption = Annotated[
    list[Path],
    typer.Option(
        "--data",
        metavar="FILE",
        help="wsd: X.data.xml; el: JSON lines; ner: as CoNLL-2003. May be compressed; repeat it for more.",
    ),
]
PredictionsOption = Annotated[
    Path | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="Write the answers. wsd: as gold files; el: document, start, end, entity; ner: for conlleval.",
    ),
]
NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Of the model; --model NAME then uses it.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of weights, order and dropout.")]
TaughtExamplesOption = Annotated[
    bool,
    typer.Option("--examples", metavar="", help="wsd: learn from the knowledge base's usage examples too."),
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
        "--model", metavar="NAME", help="Of a tagger (`kgkit models list` names them); or its folder."
    ),
]
VectorsOption = Annotated[
    str | None,
    typer.Option(
        "--vectors", metavar="NAME", help="Of the entities, for a model that takes some; else text."
    ),
]
CoherenceOption = Annotated[
    Literal["graph"] | None,
    typer.Option(
        "--coherence",
        metavar="KIND",
        help="Then let the links of a document agree: graph, by neighbours.",
    ),
]
OverlapsOption = Annotated[
    Literal["longest", "keep", "score"],
    typer.Option(
        "--overlaps",
        help="Of mentions that overlap, score the longest alone (longest); or score all, and keep all links "
        "(keep), or the one with the highest score (score).",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", metavar="", help="No messages and no progress, only results and errors."),
]
AllSurfacesOption = Annotated[
    bool,
    typer.Option(
        "--all-surfaces",
        metavar="",
        help="Take function words too, surfaces that are hardly ever links, and words in lower case that the "
        "KB writes with capitals only.",
    ),
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


def opened(name: str | None, home: Path | None, *, verify: bool = False) -> "KnowledgeBase":
    """Open the KB the user named, or the only one there is; *verify* as in `open_kb`."""
    from kgkit.kb import open_kb

    return open_kb(chosen_kb(name, home), home, verify=verify)


def checked_text(text: str, what: str) -> str:
    """Return *text*, which came from the command line.

    Raises:
        UsageError: if its bytes were not in the encoding of the locale.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} is not valid UTF-8: {text!r}") from None
    return text


def found_entity(kb: "KnowledgeBase", key: str) -> "Entity":
    """Return the entity of *key*.

    Raises:
        NotThere: if the KB does not have it; names those that the user may have meant.
    """
    found = kb.get(checked_text(key, "the name of an entity"))
    if found is not None:
        return found
    meant = dict.fromkeys(candidate.entity.key for candidate in kb.decode(_meant(kb, key)))
    if not meant:
        hint = f"`kgkit candidates TEXT --kb {kb.name}` lists what a word can mean"
    else:
        more = ", ".join(meant)
        hint = f"did you mean {more}?"
    raise NotThere(f"no entity {key!r} in knowledge base {kb.name!r}; {hint}")


def _meant(kb: "KnowledgeBase", key: str) -> "Candidates":
    """Return what a name that is no key could stand for: as a word, as the word in a key, as one misspelt."""
    word = _PIECES.split(key.replace("_", " "))[0] or key
    for text in (key, word):
        found = kb.candidates(text, k=_SUGGESTED)
        if len(found):
            return found
    return kb.candidates(word, k=_SUGGESTED, fuzzy=kb.manifest.aliases < _MANY_SURFACES)


def checked_pos(kb: "KnowledgeBase", pos: str | None) -> str | None:
    """Return *pos*.

    Raises:
        UsageError: if *kb* does not tell this part of speech apart.
    """
    from kgkit.kb import POS

    known = kb.store.classes
    if pos is None or pos in known or any(name in known for name in POS.get(pos, ())):
        return pos
    names = [
        *known,
        *(name for name, stored in POS.items() if name not in known and set(stored) & set(known)),
    ]
    if not names:
        raise UsageError(f"knowledge base {kb.name!r} has no parts of speech")
    raise UsageError(
        f"no part of speech {pos!r} in knowledge base {kb.name!r}; there are: {', '.join(names)}"
    )
