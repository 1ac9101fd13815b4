"""Features of a mention by its spelling and the words beside it: whether it is a name, and of one thing.

spelling      how the text writes the surface beside how the KB does, and beside how general English writes
              its words; numbers, single letters, months
position      first in a sentence, in a headline, in a text without capitals
neighbours    words before and behind it: titles, articles, numbers, other capitals, hyphens
document      the word in lower case, or with a capital inside of a sentence, elsewhere in the text
"""

from collections.abc import Container
from math import log
from typing import Final

from kgkit.candidates.spelling import begins_sentence
from kgkit.linking.joint.text import NO_WORD, Text
from kgkit.linking.joint.words import (
    ARTICLES,
    AUXILIARIES,
    BODIES,
    DETERMINERS,
    FUNCTION,
    GREETINGS,
    MONTHS,
    NUMBERING,
    PLACES,
    PRONOUNS,
    SPEECH,
    TITLES,
    WordCounts,
)


def mention_features(
    text: Text,
    start: int,
    end: int,
    spellings: frozenset[str],
    counts: WordCounts,
    in_mentions: Container[int],
    bearers: frozenset[str],
    *,
    german: bool,
) -> dict[str, float]:
    """Return the features of a mention by their names, the same ones in the same order for each.

    Args:
        text: its text.
        start, end: its span.
        spellings: the KB's spellings of its surface.
        counts: of words in general text.
        in_mentions: words of the text, by index, that are in mentions.
        bearers: words that stand behind a first name in the text, and not in a name of the KB.
        german: whether the language writes all nouns with capitals.
    """
    surface = text.text[start:end]
    first, behind = text.range(start, end)
    inside = [text.text[max(start, word.start) : min(end, word.end)] for word in text.words[first:behind]]
    alphabetic = [word for word in inside or [surface] if word[0].isalpha()]
    content = [word for word in alphabetic if word.lower() not in FUNCTION] or alphabetic
    single = len(alphabetic) <= 1
    exact, bare = surface in spellings, _without_article(surface)
    names = {_without_article(spelling) for spelling in spellings}
    kb_lower = any(map(str.islower, names))
    kb_capital = any(name != name.lower() for name in names)
    lower = kb_capital and not kb_lower and bare == bare.lower()
    upper = surface.isupper() and not exact and len(surface) > 1
    opens, style = begins_sentence(text.text, start), text.style(start)
    hidden = bool(opens or style or text.uncased or (upper and len(surface) > 4))
    shares = [max(-6.0, min(6.0, counts.case(word.lower()))) for word in content]
    acronym = exact and surface.isupper() and len(surface) > 1
    case = (min(shares) if len(shares) > 1 else shares[0]) if shares and not (german or acronym) else 0.0
    frequency = min((counts.frequency(word.lower()) for word in content), default=0.0)
    word = content[0] if content else surface
    lower_elsewhere = single and text.lower[word.lower()] > 0 and surface[:1].isupper()
    inside_count = text.inside[word] - (not opens and word[0].isupper())
    month = single and word.lower() in MONTHS

    before, after = text.word(first - 1), text.word(behind)
    gap_before, gap_after = text.gap(first - 1) if first else "\n", text.gap(behind - 1)
    stop = before.text == "." and gap_before == " " and text.gap(first - 2) == ""
    abbreviation = text.word(first - 2) if stop and len(text.word(first - 2).text) <= 5 else NO_WORD
    initial = abbreviation.capital and len(abbreviation.text) == 1
    near_before = gap_before in (" ", "") and before.text[0].isalnum()
    near_after = gap_after == " " and after.text[0].isalnum()
    title = (near_before and before.text.lower() in TITLES) or abbreviation.text.lower() in TITLES
    opens_before = (
        begins_sentence(text.text, before.start) if before is not NO_WORD and before.capital else False
    )
    capital_before = (
        near_before and gap_before == " " and before.capital and before.text.lower() not in FUNCTION
        and not title and not style and not (german and counts.case(before.text.lower()) >= 0)
    )  # fmt: skip
    case_before = counts.case(before.text.lower()) if capital_before else 0.0
    capital_after = near_after and after.capital and after.text.lower() not in FUNCTION and not style
    case_after = counts.case(after.text.lower()) if capital_after else 0.0
    before_lower, after_lower = before.text.lower(), after.text.lower()
    hyphen_after = end < len(text.text) - 1 and text.text[end] in "-–" and text.text[end + 1].isalnum()
    hyphen_before = start > 1 and text.text[start - 1] in "-–" and text.text[start - 2].isalnum()
    number_after = near_after and after.text[0].isdigit()
    number_before = near_before and before.text[0].isdigit()
    numbering = (near_before and before_lower in NUMBERING) or abbreviation.text.lower() in NUMBERING
    body_before = before_lower == "of" and text.word(first - 2).capital
    of_title = single is False and before_lower in ARTICLES and gap_before == " "
    return {
        "exact": exact,
        "lower": lower,
        "kb lower": kb_lower,
        "kb lower, capital inside": kb_lower and surface[:1].isupper() and not opens,
        "kb upper": any(spelling.isupper() and len(spelling) > 1 for spelling in spellings),
        "upper": upper,
        "other case": not exact and not lower and not upper,
        "number": not alphabetic,
        "letters 1": len(surface) == 1,
        "letters 2": len(surface) == 2,
        "words": log(max(1, len(alphabetic))),
        "several": not single,
        "length": log(len(surface)),
        "digit": any(map(str.isdigit, surface)),
        "opens": opens,
        "headline": style == 2,
        "title case": style == 1,
        "uncased": text.uncased,
        "hidden": hidden,
        "german": german,
        "case": case,
        "case hidden": case * hidden,
        "case single": case * single,
        "case single hidden": case * single * hidden,
        "common hidden": hidden and case > 0,
        "frequency": frequency,
        "unknown word": frequency == 0,
        "lower elsewhere": lower_elsewhere,
        "capital elsewhere": single and inside_count > 0,
        "other bearer": single and surface in bearers,
        "only hidden": hidden and inside_count <= 0,
        "month": month,
        "month beside number": month and (number_after or number_before),
        "function word": word.lower() in FUNCTION and not acronym,
        "initial before": initial,
        "title before": title,
        "first name before": capital_before and not opens_before and case_before < -1,
        "capital before": capital_before and not opens_before,
        "capital before opens": capital_before and opens_before,
        "name before opens": capital_before and opens_before and case_before < -0.5,
        "word before opens": capital_before and opens_before and case_before > 1,
        "capital before is mention": capital_before and first - 1 in in_mentions,
        "capital behind": capital_after,
        "common behind": capital_after and case_after > 0,
        "name behind": capital_after and case_after < -1.5,
        "capital behind is mention": capital_after and behind in in_mentions,
        "body behind": near_after and after_lower in BODIES and after.capital,
        "hyphen behind": hyphen_after,
        "hyphen before": hyphen_before,
        "apostrophe behind": gap_after == "" and after.text in "'’",
        "apostrophe before": start > 1 and text.text[start - 1] in "'’" and text.text[start - 2].isalpha(),
        "possessive": text.text[end : end + 2] in ("'s", "’s"),
        "number behind": number_after,
        "number before": number_before,
        "numbering before": numbering,
        "sign before": gap_before == "" and before.text in NUMBERING,
        "sign behind": gap_after == "" and after.text in "%°$€£",
        "body of before": body_before and text.word(first - 2).text.lower() in BODIES,
        "capital of before": body_before,
        "of behind": near_after and after_lower == "of" and text.word(behind + 1).capital,
        "place before": near_before and before_lower in PLACES,
        "speech behind": near_after and after_lower in SPEECH,
        "auxiliary behind": near_after and after_lower in AUXILIARIES,
        "pronoun behind": near_after and after_lower in PRONOUNS,
        "article before": near_before and before_lower in ARTICLES and single,
        "determiner before": near_before and before_lower in DETERMINERS,
        "article of title": of_title,
        "lower behind": near_after and after.text.islower() and after_lower not in FUNCTION,
        "function behind": near_after and after_lower in FUNCTION,
        "lower before": near_before and before.text.islower() and before_lower not in FUNCTION,
        "comma behind": after.text == "," and gap_after == "",
        "comma before": before.text == ",",
        "quoted": gap_before == "" and before.text in "\"“„'‘«",
        "bracketed": gap_before == "" and before.text == "(",
        "greeted": near_before and before_lower in GREETINGS,
        "signed": "\n" in gap_before and "\n" in gap_after and before.text == ",",
        "alone": "\n" in gap_before and "\n" in gap_after,
        "in list": before.text in ",;" and after.text in ",;.",
        "ends": after.text in ".!?;:" and gap_after == "",
    }


def _without_article(name: str) -> str:
    first, _, rest = name.partition(" ")
    return rest if rest and first.lower() in ARTICLES else name


_NOTHING: Final = mention_features(
    Text("A"), 0, 1, frozenset("A"), WordCounts({}, {}), frozenset(), frozenset(), german=False
)
FEATURES: Final = tuple(_NOTHING)
