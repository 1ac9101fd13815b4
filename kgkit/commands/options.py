"""What several commands share: options, and functions that find a KB and an entity."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kgkit.commands.completion import complete_kb, complete_model
from kgkit.commands.messages import Messages
from kgkit.errors import NotThere, UsageError

if TYPE_CHECKING:
    from kgkit.home import Home
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Entity


def flag(*names: str, help: str) -> Any:
    """Return an option that is there or not, whose help names no value; *names* as `--json`."""
    return typer.Option(*names, metavar="", help=help)


def repeated(name: str, metavar: str, help: str, *others: str) -> Any:
    """Return an option that may be given several times, which its help says; *others* are names as `-r`."""
    help = f"{help}; repeat it for more."
    return typer.Option(name, *others, metavar=metavar, help=help)


def limit_option(help: str) -> Any:
    """Return the option `--limit`, a number of things of which 0 stands for all."""
    return typer.Option("--limit", "-n", min=0, metavar="N", help=help)


_DEFAULT_KB: Final = "NAME or NAME@BUILD; by default $KGKIT_KB, what `kgkit kb default` set, or the only one"
_USED_LAST: Final = ", of several the one used last"

KBOption = Annotated[
    str | None, typer.Option("--kb", metavar="KB", autocompletion=complete_kb, help=f"{_DEFAULT_KB}.")
]
RecentKBOption = Annotated[
    str | None,
    typer.Option("--kb", metavar="KB", autocompletion=complete_kb, help=f"{_DEFAULT_KB}{_USED_LAST}."),
]
"""The option of commands that open what `open_chosen_kb` returns."""
KBArgument = Annotated[
    str | None, typer.Argument(metavar="KB", autocompletion=complete_kb, help=f"{_DEFAULT_KB}.")
]
RecentKBArgument = Annotated[
    str | None, typer.Argument(metavar="KB", autocompletion=complete_kb, help=f"{_DEFAULT_KB}{_USED_LAST}.")
]
JSONOption = Annotated[bool, flag("--json", help="Write JSON.")]
DataOption = Annotated[
    list[Path],
    repeated("--data", "FILE", "wsd: X.data.xml; el: any --format; ner: as CoNLL-2003. May be compressed"),
]
PlainTextsOption = Annotated[
    list[Path],
    repeated("--data", "FILE", "Plain text, a blank line between documents. May be compressed"),
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
TaggerOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        autocompletion=complete_model,
        help="Name of a tagger (`kgkit models list` names them), or its folder.",
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
InputFormatOption = Annotated[
    Literal["auto", "text", "lines", "jsonl", "csv", "parquet"],
    typer.Option(
        "--input-format",
        help="What a document is: a file (text), a line (lines), a record of JSON lines (jsonl), a row (csv, "
        "parquet); auto goes by the suffix.",
    ),
]
JSONLinesOption = Annotated[
    bool, flag("--jsonl", "--json", help="Write JSON lines, as is done in a pipe, on a terminal too.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to FILE; it appears whole or not at all."),
]
QueryOption = Annotated[
    Literal["longest", "jieba"],
    typer.Option("--query", metavar="BY", help="Which words are looked up: longest surfaces, or jieba's."),
]
BatchOption = Annotated[int, typer.Option("--batch", min=1, metavar="N", help="Texts in a batch.")]
EntityKindOption = Annotated[
    str | None, typer.Option("--kind", metavar="KIND", help="Only entities of this kind: synset.")
]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", help="Device that the model computes on: auto, cpu, cuda, cuda:1, …"
    ),
]


def chosen_kb(name: str | None, *, recent: bool = False) -> str:
    """Return the KB the user named, or the default, or the only one there is.

    Of several, which one was taken is written to standard error.

    Args:
        name: name that the user gave.
        recent: whether of several without a default the one used last is taken, and this one remembered.

    Raises:
        NotThere: if none has been built.
        UsageError: if there are several, none was named, and none is the default.
    """
    from kgkit.home import Home

    where = Home.find()
    if name is None:
        name, reason = where.default_kb(recent=recent)
        if reason and len(where.kbs()) > 1:
            hint = "; --kb NAME, or `kgkit kb default NAME`, takes another one"
            Messages().write(f"knowledge base: {name} ({reason}){hint}")
    if recent:
        _remember_kb(where, name)
    return name


def _remember_kb(home: "Home", name: str) -> None:
    """Keep the name of the KB that is used, so far as the disk lets us."""
    from kgkit.files import written
    from kgkit.home import is_name

    kb_name, path = name.partition("@")[0], home.recent_file
    with suppress(OSError):
        if not is_name(kb_name) or home.kb(kb_name).published() is None:
            return
        if path.exists() and path.read_text(encoding="utf-8") == kb_name:
            return
        path.parent.mkdir(exist_ok=True)
        with written(path) as stream:
            stream.write(kb_name.encode())


def open_chosen_kb(name: str | None, *, verify: bool = False) -> "KnowledgeBase":
    """Open the KB that `chosen_kb` returns, of several the one used last; *verify* as in `open_kb`."""
    from kgkit.kb import open_kb

    return open_kb(chosen_kb(name, recent=True), verify=verify)


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
    from kgkit.kb.search import key_hint, suggest_keys

    suggestions = suggest_keys(kb, key)
    if kb.store.is_retired(key):
        hint = key_hint(kb, key)
    elif not suggestions:
        hint = f"`kgkit candidates TEXT --kb {kb.name}` lists what a word can mean"
    else:
        listed = ", ".join(suggestions)
        hint = f"did you mean {listed}?"
    raise NotThere(f"no entity {key!r} in knowledge base {kb.name!r}; {hint}")


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
