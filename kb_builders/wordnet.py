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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from kb_builders.wordnet_source import obtain
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
    "noun.cognition noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive "
    "noun.object noun.person noun.phenomenon noun.plant noun.possession noun.process noun.quantity "
    "noun.relation noun.shape noun.state noun.substance noun.time verb.body verb.change verb.cognition "
    "verb.communication verb.competition verb.consumption verb.contact verb.creation verb.emotion verb.motion "
    "verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl"
).split()

_TYPE_NUMBER: Final = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}
_MARKER: Final = re.compile(r"\((?:a|p|ip)\)$")
_MARKER_IN_KEY: Final = re.compile(r"\((?:a|p|ip)\)(?=:)")
_QUOTED: Final = re.compile(r'"[^"]*"')
_VERSION: Final = re.compile(r"WordNet (\d\.\d)")


class Line(NamedTuple):
    """A line of a database file and where it stands, for errors."""

    path: Path
    number: int
    text: str

    def error(self, message: str) -> SourceError:
        return SourceError(message, path=self.path, line=self.number, text=self.text)


class Words(NamedTuple):
    """The words of a synset, its key, and the sense key of each word."""

    key: str
    spelled: tuple[str, ...]
    senses: tuple[str, ...]


class WordNetBuilder(Builder):
    """Synsets, lemma senses and their relations, from a folder of database files.

    Priors are (count + 1) / sum over the senses of a lemma, all parts of speech
    together; senses that tie stay in WordNet's own order of senses.
    """

    version: ClassVar[str] = "1"
    smoothing: ClassVar[float] = 1.0
    generator: ClassVar[str] = "lemma"
    language: ClassVar[str] = "en"
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
        return obtain(cache)

    def look(self, source: Path) -> Files:
        names = [f"{kind}.{part}" for kind in ("data", "index") for part in PARTS.values()]
        names += [f"{part}.exc" for part in PARTS.values()]
        files = [source / name for name in (*names, "cntlist.rev")]
        missing = [file.name for file in files if not file.is_file()]
        if missing:
            raise NotThere(
                f"{source} holds no WordNet database: it lacks {', '.join(missing)}. Give the folder that "
                "holds data.noun (Debian's wordnet-base has it as /usr/share/wordnet) with --source"
            )
        with (source / "data.noun").open(encoding="utf-8", errors="replace") as lines:
            found = next(filter(None, map(_VERSION.search, (line for line, _ in zip(lines, range(29))))), None)
        return Files(
            SourceInfo(
                name="WordNet",
                version=found[1] if found else "",
                licence="WordNet 3.0 license (Princeton University)",
                url="https://wordnet.princeton.edu/",
            ),
            files,
        )

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        return Reading(source).records()


class Reading:
    """One pass over a folder of database files."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.counts = dict(_counts(source / "cntlist.rev"))
        self.lines = {pos: list(_lines(source / f"data.{name}")) for pos, name in PARTS.items()}
        self.index = {pos: dict(_index(source / f"index.{name}")) for pos, name in PARTS.items()}
        # By part of speech and offset, as pointers name a synset.
        self.words: dict[str, dict[str, Words]] = {}

    def records(self) -> Iterator[Record]:
        """Yield synsets, lemma senses, facts, then surfaces and irregular forms."""
        heads = {line.text[:8]: line for line in self.lines["a"]}
        for pos in PARTS:
            self.words[pos] = dict(self._named(pos, heads))
        self.words["s"] = self.words["a"]
        for pos in PARTS:
            yield from self._synsets(pos)
        seen: set[str] = set()
        for pos in PARTS:
            yield from self._lemmas(pos, seen)
        for pos in PARTS:
            yield from self._surfaces(pos)
        for pos, name in PARTS.items():
            yield from _exceptions(self.source / f"{name}.exc", pos)

    def _named(self, pos: str, heads: Mapping[str, Line]) -> Iterator[tuple[str, Words]]:
        """Yield the offset and the words of every synset of *pos*."""
        index = self.index[pos]
        for line in self.lines[pos]:
            try:
                offset, file, kind, words = _words(line.text)
                head = _head(line.text, heads) if kind == "s" else ":"
                middle = f"%{_TYPE_NUMBER[kind]}:{file}:"
                lowered = words[0][0].lower()
                number = index[lowered].index(offset) + 1
                yield (
                    offset,
                    Words(
                        f"{lowered}.{kind}.{number:02d}",
                        tuple([word for word, _ in words]),
                        tuple([f"{word.lower()}{middle}{lex:02d}:{head}" for word, lex in words]),
                    ),
                )
            except KeyError as error:
                raise line.error(f"nothing is known of {error}, which this synset names") from None
            except (ValueError, IndexError) as error:
                raise line.error(f"not a synset as wndb(5) describes it: {error}") from None

    def _synsets(self, pos: str) -> Iterator[Record]:
        """Yield the synsets of *pos*, each with the facts its line states."""
        named, all_words = self.words[pos], self.words
        for line in self.lines[pos]:
            try:
                head, _, gloss = line.text.partition("| ")
                fields = head.split()
                key, spelled, senses = named[fields[0]]
                at = 4 + 2 * int(fields[3], 16)
                end = at + 1 + 4 * int(fields[at])
                attributes: dict[str, object] = {
                    "lexfile": LEXICOGRAPHER_FILES[int(fields[1])],
                    "lemmas": [word.replace("_", " ") for word in spelled],
                }
                description = gloss
                if '"' in gloss:
                    attributes["examples"] = [quoted[1:-1] for quoted in _QUOTED.findall(gloss)]
                    description = _QUOTED.sub("", gloss)
                if frames := _frames(fields, end, 0):
                    attributes["frames"] = frames
                yield Entity(
                    key,
                    spelled[0].replace("_", " "),
                    description.strip().strip("; "),
                    "synset",
                    fields[2],
                    (),
                    attributes,
                )
                for symbol, offset, other, ends in zip(
                    fields[at + 1 : end : 4],
                    fields[at + 2 : end : 4],
                    fields[at + 3 : end : 4],
                    fields[at + 4 : end : 4],
                    strict=True,
                ):
                    target = all_words[other][offset]
                    if ends == "0000":
                        yield Triple(key, RELATIONS[symbol], target.key)
                    else:
                        yield Triple(
                            senses[int(ends[:2], 16) - 1],
                            RELATIONS[symbol],
                            target.senses[int(ends[2:], 16) - 1],
                        )
            except KeyError as error:
                raise line.error(f"nothing is known of {error}, which this synset names") from None
            except (ValueError, IndexError) as error:
                raise line.error(f"not a synset as wndb(5) describes it: {error}") from None

    def _lemmas(self, pos: str, seen: set[str]) -> Iterator[Record]:
        """Yield the lemma senses of *pos*: words that share a sense key are one."""
        named, index, counts = self.words[pos], self.index[pos], self.counts
        for line in self.lines[pos]:
            text = line.text
            offset, kind = text[:8], text[12]
            synset, spelled, senses = named[offset]
            fields = text.partition("|")[0].split() if pos in "va" else []
            for place, (word, sense) in enumerate(zip(spelled, senses, strict=True)):
                if sense in seen:
                    continue
                seen.add(sense)
                attributes: dict[str, object] = {"count": counts.get(sense, 0)}
                offsets = index.get(word.lower(), ())
                if offset in offsets:
                    attributes["rank"] = offsets.index(offset) + 1
                if pos == "v" and (frames := _frames(fields, _end_of_pointers(fields), place + 1)):
                    attributes["frames"] = frames
                if pos == "a" and (marker := _MARKER.search(fields[4 + 2 * place])):
                    attributes["marker"] = marker[0][1:-1]
                yield Entity(sense, word.replace("_", " "), "", "lemma", kind, (), attributes)
                yield Triple(sense, IN_SYNSET, synset)

    def _surfaces(self, pos: str) -> Iterator[Record]:
        """Yield the surfaces of *pos*, the senses of a lemma in WordNet's own order."""
        named, counts = self.words[pos], self.counts
        done: set[str] = set()
        for lemma, offsets in self.index[pos].items():
            for offset in offsets:
                words = named.get(offset)
                if words is None:
                    continue  # told by `_named`, if the synset needs the lemma
                for word, sense in zip(words.spelled, words.senses, strict=True):
                    if word.lower() == lemma:
                        done.add(sense)
                        yield Alias(word.replace("_", " "), words.key, counts.get(sense, 0), sense)
        for words in named.values():  # what the data files have and the index has not
            for word, sense in zip(words.spelled, words.senses, strict=True):
                if sense not in done:
                    yield Alias(word.replace("_", " "), words.key, counts.get(sense, 0), sense)


def _lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a database file that are not part of its licence."""
    number = 0
    try:
        with path.open(encoding="utf-8", newline="\n") as lines:
            for number, text in enumerate(lines, start=1):
                if text[0] != " ":
                    yield Line(path, number, text.rstrip())
    except UnicodeDecodeError as error:
        raise SourceError(f"not UTF-8: {error.reason}", path=path, line=number + 1) from None


def _words(text: str) -> tuple[str, str, str, list[tuple[str, int]]]:
    """Return `(offset, lexicographer file, type, [(word, lex id)])` of a synset's line."""
    offset, file, kind, count, rest = text.split(" ", 4)
    fields = rest.split(" ", 2 * int(count, 16))
    words = fields[: 2 * int(count, 16) : 2]
    if kind in "as":
        words = [_MARKER.sub("", word) for word in words]
    return offset, file, kind, list(zip(words, [int(lex, 16) for lex in fields[1::2][: len(words)]], strict=True))


def _head(text: str, heads: Mapping[str, Line]) -> str:
    """Return the end of a satellite's sense keys: the first word of its head synset, and that word's lex id."""
    fields = text.partition("|")[0].split()
    at = 5 + 2 * int(fields[3], 16)
    head = fields[fields.index("&", at) + 1]
    (word, lex), *_ = _words(heads[head].text)[3]
    return f"{word.lower()}:{lex:02d}"


def _end_of_pointers(fields: Sequence[str]) -> int:
    at = 4 + 2 * int(fields[3], 16)
    return at + 1 + 4 * int(fields[at])


def _frames(fields: Sequence[str], at: int, word: int) -> list[int]:
    """Return the numbers of the verb frames of word number *word*; 0 stands for all words together."""
    if at >= len(fields):
        return []
    wanted = f"{word:02x}"
    return [
        int(frame)
        for frame, which in zip(fields[at + 2 :: 3], fields[at + 3 :: 3], strict=False)
        if which.lower() == wanted
    ]


def _index(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each lemma and the offsets of its synsets, most frequent first."""
    for line in _lines(path):
        fields = line.text.split()
        try:
            yield fields[0], fields[-int(fields[2]) :]
        except (ValueError, IndexError):
            raise line.error("not a lemma as wndb(5) describes it") from None


def _counts(path: Path) -> Iterator[tuple[str, int]]:
    for line in _lines(path):
        try:
            key, _, count = line.text.split()
            yield _MARKER_IN_KEY.sub("", key) if "(" in key else key, int(count)
        except ValueError:
            raise line.error("expected a sense key, a sense number and a count") from None


def _exceptions(path: Path, pos: str) -> Iterator[Form]:
    for line in _lines(path):
        form, *lemmas = line.text.split()
        if not lemmas:
            raise line.error("expected an irregular form and its lemmas")
        for lemma in lemmas:
            yield Form(form.replace("_", " "), lemma.replace("_", " "), pos)
