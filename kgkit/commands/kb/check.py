"""`kgkit kb check`: names of a knowledge base that are easily linked wrongly."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from heapq import nsmallest
from itertools import groupby, tee
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from kgkit.commands.messages import Messages, ProgressCallback
from kgkit.commands.options import RecentKBArgument, flag, limit_option, open_chosen_kb, repeated
from kgkit.commands.output import Column, counted, number, plain, write_bytes, write_table
from kgkit.commands.text_streams import BadOption

if TYPE_CHECKING:
    from kgkit.candidates.doubtful_names import DoubtfulName, NameInTexts
    from kgkit.kb import KnowledgeBase
    from kgkit.types import Document

_DESCRIBED: Final = {
    "number": "number", "sign": "sign", "short": "short name", "word": "word",
    "shared": "shared name",
}  # fmt: skip
_ORDER: Final = tuple(_DESCRIBED)

_TEXTS: Final = "--texts FOLDER lists those that texts mostly write in lower case"
_LOWER: Final = "only those are listed that the texts mostly write in lower case"
_MEANINGS: Final = 3  # entities that a table names
_AROUND: Final = 30  # characters on each side of an example
_EXAMPLES: Final = 3  # names that a sentence names


def check(
    name: RecentKBArgument = None,
    texts: Annotated[
        list[Path] | None,
        repeated("--texts", "FOLDER", "Texts, or a folder of them: only names that stand there, and how"),
    ] = None,
    limit: Annotated[int, limit_option("Names of each sort; 0 for all.")] = 20,
    bad: BadOption = "stop",
    as_jsonl: Annotated[bool, flag("--jsonl", help="Write a JSON object for each name.")] = False,
) -> None:
    """List names that are easily linked wrongly: numbers, short names, words, names of several entities.

    With --texts, how often they stand there and in lower case, and what they are linked to, as by kgkit link.
    """
    import msgspec

    from kgkit.candidates.doubtful_names import doubtful_names
    from kgkit.linking.auto import describe_choice, named_model

    messages = Messages()
    with open_chosen_kb(name) as kb:
        found: dict[str, NameInTexts] | None = None
        if texts:
            with messages.progress("linking") as tell:
                found, model = _names_in_texts(kb, _documents(texts, messages, tell, skip_bad=bad == "skip"))
            if named_model() is None:
                messages.write(f"model: {model}, {describe_choice(kb, model)}; $KGKIT_MODEL takes another")
        every = [*doubtful_names(kb, found)]
        names = every if found is None else [each for each in every if each.folded in found]
        names.sort(key=lambda each: (_ORDER.index(each.sort), *_harm(each, found), each.rank))
        if as_jsonl:
            for each in names:
                write_bytes(msgspec.json.encode(_as_dict(kb, each, found)) + b"\n")
            return
        of_sort = [[*group] for _, group in groupby(names, key=attrgetter("sort"))]
        shown = [each for group in of_sort for each in group[: limit or None]]
        if shown:
            write_table(*(_table(kb, shown) if found is None else _table_of_texts(shown, found)))
        rest = (each for group in of_sort for each in group[limit or len(group) :])
        if more := described(rest, word="word"):
            messages.write(f"and {more}; --limit 0 lists all")
        if len(every) > len(names):
            messages.write(f"{len(every) - len(names):,} more doubtful names do not stand in the texts")
        if not names:
            messages.write(f"no doubtful names in {kb.name}")
        if unknown := unknown_words(kb):
            messages.write(f"{unknown}; {_LOWER if texts else _TEXTS}")


def described(names: "Iterable[DoubtfulName]", *, word: str = "English word") -> str:
    """Return in words how many doubtful names there are of each sort, with some of them; empty if none.

    Args:
        names: the names.
        word: noun for those of the sort `word`.
    """
    counts, worst = Counter[str](), defaultdict[str, "list[DoubtfulName]"](list)
    bounds: dict[str, tuple[int, bool, int, str]] = {}
    for name in names:
        sort, rank = name.sort, name.rank
        counts[sort] += 1
        if counts[sort] <= _EXAMPLES or rank < bounds[sort]:
            worst[sort] = nsmallest(_EXAMPLES, [*worst[sort], name], key=attrgetter("rank"))
            bounds[sort] = worst[sort][-1].rank
    parts = []
    for each, noun in (_DESCRIBED | {"word": word}).items():
        if each in counts:
            listed = ", ".join(plain(name.name) for name in worst[each])
            more = ", …" if counts[each] > _EXAMPLES else ""
            parts.append(f"{counted(counts[each], noun)} ({listed}{more})")
    return ", ".join(parts)


def unknown_words(kb: "KnowledgeBase") -> str:
    """Return in words of which languages no words are known; empty if the KB is English, or a lexicon."""
    from kgkit.candidates.doubtful_names import is_lexicon
    from kgkit.candidates.spelling import ordinary_words

    language = kb.manifest.language
    if is_lexicon(kb) or (language and ordinary_words(language)):
        return ""
    named = f"the language {language!r}" if language else "other languages than English"
    return f"words of {named} are not recognised"


def _documents(
    texts: Sequence[Path], messages: Messages, tell: ProgressCallback, *, skip_bad: bool
) -> "Iterator[Document]":
    from kgkit.commands.corpora.chunks import SkippedRecord, parse_entries
    from kgkit.commands.corpora.documents import find_files, read_entries

    entries = read_entries(find_files(texts), "auto")
    skipped: list[SkippedRecord] = []
    for count, parsed in enumerate(parse_entries(entries, (), skipped, skip_bad=skip_bad)):
        tell(counted(count, "document"), count)
        yield parsed.document
    for record in skipped:
        messages.write(f"skipped: {record}")


def _names_in_texts(
    kb: "KnowledgeBase", documents: "Iterable[Document]"
) -> "tuple[dict[str, NameInTexts], str]":
    """Return the names of a KB that stand in texts, by their keys, with their links; and the model's name."""
    from kgkit.candidates import generator_for
    from kgkit.candidates.doubtful_names import NameInTexts
    from kgkit.linking import Linker
    from kgkit.types import Document

    found = defaultdict[str, NameInTexts](NameInTexts)
    key_of = cache(partial(_key, kb))
    every = generator_for(kb, max_candidates=1, overlaps=True, all_surfaces=True)
    linker = Linker.open(kb)
    texts, again = tee(Document(document.id, document.text) for document in documents)
    for document, linked in zip(every(texts), linker(again), strict=True):
        text = document.text
        for mention in document.mentions or []:
            there = found[key_of(mention.text)]
            there.occurrences += 1
            there.lower += mention.text.islower()
            if there.occurrences == 1:
                there.example = _around(text, mention.start, mention.end)
        for link in linked.links:
            there = found[key_of(link.text)]
            there.linked += 1
            if link.entity is not None and (not there.entity or link.score < there.score):
                there.entity, there.score = link.entity, link.score
                there.example = _around(text, link.start, link.end)
    return found, linker.model


def _key(kb: "KnowledgeBase", text: str) -> str:
    """Return the key of the name that a text is, in another spelling perhaps, or as a plural or genitive."""
    from kgkit.candidates.inflection import base_names
    from kgkit.candidates.matching import base_row, other_spellings

    language, fold = kb.manifest.language, kb.store.folding.fold
    for spelled in (text, *other_spellings(text, language)):
        if kb.store.alias_row(fold(spelled)) is not None:
            return fold(spelled)
    base = base_row(kb, text, base_names(text, language))
    return fold(text if base is None else base[0])


def _around(text: str, start: int, end: int) -> tuple[str, str, str]:
    return text[max(0, start - _AROUND) : start], text[start:end], text[end : end + _AROUND]


def _harm(name: "DoubtfulName", found: "Mapping[str, NameInTexts] | None") -> tuple[int, int]:
    """Return the sort key: names linked most often in texts come first, then those that stand there."""
    if found is None:
        return 0, 0
    return -found[name.folded].linked, -found[name.folded].occurrences


def _table(kb: "KnowledgeBase", names: "Sequence[DoubtfulName]") -> tuple[list[Column], list[list[str]]]:
    columns = [
        Column(heading="why", fit="keep"), Column(heading="name", most=40),
        Column(heading="entities", align="right"), Column(heading="which", wide=True),
    ]  # fmt: skip
    rows = []
    for each in names:
        entities = kb.store.entities(each.ids[:_MEANINGS])
        which = [
            entity.key if entity.label in ("", entity.key) else f"{entity.key} {entity.label}"
            for entity in entities
        ]
        more = ["…"] if len(each.ids) > _MEANINGS else []
        rows.append([each.sort, each.name, number(len(each.ids)), "; ".join([*which, *more])])
    return columns, rows


def _table_of_texts(
    names: "Sequence[DoubtfulName]", found: "Mapping[str, NameInTexts]"
) -> tuple[list[Column], list[list[str]]]:
    columns = [
        Column(heading="why", fit="keep"), Column(heading="name", most=30),
        *(Column(heading=heading, align="right") for heading in ("entities", "there", "lower", "linked")),
        Column(heading="to", most=30), Column(heading="score", align="right"),
        Column(heading="example", wide=True),
    ]  # fmt: skip
    rows = []
    for each in names:
        there = found[each.folded]
        before, text, after = there.example
        numbers = [number(value) for value in (len(each.ids), there.occurrences, there.lower, there.linked)]
        score = f"{there.score:.2f}" if there.entity else ""
        rows.append([each.sort, each.name, *numbers, there.entity, score, f"{before}[{text}]{after}"])
    return columns, rows


def _as_dict(
    kb: "KnowledgeBase", name: "DoubtfulName", found: "Mapping[str, NameInTexts] | None"
) -> dict[str, Any]:
    keys = [entity.key for entity in kb.store.entities(name.ids)]
    record = {"name": name.name, "why": name.sort, "entities": keys}
    if found is None:
        return record
    there = found[name.folded]
    return record | {
        "occurrences": there.occurrences, "lower": there.lower, "linked": there.linked,
        "entity": there.entity or None, "score": there.score if there.entity else None,
        "example": "".join(there.example),
    }  # fmt: skip
