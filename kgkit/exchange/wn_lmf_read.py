"""A builder that reads WN-LMF: Open English WordNet, the wordnets of OMW, and what kgkit wrote.

A synset and a sense are entities, joined by `lemma_in_synset` as in kgkit's
WordNet; a key is the `dc:identifier` (in OMW's English wordnet the sense key)
or else the id. ILI, lexicographer file, examples and members are
attributes of synsets; count, rank, frames, marker and examples those of
senses. Relations go by the names of kgkit's WordNet (`member_holonym` for
`holo_member`), `other` by its `dc:type`. Forms of an entry are irregular forms
of its lemma. Pronunciations, tags, metadata and external elements are left out.
"""

import re
import shutil
import tempfile
import xml.parsers.expat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kgkit.building.attributes import check_attributes
from kgkit.building.contract import Builder, Files, SourceInfo
from kgkit.errors import SourceError
from kgkit.exchange import wn_lmf_names as names
from kgkit.files import checked_file, compression_of, opened
from kgkit.types import Alias, Entity, Form, Record, Triple

__all__ = ["WNLMFBuilder"]

_AT_LINE: Final = re.compile(r" at line (\d+)")
_MAX_DIGITS: Final = 18  # of a verb frame's number: Python makes none of thousands

Element = Mapping[str, Any]


class WNLMFBuilder(Builder):
    """Synsets, senses and their relations, from one file of any number of lexicons."""

    name = "wn-lmf"
    smoothing = 1.0
    generator = "lemma"
    inverses = names.INVERSES
    identifiers = ("ili",)

    def look(self, source: Path) -> Files:
        """Return the file, with name, version, licence and language of its first lexicon."""
        lmf = names.lmf()
        with _plain(checked_file(source)) as path:
            if not lmf.is_lmf(path):
                raise SourceError(
                    "no WN-LMF: it begins with two lines, an XML declaration and DOCTYPE, in UTF-8",
                    path=source, line=1,
                )  # fmt: skip
            lexicons = _load(lmf, source, path, head=True)
        first = lexicons[0]
        meta = first.get("meta") or {}
        version = "" if first["version"] == names.NO_VERSION else str(first["version"])
        info = SourceInfo(
            name=str(first["label"]), version=version, licence=str(first["license"]),
            url=str(first.get("url") or ""), date=str(meta.get("date", "")),
        )  # fmt: skip
        language = "" if first["language"] == "und" else str(first["language"])
        return Files(info, [source], self.properties._replace(language=language))

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of all lexicons of the file, which has one part."""
        with _plain(source) as path:
            lexicons = _load(names.lmf(), source, path)
        try:
            for record in _Reading(lexicons, source).records():
                if isinstance(record, Entity):
                    check_attributes(record.attributes)
                yield record
        except ValueError as error:
            raise SourceError(f"not as WN-LMF has it: {error}", path=source) from None


@contextmanager
def _plain(source: Path) -> Iterator[Path]:
    """Give *source* as a file that is not compressed."""
    if not compression_of(source):
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / source.stem
        with opened(source) as packed, path.open("wb") as file:
            shutil.copyfileobj(packed, file)
        yield path


class _HeadRead(Exception):
    """The attributes of the first lexicon have been read."""


def _load(lmf: Any, source: Path, path: Path, *, head: bool = False) -> list[Any]:
    """Return the lexicons of a file; with *head*, the attributes of the first one only."""
    try:
        if head:
            return [_first_lexicon(lmf, path)]
        lexicons: list[Any] = lmf.load(path, progress_handler=None)["lexicons"]
        return lexicons
    except xml.parsers.expat.ExpatError as error:
        raise SourceError(f"not well-formed XML: {_reason(error)}", path=source, line=error.lineno) from None
    except lmf.LMFError as error:
        cause = error.__cause__
        if isinstance(cause, xml.parsers.expat.ExpatError):
            raise SourceError(
                f"not well-formed XML: {_reason(cause)}", path=source, line=cause.lineno
            ) from None
        match = _AT_LINE.search(str(error))
        line = int(match[1]) if match else None
        raise SourceError(f"no WN-LMF: {_AT_LINE.sub('', str(error))}", path=source, line=line) from None
    except (AssertionError, KeyError, ValueError, TypeError) as error:
        what = f"{error}" or "an element lacks what it has to have"
        raise SourceError(f"not as WN-LMF has it: {what}", path=source) from None


def _first_lexicon(lmf: Any, path: Path) -> dict[str, Any]:
    lexicon: dict[str, Any] = {}
    parser = xml.parsers.expat.ParserCreate(namespace_separator=" ")

    def start(name: str, attributes: dict[str, str]) -> None:
        """Take the attributes of the first lexicon, and end the reading there."""
        if name in ("Lexicon", "LexiconExtension"):
            meta = {key.rpartition(" ")[2]: value for key, value in attributes.items() if " " in key}
            lexicon.update({key: value for key, value in attributes.items() if " " not in key}, meta=meta)
            raise _HeadRead

    parser.StartElementHandler = start
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except _HeadRead:
        for name in ("id", "label", "language", "license", "version"):
            if name not in lexicon:
                raise lmf.LMFError(f"a lexicon without the attribute {name!r}") from None
        return lexicon
    raise lmf.LMFError("no lexicon")


def _reason(error: xml.parsers.expat.ExpatError) -> str:
    return xml.parsers.expat.ErrorString(error.code)


class _Reading:
    """The records of loaded lexicons."""

    def __init__(self, lexicons: list[Any], source: Path) -> None:
        self.lexicons, self.source = lexicons, source
        self.key_of: dict[str, str] = {}
        self.used_keys: set[str] = set()
        self.pos_of: dict[str, str] = {}
        self.frame_texts: dict[str, str] = {}
        self.lemmas: dict[str, str] = {}  # sense id -> its lemma
        self.first_word: dict[str, str] = {}  # synset id -> lemma of the first sense

    def records(self) -> Iterator[Record]:
        """Yield synsets, then senses with their surfaces, then relations and forms."""
        for lexicon in self.lexicons:
            self._survey(lexicon)
        for lexicon in self.lexicons:
            for synset in lexicon.get("synsets", ()):
                if not synset.get("external"):
                    yield self._synset(synset)
        for lexicon in self.lexicons:
            for entry in lexicon.get("entries", ()):
                yield from self._entry(entry)
        for lexicon in self.lexicons:
            yield from self._facts(lexicon)

    def _survey(self, lexicon: Element) -> None:
        for frame in lexicon.get("frames", ()):
            if frame.get("id"):
                self.frame_texts[frame["id"]] = frame["subcategorizationFrame"]
        for synset in lexicon.get("synsets", ()):
            if not synset.get("external"):
                self._name(synset)
                self.pos_of[synset["id"]] = synset.get("partOfSpeech", "")
        for entry in lexicon.get("entries", ()):
            if entry.get("external"):
                continue
            for sense in entry.get("senses", ()):
                if sense.get("external"):
                    continue
                if not _is_alias(sense):
                    self._name(sense)
                self.lemmas[sense["id"]] = entry["lemma"]["writtenForm"]
                self.first_word.setdefault(sense["synset"], entry["lemma"]["writtenForm"])

    def _name(self, element: Element) -> None:
        """Choose the key of a synset or a sense: its identifier, if no other has it."""
        name = element["id"]
        identifier = str((element.get("meta") or {}).get("identifier", ""))
        key = identifier if identifier and identifier not in self.used_keys else name
        self.used_keys.add(key)
        self.key_of[name] = key

    def _synset(self, synset: Element) -> Entity:
        meta = synset.get("meta") or {}
        attributes: dict[str, Any] = {}
        if (ili := synset.get("ili")) and ili != "in":
            attributes["ili"] = ili
        if synset.get("lexfile"):
            attributes["lexfile"] = synset["lexfile"]
        members = [self.lemmas[name] for name in synset.get("members") or () if name in self.lemmas]
        if members:
            attributes["lemmas"] = members
        if examples := [example["text"] for example in synset.get("examples", ())]:
            attributes["examples"] = examples
        label = meta.get("title") or (members[0] if members else self.first_word.get(synset["id"], ""))
        description = "; ".join(definition["text"] for definition in synset.get("definitions", ()))
        return Entity(
            self.key_of[synset["id"]],
            label,
            description,
            "synset",
            synset.get("partOfSpeech", ""),
            (),
            attributes,
        )

    def _entry(self, entry: Element) -> Iterator[Record]:
        if entry.get("external"):
            return
        word = entry["lemma"]["writtenForm"]
        of_senses: dict[str, list[str]] = {}  # frames, as WN-LMF 1.0 has them
        for frame in entry.get("frames", ()):
            for name in frame.get("senses") or [sense["id"] for sense in entry.get("senses", ())]:
                of_senses.setdefault(name, []).append(frame["subcategorizationFrame"])
        for rank, sense in enumerate(entry.get("senses", ()), start=1):
            if sense.get("external"):
                continue
            if sense["synset"] not in self.key_of:
                raise SourceError(
                    f"the sense {sense['id']!r} is of a synset that is not there: {sense['synset']!r}",
                    path=self.source,
                )
            synset = self.key_of[sense["synset"]]
            count = sum(counted["value"] for counted in sense.get("counts", ()))
            if _is_alias(sense):
                yield Alias(word, synset, count)
                continue
            key = self.key_of[sense["id"]]
            yield self._sense(sense, word, rank, of_senses.get(sense["id"], []))
            yield Triple(key, names.IN_SYNSET, synset)
            yield Alias(word, synset, count, key)
        pos = entry["lemma"]["partOfSpeech"].replace("s", "a")
        for form in entry.get("forms", ()):
            if not form.get("external"):
                yield Form(form["writtenForm"], word, pos)

    def _sense(self, sense: Element, word: str, position: int, frames: list[str]) -> Entity:
        attributes: dict[str, Any] = {}
        if sense.get("counts"):
            attributes["count"] = sum(counted["value"] for counted in sense["counts"])
        attributes["rank"] = sense.get("n") or position
        if frames := [*frames, *map(self._frame, sense.get("subcat") or ())]:
            attributes["frames"] = frames
        if sense.get("adjposition"):
            attributes["marker"] = sense["adjposition"]
        if examples := [example["text"] for example in sense.get("examples", ())]:
            attributes["examples"] = examples
        label = (sense.get("meta") or {}).get("title") or word
        return Entity(
            self.key_of[sense["id"]], label, "", "lemma", self.pos_of.get(sense["synset"], ""), (), attributes
        )

    def _facts(self, lexicon: Element) -> Iterator[Record]:
        senses = (sense for entry in lexicon.get("entries", ()) for sense in entry.get("senses", ()))
        for elements in (lexicon.get("synsets", ()), senses):
            for element in elements:
                subject = self.key_of.get(element["id"], element["id"])
                for relation in element.get("relations", ()):
                    name = names.relation(relation["relType"], relation.get("meta"))
                    yield Triple(subject, name, self.key_of.get(relation["target"], relation["target"]))

    def _frame(self, name: str) -> Any:
        """Return the text of a verb frame; a number where it is one, as in Princeton's files."""
        frame = self.frame_texts.get(name, name)
        is_number = frame.isascii() and frame.isdecimal() and len(frame) < _MAX_DIGITS
        return int(frame) if is_number else frame


def _is_alias(sense: Element) -> bool:
    """Return whether a sense stands for no entity, as kgkit writes it."""
    return bool((sense.get("meta") or {}).get("type") == names.ALIAS)
