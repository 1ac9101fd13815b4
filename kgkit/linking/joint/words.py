"""Classes of words that stand beside names, and counts of words in general English.

The lists are of English and German, with the commonest of French, Spanish, Italian and Dutch; what a text in
another language has beside its names is in none of them.
"""

from math import log, log1p
from pathlib import Path
from typing import Final, NamedTuple

from kgkit import name_words
from kgkit.models.manifest import damaged
from kgkit.name_words import ADDRESSES, KIN, RANKS

FILE: Final = "words.tsv"

_MOST: Final = 10**15


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION: Final = _words(
    "the a an and or but in on at of to for from with by as is was are were be been it its he his she her "
    "they their this that these those i we you my your our not no so if when while after before then "
    "there who which what how all some any each every both such than too very can could will would shall "
    "should may might must do does did has have had into over under about between against during out up "
    "down off here now just only also more most der die das den dem des ein eine einen einem einer eines "
    "und oder aber in im am an auf von vom zu zum zur mit für bei aus nach ist war sind waren wird hat er "
    "sie es ich wir ihr nicht kein keine als wie so wenn dass sich le la les un une des du de et ou à au "
    "aux en dans sur pour par est il elle el los las una y o que del al con il lo gli uno di da e che het "
    "een van en op te"
)
ARTICLES: Final = _words("the der die das den dem des le la les l' el los las il lo gli het de")
DETERMINERS: Final = _words(
    "a an no every some any this that these those my his her our your their its each another two three "
    "four five ein eine einen einem einer eines kein keine keinen mein meine sein seine ihr ihre unser un "
    "une des du uno una een more much little many few several"
)
TITLES: Final = ADDRESSES | RANKS | KIN | {"m"}
PLACES: Final = _words(
    "in at from to near into towards toward through across around outside via leaving visited visit "
    "reached reach entered nach aus bei über bis à en dans vers desde hacia da verso naar uit"
)
SPEECH: Final = _words(
    "said says wrote writes told tells asked asks added replied answered called sang sings thinks thought "
    "knew knows came went arrived left died married smiled laughed nodded scored won who whose sagte sagt "
    "schrieb fragte meinte erklärte starb kam ging"
)
AUXILIARIES: Final = _words(
    "is was are were has have had will would can could may might must does did do isn't wasn't ist war "
    "sind hat hatte wird wurde kann est était a es era è"
)
PRONOUNS: Final = _words("i you he she it we they me him us them this that there ich du er sie es wir man")
GREETINGS: Final = _words(
    "dear dearest darling hi hello hey hallo liebe lieber liebster liebste liebes hej cher chère querida "
    "querido estimado estimada caro cara beste lieve bonjour salut hola ciao"
)
MONTHS: Final = frozenset([*name_words.MONTHS, *name_words.WEEKDAYS]) | _words(
    "januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag "
    "sonntag"
)
BODIES: Final = _words(
    "university college school institute hospital church station street road avenue square park bridge "
    "river lake bay mount mountain airport railway railroad museum club united city town county company "
    "inc ltd plc corp group bank press times news festival prize award act theory effect law syndrome "
    "disease cup league hall house building centre center society association foundation party council "
    "committee"
)

NUMBERING: Final = _words(
    "no nr nos number numbers nummer page pages p pp chapter chap room flight bus line route platform gate "
    "plan size vol volume art article section figure fig table exercise lot bag type grade class seite "
    "zimmer flug gleis linie $ € £ ¥ # № § +"
)


class WordCounts(NamedTuple):
    """Counts of words in general text, inside of sentences.

    Attributes:
        lower: counts of words that were written in lower case.
        capitalised: counts of the same words with a capital.
    """

    lower: dict[str, int]
    capitalised: dict[str, int]

    def case(self, word: str) -> float:
        """Return the logarithm of the odds that a word is written in lower case; 0 of one that is unknown."""
        return log((self.lower.get(word, 0) + 0.5) / (self.capitalised.get(word, 0) + 0.5))

    def frequency(self, word: str) -> float:
        """Return log(1 + count) of a word, whatever its case."""
        return log1p(self.lower.get(word, 0) + self.capitalised.get(word, 0))

    @classmethod
    def load(cls, folder: Path) -> "WordCounts":
        """Read the counts of a model.

        Raises:
            DamagedModel: if the file is none of words and counts.
        """
        lower, capitalised = {}, {}
        try:
            with (folder / FILE).open(encoding="utf-8") as lines:
                for line in lines:
                    word, low, high = line.split("\t")
                    lower[word], capitalised[word] = int(low), int(high)
                    if not (0 <= lower[word] <= _MOST and 0 <= capitalised[word] <= _MOST):
                        raise ValueError(f"a count of {word!r} is not from 0 to {_MOST}")
        except (OSError, ValueError) as error:
            raise damaged(folder, f"{FILE}: {error}") from error
        return cls(lower, capitalised)
