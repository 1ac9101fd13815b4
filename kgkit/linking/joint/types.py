"""Sorts of entities, by a knowledge base's own words for their kinds and types.

T  sorts
"""

import re
from functools import lru_cache
from typing import Final

import numpy as np

from kgkit.types import Entity, Matrix

SORTS: Final = ("person", "place", "organisation", "work", "artefact", "living", "other")

_WORDS: Final = (
    (
        "person people human player politician actor painter composer saint writer figure sailor explorer "
        "scientist singer artist director soldier member staff character mensch politiker spieler persona "
        "personne persoon osoba 人物 人"
    ),
    (
        "place city town village country state region river county mountain island lake street district hill "
        "farm church station stadium ground port parish location site valley building castle pub sea square "
        "ort stadt land gemeinde fluss see berg gewässer stadtteil lieu ville luogo lugar ciudad plaats "
        "miejsce 地点 地名"
    ),
    (
        "company organisation organization firm club team bank agency body party band institution school "
        "university ministry league union newspaper publisher customer maker regiment group ngo brand firma "
        "verein partei behörde marke entreprise empresa azienda 公司 机构 企业 学校"
    ),
    (
        "work film book song album novel play painting magazine game series title opera musical document law "
        "treaty werk buch lied zeitung œuvre obra opera 作品"
    ),
    (
        "product software car model tool ship instrument object vessel machine garment device make produkt "
        "gerät schiff 产品"
    ),
    (
        "plant animal bird species food dish disease fish tree fruit mineral rock ingredient pflanze "
        "tier gericht 菜 食物"
    ),
    "concept term event method symptom unit battle war field begriff ereignis",
)
_SORT_OF: Final = {word: sort for sort, words in enumerate(_WORDS) for word in words.split()}
_WORD: Final = re.compile(r"\w+")


@lru_cache(1_024)
def named_sort(kind: str) -> Matrix:
    """Return (T,): 1 for the sort that a kind's name tells; zeros if it tells none."""
    result = np.zeros(len(SORTS), np.float32)
    for word in _WORD.findall(kind.lower()):
        for form in (word, word.removesuffix("s")):
            if (sort := _SORT_OF.get(form)) is not None:
                result[sort] = 1
                return result
    return result


def kind_of(entity: Entity) -> str:
    """Return the KB's own word for an entity's kind: its first type, else its kind; it may be empty."""
    return next(iter(entity.types), entity.kind)
