"""WordNet, from Princeton's database files (versions 3.0 and 3.1).

    data.POS     a synset a line: its words, pointers, verb frames and gloss
    index.POS    a lemma a line: its synsets, the most frequent sense first
    POS.exc      irregular forms: form, then its lemmas
    cntlist.rev  how often a sense was tagged in the semantic concordances

(`man 5 wndb`, `man 5 senseidx` describe them.) Nodes are synsets, named as
people name them (`dog.n.01`), and lemma senses, named by their sense key
(`dog%1:05:00::`), joined by `lemma_in_synset` as in Peters et al. (2019), 4.1.
Synsets come first, so the ids of synsets are a range of their own.

Sense keys are the names to match by: offsets differ between distributions of
one version. Where a key holds a head word with a syntactic marker
(`single(a):00`), the marker is dropped, as the files themselves are of two
minds about it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

from kgkit.building import Alias, Builder, Entity, Files, Form, Record, SourceInfo, Triple
from kgkit.errors import NotThere, SourceError

PARTS: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

RELATIONS: Final = {
    "!": "antonym",
    "@": "hypernym",
    "~": "hyponym",
    "@i": "instance_hypernym",
    "~i": "instance_hyponym",
    "#m": "member_holonym",
    "#s": "substance_holonym",
    "#p": "part_holonym",
    "%m": "member_meronym",
    "%s": "substance_meronym",
    "%p": "part_meronym",
    "=": "attribute",
    "+": "derivation",
    ";c": "domain_topic",
    "-c": "has_domain_topic",
    ";r": "domain_region",
    "-r": "has_domain_region",
    ";u": "domain_usage",
    "-u": "has_domain_usage",
    "*": "entailment",
    ">": "cause",
    "^": "also_see",
    "$": "verb_group",
    "&": "similar_to",
    "<": "participle",
    "\\": "pertainym",
}
IN_SYNSET: Final = "lemma_in_synset"

LEXICOGRAPHER_FILES: Final = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body "
    "noun.cognition noun.communication noun.event noun.feeling noun.food noun.group noun.location "
    "noun.motive noun.object noun.person noun.phenomenon noun.plant noun.possession noun.process "
    "noun.quantity noun.relation noun.shape noun.state noun.substance noun.time verb.body verb.change "
    "verb.cognition verb.communication verb.competition verb.consumption verb.contact verb.creation "
    "verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl"
).split()

_TYPE_NUMBER: Final = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
_LEXFILE: Final = {f"{number:02d}": name for number, name in enumerate(LEXICOGRAPHER_FILES)}
_LEX_ID: Final = {f"{number:x}": f"{number:02d}" for number in range(100)}  # in a data file -> in a key
_MARKER: Final = re.compile(r"\((a|p|ip)\)$")
_MARKER_IN_KEY: Final = re.compile(r"\((?:a|p|ip)\)(?=:)")
_VERSION: Final = re.compile(r"WordNet (\d\.\d)")
_MARK: Final = re.compile('"')
_NAMING: Final = re.compile(r"\b(?:as in|phrase|expression)$")  # before a quotation in a definition
_NAMING_LENGTH: Final = len("expression")
_AT_END: Final = re.compile(r"(?:[\s;:,]|\b(?:as in )?e\.g\.)+$")  # between a definition and its examples
_BETWEEN_EXAMPLES: Final = re.compile(r'"\s*;\s*"?|;\s*"|"(?=\w{2})')  # where a mark is missing
_CONJUNCTIONS: Final = ("", ".", "or", "and")
_NONE: Final[Mapping[int, Any]] = {}
_UNLISTED: Final[tuple[int, Sequence[str]]] = (1 << 32, ())
_WRONG: Final = (KeyError, ValueError, IndexError)  # raised by a line that is not as wndb(5) has it

T = TypeVar("T")


class WordNetBuilder(Builder):
    """Synsets, lemma senses and their relations, from a folder of database files.

    Priors are (count + 1) / sum over the senses of a lemma, all parts of speech
    together; senses that tie stay in WordNet's own order of senses.
    """

    name: ClassVar[str] = "wordnet"
    version: ClassVar[str] = "2"
    smoothing: ClassVar[float] = 1.0
    generator: ClassVar[str] = "lemma"
    language: ClassVar[str] = "en"
    url_pattern: ClassVar[str] = "https://en-word.net/lemma/{label}"
    inverses: ClassVar[Mapping[str, str]] = {
        "hypernym": "hyponym",
        "instance_hypernym": "instance_hyponym",
        "member_holonym": "member_meronym",
        "substance_holonym": "substance_meronym",
        "part_holonym": "part_meronym",
        "domain_topic": "has_domain_topic",
        "domain_region": "has_domain_region",
        "domain_usage": "has_domain_usage",
        "similar_to": "similar_to",
        "attribute": "attribute",
        "verb_group": "verb_group",
    }

    def obtain(self, cache: Path) -> Path:
        """Return the folder of WordNet's database: an installed one, or a download into *cache*."""
        from kb_builders.wordnet_source import obtain  # here: it loads all that a download needs

        return obtain(cache)

    def look(self, source: Path) -> Files:
        """Return the data, index and exception files in *source*, with the version stated in `data.noun`."""
        names = [f"{kind}.{part}" for kind in ("data", "index") for part in PARTS.values()]
        names += [f"{part}.exc" for part in PARTS.values()]
        files = [source / name for name in (*names, "cntlist.rev")]
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise NotThere(
                f"{source} holds no WordNet database: it lacks {', '.join(missing)}. Give the folder that "
                "holds data.noun (Debian's wordnet-base has it as /usr/share/wordnet)"
            )
        with (source / "data.noun").open(encoding="utf-8", errors="replace") as lines:
            version = next(filter(None, map(_VERSION.search, islice(lines, 29))), None)
        return Files(
            SourceInfo(
                name="WordNet",
                version=version[1] if version else "",
                licence="WordNet 3.0 license (Princeton University)",
                url="https://wordnet.princeton.edu/",
            ),
            files,
        )

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of the database, which has one part."""
        return Reading(source).records()


class Synset(NamedTuple):
    """What the first reading of a data file keeps of a line.

    Attributes:
        line: its number.
        key: `dog.n.01`.
        words: their spelling less markers, the lemma as the index has it, the sense key.
        markers: mapping of the index of a word to its syntactic marker.
        frames: number of a word (0: all of them) -> its verb frames.
        tail: the line from its count of pointers on.
    """

    line: int
    key: str
    kind: str
    lexfile: str
    words: Sequence[tuple[str, str, str]]
    markers: Mapping[int, str]
    frames: Mapping[int, Sequence[int]]
    tail: str


class Reading:
    """One pass over a folder of database files."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.counts = dict(self._parse("cntlist.rev", _count))
        self.index = {pos: dict(self._lemma_offsets(pos)) for pos in PARTS}
        # By part of speech and offset, as pointers name a synset.
        self.synsets = {pos: dict(self._synsets(pos)) for pos in PARTS}
        self.synsets["s"] = self.synsets["a"]

    def records(self) -> Iterator[Record]:
        """Yield synsets with their facts, lemma senses with their surfaces, then irregular forms."""
        senses: set[str] = set()
        return chain(
            chain.from_iterable(map(self._records_of, PARTS)),
            chain.from_iterable(self._lemmas(pos, senses) for pos in PARTS),
            chain.from_iterable(map(self._forms, PARTS)),
        )

    def _lemma_offsets(self, pos: str) -> Iterator[tuple[str, tuple[int, list[str]]]]:
        """Yield each lemma, how many senses are listed before its own, and the offsets of its synsets."""
        before = 0
        for lemma, offsets in self._parse(f"index.{PARTS[pos]}", _senses):
            yield lemma, (before, offsets)
            before += len(offsets)

    def _synsets(self, pos: str) -> Iterator[tuple[str, Synset]]:
        """Yield the offset of every synset of *pos*, and the synset with all that names it."""
        file, index = f"data.{PARTS[pos]}", self.index[pos]
        lines = list(self._lines(file))
        heads = {line[:8]: line for _, line in lines} if pos == "a" else {}
        for number, line in lines:
            try:
                offset, lexfile, kind, spelled, lex_ids, tail = _fields(line)
                markers: Mapping[int, str] = _NONE
                if pos == "a":
                    spelled, markers = _strip_markers(spelled)
                # A key is LEMMA%TYPE:FILE:LEX_ID:HEAD:HEAD_ID; only satellites have a head.
                middle, end = f"%{_TYPE_NUMBER[kind]}:{lexfile}:", _head(tail, heads) if kind == "s" else "::"
                words = []
                for word, lex in zip(spelled, lex_ids, strict=True):
                    lemma = word if word.islower() else word.lower()
                    words.append((word.replace("_", " "), lemma, f"{lemma}{middle}{_LEX_ID[lex]}{end}"))
                lemma = words[0][1]
                _, offsets = index.get(lemma, _UNLISTED)
                if offset not in offsets:
                    raise ValueError(f"index.{PARTS[pos]} does not list it under {lemma!r}")
                key = f"{lemma}.{kind}.{offsets.index(offset) + 1:02d}"
                frames = _frames(tail) if pos == "v" else _NONE
                synset = Synset(number, key, kind, _LEXFILE[lexfile], words, markers, frames, tail)
            except _WRONG as error:
                raise self._wrong(file, number, error) from None
            yield offset, synset

    def _records_of(self, pos: str) -> Iterator[Record]:
        """Yield the synsets of *pos*, each with the facts its line states."""
        synsets = self.synsets
        try:
            for synset in synsets[pos].values():
                _, key, kind, lexfile, words, _, frames, tail = synset
                pointers, gloss = _pointers(tail)
                attributes: dict[str, object] = {"lexfile": lexfile, "lemmas": [word for word, _, _ in words]}
                definition, examples = _split_gloss(gloss)
                if examples:
                    attributes["examples"] = examples
                if 0 in frames:
                    attributes["frames"] = frames[0]
                yield Entity(key, words[0][0], definition, "synset", kind, (), attributes)
                fields = iter(pointers)
                for symbol, offset, part, ends in zip(fields, fields, fields, fields, strict=True):
                    target = synsets[part][offset]
                    if ends == "0000":
                        yield Triple(key, RELATIONS[symbol], target.key)
                    else:
                        if "00" in (ends[:2], ends[2:]):
                            raise ValueError(f"a pointer from word {ends[:2]} to word {ends[2:]}")
                        own, targets = words[int(ends[:2], 16) - 1], target.words[int(ends[2:], 16) - 1]
                        yield Triple(own[2], RELATIONS[symbol], targets[2])
        except _WRONG as error:
            raise self._wrong(f"data.{PARTS[pos]}", synset.line, error) from None

    def _lemmas(self, pos: str, senses: set[str]) -> Iterator[Record]:
        """Yield the lemma senses of *pos*, then their surfaces; words that share a key are one sense."""
        index, counts = self.index[pos], self.counts
        surfaces: list[tuple[int, Alias]] = []
        for offset, (_, key, kind, _, words, markers, frames, _) in self.synsets[pos].items():
            for position, (word, lemma, sense) in enumerate(words):
                count = counts.get(sense, 0) if sense not in senses else 0
                before, offsets = index.get(lemma, _UNLISTED)
                rank = offsets.index(offset) + 1 if offset in offsets else 0
                surfaces.append((before + rank, Alias(word, key, count, sense)))
                if sense in senses:
                    continue
                senses.add(sense)
                attributes: dict[str, object] = {"count": count}
                if rank:
                    attributes["rank"] = rank
                if position + 1 in frames:
                    attributes["frames"] = frames[position + 1]
                if position in markers:
                    attributes["marker"] = markers[position]
                yield Entity(sense, word, "", "lemma", kind, (), attributes)
                yield Triple(sense, IN_SYNSET, key)
        # In the order of the index, for its order of senses; what it does not list comes last.
        surfaces.sort(key=itemgetter(0))
        for _, alias in surfaces:
            yield alias

    def _forms(self, pos: str) -> Iterator[Record]:
        """Yield the irregular forms of *pos*."""
        for form, lemmas in self._parse(f"{PARTS[pos]}.exc", _exception):
            for lemma in lemmas:
                yield Form(form, lemma, pos)

    def _parse(self, file: str, parse: Callable[[str], T]) -> Iterator[T]:
        """Yield what *parse* makes of each line of *file*."""
        for number, line in self._lines(file):
            try:
                parsed = parse(line)
            except _WRONG as error:
                raise self._wrong(file, number, error) from None
            yield parsed

    def _lines(self, file: str) -> Iterator[tuple[int, str]]:
        """Return the lines of *file* with their numbers, less the empty ones and the licence at its head."""
        path = self.source / file
        content = path.read_bytes()
        try:
            lines = content.decode().split("\n")
        except UnicodeDecodeError as error:
            number = content.count(b"\n", 0, error.start) + 1
            raise SourceError(f"not UTF-8: {error.reason}", path=path, line=number) from None
        return ((number, line) for number, line in enumerate(lines, start=1) if line and line[0] != " ")

    def _wrong(self, file: str, number: int, error: Exception) -> SourceError:
        if isinstance(error, IndexError):
            message = "the line has fewer parts than it counts"
        elif isinstance(error, KeyError):
            message = f"nothing is known of {error}, which the line names"
        else:
            message = f"not as wndb(5) describes it: {error}"
        line = dict(self._lines(file))[number]
        return SourceError(message, path=self.source / file, line=number, text=line)


def _fields(line: str) -> tuple[str, str, str, list[str], list[str], str]:
    """Return `(offset, lexicographer file, type, words, lex ids, the rest)` of a synset's line."""
    offset, lexfile, kind, count, tail = line.split(" ", 4)
    end = 2 * int(count, 16)
    fields = tail.split(" ", end)
    return offset, lexfile, kind, fields[:end:2], fields[1:end:2], fields[end]


def _strip_markers(words: list[str]) -> tuple[list[str], dict[int, str]]:
    """Return *words* without their syntactic markers, and the markers by the words' places."""
    markers = {index: marker[1] for index, word in enumerate(words) if (marker := _MARKER.search(word))}
    return [_MARKER.sub("", word) for word in words] if markers else words, markers


def _head(tail: str, heads: Mapping[str, str]) -> str:
    """Return how the sense keys of a satellite end: its head's first word, and that word's lex id."""
    pointers, _ = _pointers(tail)
    _, _, _, words, lex_ids, _ = _fields(heads[pointers[pointers.index("&") + 1]])
    return f":{_MARKER.sub('', words[0]).lower()}:{_LEX_ID[lex_ids[0]]}"


def _pointers(tail: str) -> tuple[list[str], str]:
    """Return the fields of a synset's pointers, four each, and its gloss."""
    stated, bar, gloss = tail.partition("| ")
    fields = stated.split()
    end = 1 + 4 * int(fields[0])
    if not bar or len(fields) < end:
        raise IndexError
    return fields[1:end], gloss


def _frames(tail: str) -> dict[int, list[int]]:
    """Return the verb frames by the number of the word that they are for; 0 stands for all words."""
    fields = tail.partition("| ")[0].split()
    at = 1 + 4 * int(fields[0])
    if len(fields) != at + 1 + 3 * int(fields[at]):
        raise IndexError
    frames: dict[int, list[int]] = {}
    for frame, word in zip(fields[at + 2 :: 3], fields[at + 3 :: 3], strict=True):
        frames.setdefault(int(word, 16), []).append(int(frame))
    return frames


def _split_gloss(gloss: str) -> tuple[str, list[str]]:
    """Return the definition in a gloss, and the examples: what stands in quotation marks behind it.

    What follows an example up to the next one, its author or a note, belongs to it. Quotations in brackets,
    and those that the definition names (*as in "carrot and stick"*), are part of that. The mark may be
    missing at one end of an example.
    """
    gloss = gloss.strip()
    marks = [mark.start() for mark in _MARK.finditer(gloss)] if '"' in gloss else []
    first = 0
    while first < len(marks) and _is_of_definition(gloss, *marks[first : first + 2]):
        first += 2
    if first >= len(marks):
        return gloss.rstrip(" ;:,"), []
    definition, quoted = gloss[: marks[first]], gloss[marks[first] + 1 :]
    if len(marks) % 2 == 0:
        return _without_end(definition), _examples(quoted.split('"'))
    if not quoted:  # the mark at the end is the only one
        before, semicolon, last = definition.rpartition("; ")
        definition, quoted = (before, last) if semicolon else (last, "")
    parts = [part.strip(" ;:'\"") for part in _BETWEEN_EXAMPLES.split(quoted)]
    return _without_end(definition), [part for part in parts if part]


def _without_end(definition: str) -> str:
    """Return a definition without what stands between it and its examples."""
    definition = definition.rstrip(" ;:,")
    if definition.endswith("e.g.") or not definition.isprintable():  # else the pattern has nothing to find
        return _AT_END.sub("", definition)
    return definition


def _is_of_definition(gloss: str, start: int, end: int = -1) -> bool:
    """Say whether a quotation, with marks at *start* and *end*, belongs to the definition."""
    before = gloss[:start].rstrip()
    if before.count("(") > before.count(")") or _NAMING.search(before, max(0, len(before) - _NAMING_LENGTH)):
        return True
    behind = gloss[(end if end > 0 else start) + 1 :].lstrip()
    return before[-1:].isalnum() and behind[:1].isalnum()


def _examples(pieces: list[str]) -> list[str]:
    """Return the examples of a gloss, of quotations and what stands between them in turn."""
    examples: list[str] = []
    joined = ""
    for index in range(0, len(pieces), 2):
        quotation, behind = pieces[index : index + 2]
        example, note = joined + quotation, behind.strip(" ;,:")
        joined = ""
        if note.startswith("-"):
            note = f"- {note.lstrip('- ')}"
        elif note in _CONJUNCTIONS:
            note = ""
        elif ";" not in behind and note[:1].isalpha() and index + 2 < len(pieces):
            joined = f'{example}"{behind}"'  # "It's hard," he said, "but true"
            continue
        examples.append(f"{example} {note}" if note else example)
    return examples


def _senses(line: str) -> tuple[str, list[str]]:
    """Return a lemma and the offsets of its synsets, the most frequent sense first."""
    fields = line.split()
    senses = int(fields[2])
    if len(fields) != 6 + int(fields[3]) + senses:
        raise IndexError
    return fields[0], fields[-senses:]


def _count(line: str) -> tuple[str, int]:
    """Return a sense key, markers left out, and how often it was tagged."""
    key, _, count = line.split()
    return _MARKER_IN_KEY.sub("", key) if "(" in key else key, int(count)


def _exception(line: str) -> tuple[str, list[str]]:
    """Return an irregular form and its lemmas."""
    form, *lemmas = [word.replace("_", " ") for word in line.split()]
    if not lemmas:
        raise IndexError
    return form, lemmas
