"""Sentences with holes in them: a template that cannot be read takes its clause along.

    Plato ({{IPA|x}}; 428 BC) was …           Plato (428 BC) was …
    At {{x|5}}, it is …                       It is …
    Rome, founded {{x|5}}, is …               Rome is …
    Rome lies on {{x|5}} and is …             Rome lies and is …
    Rome is a town. Its area is {{x|5}}.      Rome is a town.

It goes by marks and by a few words of each language, so it may keep too little, and does not parse.
"""

import re
from functools import partial
from typing import Final

from kb_builders.wikipedia.languages import is_spaced, needs_more, verbs
from kb_builders.wikipedia.templates import HOLE as H
from kb_builders.wikipedia.templates import SOUND

__all__ = ["without_holes"]

_SEVERAL: Final = re.compile(
    rf"{H}(?:[ ,;/、，；–—-]*(?:(?:and|or|und|oder|et|ou|y|e|o|и|和|及|或|与|與) ?)?{H})+"
)
_QUOTED: Final = re.compile(rf"""["'“„«‘‚「『《〈»] ?{H} ?["'”“»’‘」』》〉«]""")
_NOTE: Final = re.compile(rf"(?<=[^\W_]){H}|(?<=[.!?…:;,)\]”»%°]){H}|{H}(?=[)\]])(?<=[^\s(（\[;,].)")
_CAPITAL: Final = r"[^\W\d_a-zß-öø-ÿа-я]"
_AFTER_SENTENCE: Final = re.compile(rf"(?<=[.!?。！？।]) ?{H}(?= ?$)|(?<=[.!?。！？।] ){H} ?(?={_CAPITAL})")
_BRACKETS: Final = re.compile(r" ?([(（\[])((?:[^()（）\[\]]|\[[^()（）\[\]]*\])*)([)）\]])")
_PARTS: Final = re.compile(r"([;；؛] ?|[,،] |，|、)")
_EXPLAINS: Final = re.compile(r"""["'“„«‘「]|lit\b|literally|meaning|translat""").match
_SENTENCES: Final = re.compile(
    r"(?<=[.!?।])(?<!\b\w\.)(?<!\b(?:St|Dr|Mr|Ms|No|Nr|ca|vs)\.)(?<!\b(?:Mrs|Chr)\.) "
    rf"(?={_CAPITAL}|[\d\"“„«(¿¡])|(?<=[。！？])"
)
_CLAUSES: Final = re.compile(r"([,;:،؛] | [–—] |[，；：]|、)")
_BRACKET_MARK: Final = re.compile(r"[()（）\[\]]")
_END: Final = re.compile(r"(?<![.!?。！？…।])[.!?。！？…।]++$")
_LAST_WORD: Final = re.compile(r"(?:^|(?<=[\s(’'-]))([^\W\d_]+[.’']?)\s*$")
_FIRST_WORD: Final = re.compile(r"\s*([^\W\d_]+[.’']?)")
_SPOKEN: Final = re.compile(
    rf"(?<![^\W\d_])([^\W\d_]++)([”»’\"]?) ?{SOUND}(?: ?{SOUND})*+(?=[^()（）]*+[)）])"
)
_INTRODUCE: Final = frozenset(
    "also american aussi ausgesprochen auch br british commonly deutsch englisch english formerly français "
    "französisch gesprochen ipa locally occasionally often pronunciation prononciation prononcé prononcée "
    "sometimes sprich uk us usually".split()
)
_SUBJECTS: Final = frozenset("it he she they there er sie es il elle ils elles on".split())
_MOST_DEPTH: Final = 4
_MOST_HOLES: Final = 50  # in a clause
_LONGEST_WORD: Final = 60


def without_holes(text: str, language: str, title: str) -> str:
    """Return a paragraph without its holes, and without the clauses that need what was there.

    Args:
        text: paragraph with `HOLE` for words that are not known.
        language: language of the text.
        title: title of the page, for a hole at the very beginning, where it is named.
    """
    if SOUND in text:
        text = _SPOKEN.sub(partial(_spoken, language), text).replace(SOUND, H)
    if H not in text:
        return text
    spaced = is_spaced(language)
    if spaced:
        text = _NOTE.sub("", text)
    text = _SEVERAL.sub(H, _QUOTED.sub(H, text))
    for _ in range(_MOST_DEPTH):
        shorter = _BRACKETS.sub(_bracket, text)
        if shorter == text:
            break
        text = shorter
    text = _SEVERAL.sub(H, _AFTER_SENTENCE.sub("", text))
    if H not in text:
        return text
    if text[0] == H:
        text = text.lstrip(f" {H}")
        if _lacks_subject(text, spaced):
            text = title + (" " if spaced and title else "") + text
    sentences = _split(_SENTENCES, text)[::2]
    read = [_sentence(sentence, language) if H in sentence else (sentence, True) for sentence in sentences]
    kept = [sentence for sentence, is_whole in read if is_whole]
    if not kept:  # better a poor sentence than none
        kept = [sentence for sentence, _ in read if sentence and not _ends_with_verb(sentence, language)][:1]
    return (" " if spaced else "").join(kept)


def _spoken(language: str, match: re.Match[str]) -> str:
    """Return a word without its pronunciation; a word that introduces one stays with it."""
    word = match[1].lower()
    return match[0] if word in needs_more(language) or word in _INTRODUCE else match[1] + match[2]


def _lacks_subject(text: str, spaced: bool) -> bool:
    """Return whether the subject is missing before a text: it goes on with a small letter, or a verb."""
    if not text:
        return False
    return text[0].islower() or text[0] in "(," if spaced else text[0] in "是为為係（，,("


def _bracket(match: re.Match[str]) -> str:
    """Return brackets without their parts that have a hole; nothing if none is left."""
    if H not in match[2]:
        return match[0]
    kept: list[str] = []
    between, dropped = "", False
    for index, part in enumerate(_PARTS.split(match[2])):
        if index % 2:
            between = part if kept else ""
        elif H in part or (dropped and _EXPLAINS(part.strip())):
            dropped = True
        elif part.strip():
            kept += [between, part]
            dropped = False
    inside = "".join(kept).strip()
    space = " " if match[0][0] == " " else ""
    return f"{space}{match[1]}{inside}{match[3]}" if inside else ""


def _split(marks: re.Pattern[str], text: str) -> list[str]:
    """Return the parts of a text, and between each two the mark that was there; brackets are not split."""
    opened: list[int] = []
    inside: list[tuple[int, int]] = []  # of the outermost brackets that are closed
    for bracket in _BRACKET_MARK.finditer(text):
        if bracket[0] in "(（[":
            opened.append(bracket.start())
        elif opened:
            start = opened.pop()
            while inside and inside[-1][0] > start:
                inside.pop()
            inside.append((start + 1, bracket.start()))
    masked, at = "", 0
    for start, end in inside:
        masked += text[at:start] + "_" * (end - start)
        at = end
    pieces: list[str] = []
    masked, at = masked + text[at:], 0
    for mark in marks.finditer(masked):
        pieces += text[at : mark.start()], mark[0]
        at = mark.end()
    return [*pieces, text[at:]]


def _sentence(sentence: str, language: str) -> tuple[str, bool]:
    """Return a sentence without its holes, and whether it is one still."""
    end = _END.search(sentence)
    stop = end[0] if end else ""
    pieces = _split(_CLAUSES, sentence[: end.start()] if end else sentence)
    clauses, marks = pieces[::2], ["", *pieces[1::2]]
    kept: list[str] = []
    has_main = False  # a clause with a verb, or the first that does not merely lead to the next
    is_whole = True
    is_dropped = False  # the clause before
    for index, (mark, clause) in enumerate(zip(marks, clauses, strict=True)):
        first = _first_word(clause)
        begins_with_verb = first in verbs(language)
        opens = index == 0 and len(clauses) > 1 and _opens(clause, language)
        if is_dropped and begins_with_verb:
            mark = " "  # what stood between commas was of the subject
        if H in clause:
            is_main = begins_with_verb or first in _SUBJECTS or not has_main
            if is_spaced(language) and not needs_more(language):
                is_main = is_main or clause.count(" ") > 2  # whether it has a verb cannot be told
            is_dropped = opens or clause.strip() == H or not is_main
            if is_dropped:
                continue
            clause, is_clause = _main_clause(clause, language)
            is_whole = is_whole and is_clause
        is_dropped = False
        has_main = has_main or not opens
        kept += [mark if kept else "", clause]
    text = "".join(kept).strip()
    if text[:1].islower() and not sentence[:1].islower():
        text = text[0].upper() + text[1:]
    return text + stop if text else "", is_whole and has_main


def _opens(clause: str, language: str) -> bool:
    """Return whether a clause only leads to the one behind it: *With an area of 5 acres, it is*."""
    if is_spaced(language):
        first = _first_word(clause)
        has_verb = not verbs(language).isdisjoint(clause.lower().split())
        return first in needs_more(language) and first not in _ARTICLES and not has_verb
    return clause[:1] in "在于於自从從据據截以至到"


_OF: Final = frozenset("of von de du des d’ d' del della di do da van".split())
_AND: Final = frozenset("and or und oder sowie et ou y e och eller oraz lub и или".split())
# Of these verbs a number is the message: *It has {{x}} inhabitants.*
_NUMBER_FOLLOWS: Final = frozenset(
    "has have had hat haben hatte hatten beträgt a ont avait avaient tiene tienen ha hanno tem têm heeft "
    "hebben har hade ma mają má mají имеет має".split()
)
_ARTICLES: Final = frozenset(
    "a an the der die das den ein eine el la los las un una le les l’ l' une il lo gli uno o os um uma "
    "het een".split()
)
_UNSPACED_NEED_MORE: Final = "在于於为為是约約由从從至到达達位 "


def _main_clause(clause: str, language: str) -> tuple[str, bool]:
    """Return a clause without its holes and the words that need them, and whether it is one still."""
    before, *others = clause.split(H)
    is_whole = bool(before.strip())
    if len(others) > _MOST_HOLES:
        return before, False
    for after in others:
        following = _first_word(after)
        nothing_follows = not after.strip()
        last = _last_word(before)
        if last and last[1].lower() in _NUMBER_FOLLOWS & verbs(language):
            is_whole = False
        if not is_spaced(language):
            if nothing_follows and before != (before := before.rstrip(_UNSPACED_NEED_MORE)):
                is_whole = False
            before += after
            continue
        if nothing_follows or following in needs_more(language) or following in verbs(language):
            length = len(before.rstrip())
            while (last := _last_word(before)) and last[1].lower() in needs_more(language):
                before = before[: last.start(1)].rstrip()
            if not before or _ends_with_verb(before, language):
                is_whole = False
            if following in _OF:  # a part of something: what it says is lost
                return before, is_whole
            if following in _AND and (len(before) < length or not is_whole):
                beyond = _first_word(after.lstrip()[len(following) :])
                if beyond not in verbs(language) and beyond not in _SUBJECTS:
                    return before, is_whole  # what it is joined to is lost
        before = f"{before.rstrip()} {after.lstrip()}".rstrip()
    return before, is_whole


def _ends_with_verb(text: str, language: str) -> bool:
    last = _last_word(_END.sub("", text))
    return last is not None and last[1].lower() in verbs(language)


def _last_word(text: str) -> re.Match[str] | None:
    return _LAST_WORD.search(text, max(0, len(text) - _LONGEST_WORD))


def _first_word(text: str) -> str:
    match = _FIRST_WORD.match(text)
    return match[1].lower() if match else ""
