"""Mentions in scripts without spaces: words that a segmentation finds, and characters beside a name.

A segmentation that knows no name of the KB says where words begin and end: 南京市长 江大桥 is not
南京市 长江大桥.
Chinese is cut by jieba, where it is installed; its dictionary has frequencies and parts of speech.
"""

import re
from bisect import bisect_left
from functools import lru_cache
from math import log1p
from typing import Final

from kgkit.candidates.segment import Segments, jieba_segments, jieba_words
from kgkit.errors import MissingExtra

FEATURES: Final = (
    "unspaced", "segmented", "crosses word before", "crosses word behind", "whole word", "one character",
    "word count", "person word", "place word", "organisation word", "name word", "noun", "verb", "adjective",
    "adverb", "place character before", "person character before", "speech words behind",
    "person words behind", "place character behind", "body words behind", "list before", "list behind",
    "opens unspaced", "quoted unspaced",
)  # fmt: skip

UNSPACED: Final = re.compile("[\u2e80-\u9fff\uf900-\ufaff]+")
"""Characters of scripts that set no spaces."""
_NONE: Final = [0.0] * len(FEATURES)
_PLACE_BEFORE: Final = frozenset("在去到从往于赴自离抵回")
_PERSON_BEFORE: Final = frozenset("老小叫由跟给让请被对")
_SPEECH: Final = tuple("说 表示 认为 指出 写道 告诉 回答 先生 女士 教授 老师 的儿 的女 获 曾 生于".split())
_PERSON: Final = tuple(
    "先生 女士 小姐 教授 老师 老師 同志 医生 醫生 主任 经理 經理 市长 市長 总理 總理 主席 导演 導演 师傅 "
    "師傅 さん 氏 様 君".split()
)
_PLACE: Final = frozenset("市省县縣県区區镇鎮町乡鄉村路街桥橋站駅山河湖江港岛島州郡府寺庙廟塔楼樓")
_BODY: Final = tuple(
    "大学 大學 学院 學院 中学 中學 小学 小學 医院 醫院 病院 公司 银行 銀行 集团 集團 机场 機場 空港 "
    "大桥 大橋 酒店 饭店 飯店 公园 公園 广场 廣場 体育 體育 队 隊 厂 廠 报 報 奖 獎 节 節 杯".split()
)
_JOINING: Final = frozenset("、和与及跟，,/")
_OPENING: Final = frozenset('。！？!?\n“"「《；;：:')
_KINDS: Final = {"nr": 0, "ns": 1, "nt": 2, "nz": 3, "n": 4, "v": 5, "a": 6, "d": 7}


def is_unspaced(text: str) -> bool:
    """Say whether a span has a character of a script that sets no spaces."""
    return UNSPACED.search(text) is not None


def unspaced_features(text: str, start: int, end: int, bounds: frozenset[int] | None) -> list[float]:
    """Return the features of a mention, in the order of `FEATURES`; zeros for one in a script with spaces.

    Args:
        text: text of the document.
        start, end: span of the mention.
        bounds: where words begin and end; None if that is not known.
    """
    surface = text[start:end]
    if not is_unspaced(surface):
        return _NONE
    count, tag = _word(surface)
    kinds = [0.0] * 8
    kind = _KINDS.get(tag[:2], _KINDS.get(tag[:1]))
    if kind is not None:
        kinds[kind] = 1.0
    whole = (
        bounds is not None
        and start in bounds
        and end in bounds
        and not any(inside in bounds for inside in range(start + 1, end))
    )
    before, behind = text[start - 1 : start] if start else "\n", text[end : end + 2]
    return [
        1.0, float(bounds is not None), float(bounds is not None and start not in bounds),
        float(bounds is not None and end not in bounds), float(whole), float(end - start == 1), log1p(count),
        *kinds, float(before in _PLACE_BEFORE), float(before in _PERSON_BEFORE),
        float(behind.startswith(_SPEECH)), float(behind.startswith(_PERSON)),
        float(behind[:1] in _PLACE), float(behind.startswith(_BODY)),
        float(before in _JOINING), float(behind[:1] in _JOINING), float(before in _OPENING),
        float(before in "“「《\""),
    ]  # fmt: skip


def word_bounds(text: str) -> frozenset[int] | None:
    """Return where words begin and end in a text of a script without spaces; None if nothing cuts it."""
    if not is_unspaced(text) or (segments := _segments()) is None:
        return None
    return frozenset(bound for span in segments(text) for bound in span)


@lru_cache(1)
def _segments() -> Segments | None:
    """Return the function that cuts texts, without words of a KB; None if jieba is not installed."""
    try:
        return jieba_segments([])
    except MissingExtra:
        return None


@lru_cache(4_096)
def _word(surface: str) -> tuple[int, str]:
    """Return the count and the part of speech that jieba has of a word; 0 and nothing if it has none."""
    words = _words()
    key = f"{surface} "
    at = bisect_left(words, key)
    if at == len(words) or not words[at].startswith(key):
        return 0, ""
    _, count, tag = words[at].split()
    return int(count), tag


@lru_cache(1)
def _words() -> list[str]:
    """Return the lines of jieba's dictionary in order; none if it is not installed."""
    try:
        return sorted(jieba_words())
    except MissingExtra:
        return []
