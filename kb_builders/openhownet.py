"""HowNet, from the dump that the package OpenHowNet downloads.

Qi et al. (2019), "OpenHowNet: An Open Sememe-based Lexical Knowledge Base". The package keeps the dump in
`~/.openhownet/resources`, in files of its own; of them are read

    sememe_all                      every sememe with how often it is used
    sememe_triples_taxonomy.txt     sememe, relation, sememe
    HowNet_dict_complete            the senses: number, words, parts of speech, definition

The package reads them, not we: two are pickles, and only who trusts their origin should open them. What it
gives is copied into records. An entity is a sense (`000000244401`) or a sememe (`fruit|水果`); a sense
has its sememes by `has_sememe`, in the order of its definition, and sememes are
related as the taxonomy says. The definition stands as it is written, roles included, in the description.

An English and a Chinese word each are the aliases of a sense. Sememes have none.
"""

import importlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from pickle import PickleError
from typing import Any, ClassVar, Final

from kgkit.building import Alias, Builder, Entity, Files, Record, SourceInfo, Triple
from kgkit.errors import MissingExtra, NotThere, SourceError

PACKAGE: Final = "OpenHowNet"
EXTRA: Final = "openhownet"
URL: Final = "https://github.com/thunlp/OpenHowNet"

RESOURCES: Final = "resources"
FILES: Final = ("sememe_all", "sememe_triples_taxonomy.txt", "HowNet_dict_complete")

HAS_SEMEME: Final = "has_sememe"
_POS: Final = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}

# What the package lets through when a file is not what it expects.
_WRONG: Final = (PickleError, LookupError, ValueError, TypeError, AttributeError, EOFError, ImportError)


class OpenHowNetBuilder(Builder):
    """Senses and sememes; the words of senses, English and Chinese, are linkable."""

    version: ClassVar[str] = "1"
    inverses: ClassVar[Mapping[str, str]] = {
        "hypernym": "hyponym",
        "antonym": "antonym",
        "converse": "converse",
    }

    def obtain(self, cache: Path) -> Path:
        """Return the folder that the package OpenHowNet downloads its dump to; nothing is fetched."""
        return Path(_storage().OPENHOWNET_RESOURCE_PATH)

    def look(self, source: Path) -> Files:
        """Return the files of HowNet's dump in *source*."""
        _storage()
        folder = _root(source) / RESOURCES
        missing = [file for file in FILES if not (folder / file).is_file()]
        if missing:
            raise NotThere(
                f"no {', '.join(missing)} in {folder}: `python -c 'import {PACKAGE}; {PACKAGE}.download()'` "
                "fetches the dump, and needs no source then"
            )
        return Files(SourceInfo(name="HowNet", url=URL), [folder / file for file in FILES])

    def observe(self, source: Path, part: str) -> Iterator[Record]:
        """Yield the records of the senses, then of the sememes, as the package OpenHowNet reads them."""
        try:
            with _reading_from(_root(source)):
                dictionary = importlib.import_module(PACKAGE).HowNetDict()
        except _WRONG as error:
            raise SourceError(
                f"{PACKAGE} cannot read its files: {type(error).__name__}: {error}; download them again",
                path=_root(source) / RESOURCES,
            ) from error
        try:
            senses, sememes = dictionary.get_all_senses(), dictionary.get_all_sememes()
        except AttributeError as error:  # it has told standard output what it misses, and gone on
            raise SourceError(f"{PACKAGE} has read nothing", path=_root(source) / RESOURCES) from error
        for sense in senses:
            yield from _sense(sense)
        for sememe in sememes:
            yield from _sememe(sememe)


def _sense(sense: Any) -> Iterator[Record]:
    english, chinese = sense.en_word.strip(), sense.zh_word.strip()
    grammar = {"en_grammar": sense.en_grammar, "zh_grammar": sense.zh_grammar}
    pos = sense.en_grammar or sense.zh_grammar
    yield Entity(
        sense.No,
        english or chinese,
        sense.Def,
        "sense",
        _POS.get(pos, pos),
        (),
        {"en_word": english, "zh_word": chinese, **grammar},
    )
    for word in filter(None, (english, chinese)):
        yield Alias(word, sense.No)
    for sememe in dict.fromkeys(sememe.en_zh for sememe in sense.sememes):
        yield Triple(sense.No, HAS_SEMEME, sememe)


def _sememe(sememe: Any) -> Iterator[Record]:
    attributes = {"en": sememe.en, "zh": sememe.zh, "freq": sememe.freq}
    yield Entity(sememe.en_zh, sememe.en, "", "sememe", "", (), attributes)
    for relation, targets in sememe.related_sememes.items():
        for other in targets:
            yield Triple(sememe.en_zh, relation, other.en_zh)


def _root(source: Path) -> Path:
    """Return the folder that holds `resources`: *source* itself, unless it is that one."""
    return source.parent if source.name == RESOURCES else source


def _storage() -> Any:
    """Return the module of the package that knows where the dump lies."""
    try:
        return importlib.import_module(f"{PACKAGE}.Download")
    except ImportError as error:
        raise MissingExtra(PACKAGE, EXTRA) from error


@contextmanager
def _reading_from(root: Path) -> Iterator[None]:
    """Let the package read below *root*, and say nothing on standard output."""
    storage = _storage()
    before = storage.OPENHOWNET_RESOURCE_PATH
    storage.OPENHOWNET_RESOURCE_PATH = str(root)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        storage.OPENHOWNET_RESOURCE_PATH = before
