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
from kgkit.linking.joint.text import NO_WORD, Text, Word
from kgkit.linking.joint.words import (
    ARTICLES,
    AUXILIARIES,
    BODIES,
    DETERMINERS,
    FUNCTION,
    MONTHS,
    PLACES,
    PRONOUNS,
    SPEECH,
    TITLES,
    WordCounts,
)

FEATURES: Final = (
    "exact", "lower", "kb lower", "kb lower, capital inside", "kb upper", "upper", "other case", "number",
    "letters 1", "letters 2", "words", "several", "length", "digit", "opens", "headline", "title case",
    "uncased", "hidden", "german", "case", "case hidden", "case single", "case single hidden",
    "common hidden", "frequency", "unknown word", "lower elsewhere", "capital elsewhere", "other bearer",
    "only hidden", "month", "month beside number", "function word", "initial before", "title before",
    "first name before",
    "capital before", "capital before opens", "name before opens", "word before opens",
    "capital before is mention", "capital behind", "common behind", "name behind",
    "capital behind is mention", "body behind", "hyphen behind", "hyphen before", "apostrophe behind",
    "apostrophe before", "possessive", "number behind", "number before", "place before", "speech behind",
    "auxiliary behind", "pronoun behind", "article before", "determiner before", "article of title",
    "lower behind", "function behind", "lower before", "comma behind", "comma before", "quoted", "bracketed",
    "alone", "in list", "ends",
)  # fmt: skip


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
) -> list[float]:
    """Return the features of a mention, in the order of `FEATURES`.

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
    inside = text.words[first:behind] or [Word(start, end, surface)]
    alphabetic = [word.text for word in inside if word.text[0].isalpha()]
    content = [word for word in alphabetic if word.lower() not in FUNCTION] or alphabetic
    single = len(alphabetic) <= 1
    kb_lower = any(spelling.islower() for spelling in spellings)
    kb_capital = any(spelling != spelling.lower() for spelling in spellings)
    exact = surface in spellings
    lower = kb_capital and not kb_lower and surface == surface.lower()
    upper = surface.isupper() and not exact and len(surface) > 1
    opens, style = begins_sentence(text.text, start), text.style(start)
    hidden = bool(opens or style or text.uncased or (upper and len(surface) > 4))
    shares = [max(-6.0, min(6.0, counts.case(word.lower()))) for word in content]
    case = (min(shares) if len(shares) > 1 else shares[0]) if shares and not german else 0.0
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
    of_title = single is False and before_lower in ARTICLES and gap_before == " "
    values = (
        exact, lower, kb_lower, kb_lower and surface[:1].isupper() and not opens,
        any(spelling.isupper() and len(spelling) > 1 for spelling in spellings), upper,
        not exact and not lower and not upper, not alphabetic, len(surface) == 1, len(surface) == 2,
        log(max(1, len(alphabetic))), not single, log(len(surface)), any(map(str.isdigit, surface)),
        opens, style == 2, style == 1, text.uncased, hidden, german,
        case, case * hidden, case * single, case * single * hidden, hidden and case > 0,
        frequency, frequency == 0,
        lower_elsewhere, single and inside_count > 0, single and surface in bearers,
        hidden and inside_count <= 0,
        month, month and (number_after or number_before), word.lower() in FUNCTION,
        initial, title, capital_before and not opens_before and case_before < -1,
        capital_before and not opens_before,
        capital_before and opens_before, capital_before and opens_before and case_before < -0.5,
        capital_before and opens_before and case_before > 1, capital_before and first - 1 in in_mentions,
        capital_after, capital_after and case_after > 0, capital_after and case_after < -1.5,
        capital_after and behind in in_mentions, near_after and after_lower in BODIES and after.capital,
        hyphen_after, hyphen_before, gap_after == "" and after.text in "'’",
        start > 1 and text.text[start - 1] in "'’" and text.text[start - 2].isalpha(),
        text.text[end : end + 2] in ("'s", "’s"),
        number_after, number_before, near_before and before_lower in PLACES,
        near_after and after_lower in SPEECH, near_after and after_lower in AUXILIARIES,
        near_after and after_lower in PRONOUNS, near_before and before_lower in ARTICLES and single,
        near_before and before_lower in DETERMINERS, of_title,
        near_after and after.text.islower() and after_lower not in FUNCTION,
        near_after and after_lower in FUNCTION,
        near_before and before.text.islower() and before_lower not in FUNCTION,
        after.text == "," and gap_after == "", before.text == ",",
        gap_before == "" and before.text in "\"“„'‘«", gap_before == "" and before.text == "(",
        "\n" in gap_before and "\n" in gap_after, before.text in ",;" and after.text in ",;.",
        after.text in ".!?;:" and gap_after == "",
    )  # fmt: skip
    return [float(value) for value in values]
