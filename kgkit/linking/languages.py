"""The language of short texts, such as the names and descriptions of a knowledge base.

Function words tell it: those of one language have to be clearly more than those of any other, which are many
here for that reason. A neighbour that is not among them may be taken for one that is: Serbian for Croatian.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

ENGLISH: Final = "en"
UNDETERMINED: Final = "und"
"""The BCP 47 tag of a language that is not English, nor clear."""

_FUNCTION_WORDS: Final = {
    language: frozenset(words.split())
    for language, words in {
        "en": "a an and are as at by for from has have he her his in is it its of on or she that the their "
        "to was were which who whose with",
        "de": "als am an auf aus bei beim das dem den der des die durch ein eine einem einen einer eines er "
        "für gegen hat im in ist mit nach nicht oder seit sich sie sind um und unter vom von vor war "
        "wird wurde zu zum zur über",
        "fr": "au aux avec ce cette d dans de des du elle en est et il l la le les leur ou où par pas pour "
        "qu que qui sa se ses son sous sur un une à été",
        "es": "a al como con de del desde donde e el en entre era es esta fue la las lo los más no o para "
        "por que se sin sobre su sus un una y",
        "pt": "a ao aos as com como da das de do dos e em entre era esta foi mais na nas no nos num numa "
        "não o os ou para pela pelo por que se sem seu sua um uma à às é",
        "gl": "a ao aos as como con cun cunha da das de do dos e en entre era esta foi máis na nas no non "
        "nos nun nunha o os ou para pola polo por que se sen seu súa un unha á é",
        "ca": "a al als amb com d de del dels des el els en entre era es fou ha i l la les més no o on pel "
        "per perquè que s se seu seva són un una va és",
        "it": "a ad ai al alla alle anche che con d da dal dalla degli dei del dell della delle di dove e "
        "ed era fra gli i il in l la le lo nel nell nella non o per più si sono su sua sui sul sulla "
        "suo tra un una uno è",
        "ro": "a al ale ca care ce cu de din după este fi fost la lui mai nu o pe pentru prin sa sau se "
        "spre un unde unei unui în între și",
        "nl": "aan als bij dat de den der die dit door een en haar heeft het hij hun in is met na naar niet "
        "of om onder ook op over te ten ter tot tussen uit van voor waar was werd wordt ze zijn",
        "sv": "att av bakom den det efter eller en ett från för han har hon i inte med mellan mot när och "
        "om på sin som till under ur var vid är över",
        "da": "af at bag blev den der det efter eller en er et for fra han har hun hvor i ikke med mellem "
        "mod når og om over på sin som til ud under var ved",
        "nb": "av bak ble den der det eller en er et etter for fra han har hun hvor i ikke med mellom mot "
        "når og om over på sin som til under ut var ved å",
        "fi": "ei eli että hän ja jo joiden joita joka jolla jonka jossa josta jota kanssa kuin kun lähellä "
        "mukaan myös oli olivat ollut on ovat se sekä sen tai takana tämä vieressä vuoden vuodesta "
        "vuonna",
        "et": "aasta aastal ehk ei et ja juures ka kes kui kus küla mille millel mis need nii ning oli "
        "olnud on peal see selle siis taga või ääres",
        "hu": "a ahol aki amely az egy hogy is ki között meg mellett mely mint mögött nem szerint után vagy "
        "van volt által és",
        "pl": "bez by być był była było do i jako jego jej jest już która które którego której który ku lub "
        "między na nad nie o od oraz po pod przed przez przy się są to u w we z za ze że",
        "cs": "a aby ale až bez byl byla bylo být co do i jako jeho jejich její jsou k kde ke která které "
        "kterého který mezi na nad nebo o od po pod pro před při s se si u v ve z za ze že",
        "sk": "a aj ako alebo až bez bol bola bolo byť do i je jeho jej k kde ktorá ktoré ktorého ktorý "
        "medzi na nad o od po pod pre pred pri s sa si so sú u v vo z za zo že",
        "hr": "a bez bila bilo bio do i ili ima iz iza je kao kod koja koje kojem koji kojoj kraj na nad "
        "nakon o od po pod pokraj pored pri s sa se su u uz za što",
        "tr": "bir bu da daha de en gibi göre ile ilk için kadar olan olarak olduğu sonra ve veya yakınında "
        "yanında yılında çok önce üzerinde",
        "la": "a ab ac ad annis anno apud atque aut cum de e est et ex fuit in inter nec ob per post pro "
        "quae quam qui quo quod quos sed sine sive sub sunt super ubi vel",
        "id": "adalah atau dan dari dengan di dua ini itu ke oleh pada para sebagai sebuah seorang tidak "
        "untuk yang",
    }.items()
}
"""Words that join others, by language."""
_LEAST_WORDS: Final = 2  # different ones, of several letters
_CLEAR: Final = 2  # least ratio of words that only one of two languages has
_WORD: Final = re.compile(r"\b(?!(?<=['’])s\b)[^\W\d_]+")
_SHARE: Final = 0.04  # least share of its words in a text, beyond those of English
_UMLAUTS: Final = re.compile("[äöüß]")
_GERMAN_LETTERS: Final = 0.9  # least share of them among the letters of German that are not ASCII
_LEAST_UMLAUTS: Final = 0.04  # share of the labels of German; of towns of all the world 0.02 have some
_ONE_UMLAUT: Final = (
    5  # texts, at most, of which a single one with umlauts tells: English has a *Müller*, too
)
_FEW: Final = 3  # words of names in another language
_LATIN: Final = 0.9  # least share of ASCII among the letters of descriptions that an English encoder reads


def told_by_words(texts: Sequence[str]) -> str:
    """Return the language that function words tell as a BCP 47 tag.

    It is `und` where they are of another language than English, but not clear of which, and "" where there
    are too few. Those with a capital are left out, which initials and parts of names have.
    """
    words = Counter(_WORD.findall(" ".join(texts)))
    counts = {name: sum(words[word] for word in own) for name, own in _FUNCTION_WORDS.items()}
    english = counts.pop(ENGLISH)
    likely = max(counts, key=counts.__getitem__)
    if counts[likely] - english <= max(_FEW, _SHARE * words.total()):
        return ENGLISH if english > counts[likely] else ""
    own = _FUNCTION_WORDS[likely]
    is_clear = sum(len(word) > 1 and word in own for word in words) >= _LEAST_WORDS
    for name in counts.keys() - {likely}:
        others = _FUNCTION_WORDS[name]
        more, less = (sum(words[word] for word in each) for each in (own - others, others - own))
        is_clear &= more >= _CLEAR * max(0.5, less)
    return likely if is_clear else UNDETERMINED


def told_by_letters(texts: Sequence[str]) -> str:
    """Return the language that letters tell: `de` of umlauts and hardly others beyond ASCII, else `und`.

    "" where too few texts have umlauts to tell anything.
    """
    texts = [text.lower() for text in texts if text]
    umlauts = sum(_UMLAUTS.search(text) is not None for text in texts)
    if not umlauts or umlauts < _LEAST_UMLAUTS * len(texts) or (umlauts == 1 and len(texts) > _ONE_UMLAUT):
        return ""
    others = [letter for letter in "".join(texts) if letter.isalpha() and not letter.isascii()]
    german = [letter for letter in others if _UMLAUTS.match(letter)]
    is_german = len(german) >= _GERMAN_LETTERS * len(others) and not {*german} <= {"ä", "ö"}
    return "de" if is_german else UNDETERMINED


def is_latin(text: str) -> bool:
    """Say whether a text has letters, and nine of ten are ASCII."""
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and sum(map(str.isascii, letters)) >= _LATIN * len(letters)
