"""The model `auto`: the linker that is taken for a knowledge base where nobody names one.

In this order, and the first that can be opened is taken:

    $KGKIT_MODEL    a model that the variable names; there is no other choice then
    trained         of the linkers for this build, else one that it extends, the one with the best score on
                    what was held out: F1 of links, else accuracy on given mentions; of equals the one that
                    was put into this home last. Controls are left out, and linkers that were worse than no
                    training or had nothing held out; for names those, too, that were not compared with
                    links-minilm. For dictionaries models of older versions, not compared, come last
    links-minilm    where it is a knowledge base of names; of one in Chinese, where jieba is installed
    wsd-minilm      where it is WordNet and the encoder is installed
    gloss           where it is another dictionary, and has vectors of texts; or descriptions in English, and
                    the encoder is installed; or where vectors are named
    prior

A dictionary is a knowledge base that is searched for lemmas, as WordNet is; whose entities have parts of
speech; or that was built by `spo`, `openhownet` or `type_vocabulary`. Any other one is of names.

Nothing is downloaded. A linker that has no build of its own serves any knowledge base, and is
taken only where it is named: nothing says which one suits it.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from kgkit.candidates.doubtful_names import spread_ids
from kgkit.encoder.finding import INSTALL
from kgkit.errors import KgkitError
from kgkit.home import Home
from kgkit.kb import KnowledgeBase
from kgkit.linking.joint.unspaced import is_unspaced
from kgkit.linking.languages import ENGLISH, UNDETERMINED, is_latin, told_by_letters, told_by_words
from kgkit.models.folder import AUTO, find_trained, model_names, text_vectors
from kgkit.models.kinds import find_kind
from kgkit.models.manifest import MANIFEST, decode_manifest, read_header
from kgkit.types import Entity
from kgkit.vectors import vectors_names
from kgkit.versions import read_current

MODEL_VARIABLE: Final = "KGKIT_MODEL"
"""The environment variable that names the model where `auto` is asked for."""

WORDNET_MODEL: Final = "wsd-minilm"
NAMES_MODEL: Final = "links-minilm"
_READERS: Final = ("openvino", "tokenizers"), ("torch", "transformers", "safetensors")
INSTALL_CHINESE: Final = "pip install 'kgkit[zh]'"

_WORDNET: Final = "wordnet"  # the builder
_DICTIONARIES: Final = (_WORDNET, "spo", "openhownet", "type_vocabulary")  # builders
_SAMPLE: Final = 256  # entities that tell of all
_CONTROLS: Final = ("control", "zero_vectors", "random_vectors")  # settings of trainings without knowledge
_KANA: Final = 0.05  # share of the characters of Japanese, at least; Chinese names have single ones

log = logging.getLogger(__name__)


def named_model() -> str | None:
    """Return the model that the variable names; None if it is unset, empty or `auto`."""
    named = os.environ.get(MODEL_VARIABLE, AUTO)
    return None if named in ("", AUTO) else named


def auto_models(kb: KnowledgeBase, *, vectors: str | None = None) -> Iterator[str]:
    """Yield the names of models for *kb*, in the order in which they are tried; `prior` is the last.

    Args:
        kb: knowledge base that is linked to.
        vectors: name of the entities' vectors, where the caller has named some; trained models, which have
            their own, and the one for names, which reads those of one encoder, are left out then.
    """
    if (named := named_model()) is not None:
        yield named
        return
    if vectors is None:
        yield from trained_linkers(kb)
        if suits_names_model(kb):
            yield NAMES_MODEL
            yield "prior"
            return
        if is_of_names(kb):
            log.warning(
                "linking with prior, which takes every name in a text for a link: for %s jieba, which "
                "cuts texts without spaces into words, is not installed: `%s`",
                NAMES_MODEL,
                INSTALL_CHINESE,
            )
            yield "prior"
            return
    untrained = (WORDNET_MODEL, "gloss") if kb.manifest.builder == _WORDNET else ("gloss",)
    if vectors is not None or _has_text_vectors(kb):
        yield from untrained
    elif reads_descriptions(kb):
        if encoder_is_installed():
            yield from untrained
        else:
            log.warning(
                "linking with prior: for %s the encoder is not installed: `%s`", untrained[0], INSTALL
            )
    yield "prior"


def trained_linkers(kb: KnowledgeBase) -> list[str]:
    """Return the names of the linkers that were trained for the build of *kb*, the best first.

    Only models that are mainly linkers count, of whatever kind, that were trained for this build or for one
    that it extends, that are no controls, and are no worse than no training.
    """
    return [*_trained(kb)]


def outdated_linkers(kb: KnowledgeBase) -> list[str]:
    """Return the names of the linkers that `trained_linkers` would have, if *kb* were of their builds."""
    return [*_trained(kb, outdated=True)]


def describe_choice(kb: KnowledgeBase, model: str) -> str:
    """Say why `auto` takes *model* for *kb*, in words that stand behind its name.

    Args:
        kb: knowledge base that is linked to.
        model: one of `auto_models`.
    """
    trained = _trained(kb)
    if model in trained:
        (_, score, rival), arrival = trained[model]
        measured = "" if score is None else f", {score.measure} {score.value:.3f} on what was held out"
        versus = "" if rival is None else f", {rival[0]} {rival[1]:.3f}"
        return f"trained for {kb.name} ({datetime.fromtimestamp(arrival, UTC):%Y-%m-%d}{measured}{versus})"
    match model:
        case "prior":
            return "which needs no training"
        case "gloss":
            return "which reads descriptions and needs no training"
        case name if name == NAMES_MODEL:
            return "which comes with kgkit for names"
        case _:
            return f"which comes with kgkit for {_WORDNET}"


class _Score(NamedTuple):
    """The score of a linker on what was held out; F1 goes before accuracy, which says nothing of mentions."""

    is_f1: bool
    value: float

    @property
    def measure(self) -> str:
        """Name of the measure."""
        return "F1" if self.is_f1 else "accuracy"


class _Verdict(NamedTuple):
    """Verdict of a comparison with linking without training.

    Attributes:
        is_worth: whether the linker is no worse.
        score: its score; None where nothing was compared.
        rival: name and score, of the same measure, of the best one without training; None: there is none.
    """

    is_worth: bool
    score: _Score | None = None
    rival: tuple[str, float] | None = None


def _trained(kb: KnowledgeBase, *, outdated: bool = False) -> dict[str, tuple[_Verdict, float]]:
    """Return verdicts of the linkers of `trained_linkers`, and when they came into the home, in seconds.

    Args:
        kb: knowledge base that is linked to.
        outdated: whether the linkers for other builds of *kb* are returned instead.
    """
    from kgkit.kb.lineage import ancestry

    home = Home(kb.home.path.parents[1])
    builds, linkers = ancestry(kb), []
    rival = NAMES_MODEL if is_of_names(kb) else ""
    for name in model_names(home):
        with suppress(KgkitError, OSError):  # one that cannot be read is no choice
            folder = read_current(partial(find_trained, home, name), lambda folder: folder)
            header = read_header(folder)
            build = header.needs.kbs.get(kb.name)
            if not build or (build not in builds) is not outdated:
                continue
            verdict = _compared(header.results, rival)
            if _is_control(header.config) or not verdict.is_worth:
                continue
            kind = find_kind(header, folder)
            if kind.roles_in(decode_manifest(folder, kind.manifest))[0] == "linker":
                is_current = (
                    header.needs.kbs[kb.name] == kb.build
                )  # scores of other builds are of other texts
                score = verdict.score or _Score(False, -1.0)
                linkers.append((is_current, score, _arrival(folder), name, verdict))
    linkers.sort(key=lambda linker: linker[:4], reverse=True)
    return {name: (verdict, arrival) for *_, arrival, name, verdict in linkers}


def _arrival(folder: Path) -> float:
    """Return when a model came into the home, by the file system: its author may have written any date.

    A copy may keep its time of change, which may lie in the future; when the file was put there is noted by
    the file system itself.
    """
    about = (folder / MANIFEST).stat()
    return min(about.st_mtime, about.st_ctime)


def _compared(results: Mapping[str, Any], rival: str) -> _Verdict:
    """Return whether a linker was compared with linking without training and found no worse, and the scores.

    Models of versions that did not compare say nothing, nor do other kinds: they are worth it, where there is
    no rival.

    Args:
        results: what was measured.
        rival: model that needs no training, and that it must have been compared with; "": any.
    """
    rows = results.get("compared")
    if rows is None:
        return _Verdict(not rival)
    try:
        trained, others = (
            [
                (_Score(row["measure"] == "F1", float(row["score"])), str(row["model"]))
                for row in rows
                if row["trained"] is own
            ]
            for own in (True, False)
        )
        best, best_other = (max(score.value for score, _ in group) for group in (trained, others))
        is_rival = not rival or any(model == rival for _, model in others)
        score = max(trained)[0]
        alike = [(other.value, model) for other, model in others if other.is_f1 is score.is_f1]
        return _Verdict(
            bool(is_rival and results.get("helps", best >= best_other)),
            score,
            max(alike)[::-1] if alike else None,
        )
    except (KeyError, TypeError, ValueError):  # no rows, or none of a comparison
        return _Verdict(False)


def _is_control(config: Mapping[str, Any]) -> bool:
    """Say whether a model was trained without the knowledge that others of its kind read.

    Linkers of several parts have the settings of each: `{"ridge": {…}, "head": {"control": true, …}}`.
    """
    parts = [config, *(part for part in config.values() if isinstance(part, Mapping))]
    return any(part.get(name) is True for part in parts for name in _CONTROLS)


def encoder_is_installed() -> bool:
    """Say whether the encoder that texts are read with by default is on this machine; loads nothing."""
    from kgkit.embedding.text import TextConfig
    from kgkit.encoder.finding import find_model

    if not any(all(map(find_spec, packages)) for packages in _READERS):
        return False
    try:
        find_model(TextConfig().encoder, offline=True)
    except KgkitError:
        return False
    return True


def suits_names_model(kb: KnowledgeBase) -> bool:
    """Say whether the model for names is one that `auto` takes for *kb*."""
    return is_of_names(kb) and is_segmented(kb)


def is_of_names(kb: KnowledgeBase) -> bool:
    """Say whether *kb* is of names, and no dictionary: by its generator, builder and parts of speech."""
    if kb.manifest.generator != "alias" or kb.manifest.builder in _DICTIONARIES:
        return False
    return not any(entity.pos for entity in _sample(kb))


def _is_chinese(kb: KnowledgeBase) -> bool:
    """Say whether most letters of a sample of labels are Chinese, and no text is Japanese: that has kana."""
    entities = _sample(kb)
    letters = [character for entity in entities for character in entity.label if character.isalpha()]
    texts = [*letters, *(character for entity in entities for character in entity.description)]
    has_kana = sum(map(_is_kana, texts)) > _KANA * len(texts)
    return not has_kana and sum(map(is_unspaced, letters)) > len(letters) / 2


def _is_kana(character: str) -> bool:
    return "\u3041" <= character <= "\u30ff" and character.isalpha()


def is_segmented(kb: KnowledgeBase) -> bool:
    """Say whether texts in the language of *kb* are cut into words: by their spaces, or by jieba."""
    return bool(find_spec("jieba")) or not _is_chinese(kb)


def _sample(kb: KnowledgeBase) -> list[Entity]:
    """Return some entities, spread evenly."""
    return kb.store.entities([*spread_ids(kb, _SAMPLE)])


def is_english(kb: KnowledgeBase) -> bool:
    """Say whether *kb* is in English, as `likely_language` has it."""
    return _primary(likely_language(kb)) == ENGLISH


def likely_language(kb: KnowledgeBase) -> str:
    """Return the language of *kb* as a BCP 47 tag: the one it names, else that of a sample of its texts.

    Descriptions tell by their function words, else labels do, or the letters of either. It is English where
    nothing tells another language, and empty where it is another one, but not clear which.
    """
    if kb.manifest.language:
        return kb.manifest.language
    if _is_chinese(kb):
        return "zh"
    entities = _sample(kb)
    descriptions = [entity.description for entity in entities]
    texts = [entity.label for entity in entities] + descriptions
    told = ""
    for tell, said in ((told_by_words, descriptions), (told_by_words, texts), (told_by_letters, texts)):
        tag = tell(said)
        if tag == UNDETERMINED or (tag == ENGLISH and told == UNDETERMINED):
            told = UNDETERMINED  # English labels do not make unclear descriptions English
        elif tag:
            told = tag
            break
    if told in ("", ENGLISH) and not is_latin("".join(texts)):
        return "ja" if any(map(_is_kana, "".join(texts))) else ""
    return "" if told == UNDETERMINED else told or ENGLISH


def _primary(language: str) -> str:
    """Return the language of a BCP 47 tag, without region and script."""
    return language.lower().partition("-")[0]


def reads_descriptions(kb: KnowledgeBase) -> bool:
    """Say whether *kb* has descriptions that an English encoder reads, by a sample of its entities.

    Their letters have to be ASCII, and their language English: the one that *kb* names, else the one that
    they tell, else that of *kb*.
    """
    descriptions = [entity.description for entity in _sample(kb)]
    if not is_latin("".join(descriptions)):
        return False
    if kb.manifest.language:
        return is_english(kb)
    told = told_by_words(descriptions) or told_by_letters(descriptions)
    return told == ENGLISH or (not told and is_english(kb))


def _has_text_vectors(kb: KnowledgeBase) -> bool:
    """Say whether there are vectors of texts that a linker takes without their name."""
    if not vectors_names(kb.home):
        return False
    with suppress(KgkitError):
        return kb.vectors(text_vectors(kb, None)).manifest.method == "text"
    return False
