"""A dump in the format of CN-DBpedia, of any length: `python -m benchmarks.cn_dbpedia_dump OUT --lines N`.

Writes `OUT/baike_triples.txt` of N lines, to the end of the last subject, and `OUT/m2e.txt`, one mention for
sixty lines. The same lines and seed give the same bytes, and nothing is kept in memory.

What is known of the dump is imitated: seven lines to a subject in the mean, by a power law, in the order
of their attributes; 6 % of the lines cards with links and two paragraphs, 30 % tags; a line for each value.
One subject in twelve has a bracket and shares its name with four others. One value in four is a
subject, the first ones most often; half of those are marked as links. There is another attribute for
every 172 lines, and most are rare. The words are made of characters drawn at random and mean nothing.
"""

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

LINES_OF_SUBJECT: Final = 6.9
LINES_OF_MENTION: Final = 60
LINES_OF_ATTRIBUTE: Final = 172

_CHARACTERS: Final = [chr(0x4E00 + 7 * index) for index in range(512)]
_ENDINGS: Final = ("", "", "", "村", "公司", "学院", "传", "路")
_SENSES: Final = ("诗人", "中国女子网球运动员", "2004年发行的歌曲", "电视剧", "湖北省武汉市下辖村")
_TAGS: Final = tuple(
    "人物 地点 书籍 小说 音乐 组织机构 科技 历史 文化 自然 影视作品 体育 社会 学校 医学 行政区划".split()
)
_ATTRIBUTES: Final = tuple(
    "作者 出版社 国籍 出生地 职业 所属地区 类型 毕业院校 代表作品 导演 主演 地理位置 制片地区".split()
)
_PLAIN: Final = tuple("出版时间 页数 定价 出生日期 面积 人口 装帧 开本 成立时间 邮政区码".split())
_NAMES: Final = ("中文名", "外文名", "别名")
_BLOCK: Final = 1 << 14  # subjects at a time


def name(number: int) -> str:
    """Return the name with a number; no two are alike."""
    mixed = number * 0x2545F49 & 0x7FFFFFF  # 27 bits, one to one: the factor is odd
    first, second, third = mixed >> 18, mixed >> 9 & 511, mixed & 511
    return _CHARACTERS[first] + _CHARACTERS[second] + _CHARACTERS[third] + _ENDINGS[number % len(_ENDINGS)]


def key(number: int) -> str:
    """Return the key of a subject: of 64, the first five have one name and a bracket each."""
    index = number % 64
    if index < len(_SENSES):
        return f"{name(number - index)}（{_SENSES[index]}）"
    return name(number)


def triples(lines: int, seed: int) -> Iterator[str]:
    """Yield at least so many lines of triples, without their ends."""
    subjects = max(1, round(lines / LINES_OF_SUBJECT))
    attributes = max(len(_ATTRIBUTES), lines // LINES_OF_ATTRIBUTE)
    written = number = 0
    while written < lines:
        draw = np.random.default_rng([seed, number])
        # One and a Pareto tail: most subjects have a few lines, some have hundreds.
        sizes = np.minimum(1 + 4.7 * draw.pareto(1.7, _BLOCK), 600).astype(int).tolist()
        for size in sizes:
            yield from sorted(_subject(key(number), size, subjects, attributes, draw))
            written += size
            number += 1
            if written >= lines:
                return


def _subject(
    subject: str, size: int, subjects: int, attributes: int, draw: np.random.Generator
) -> Iterator[str]:
    chances = draw.random(5 * size).tolist()
    for chance, what, other, link, text in zip(*(iter(chances),) * 5, strict=True):
        if chance < 0.06:
            first = f"{subject}，{_text(text, 40)}<a>{_text(other, 3)}</a>。"
            yield f"{subject}\tBaiduCARD\t{first}|||{_text(what, 30)}。"
        elif chance < 0.36:
            yield f"{subject}\tBaiduTAG\t{_TAGS[int(16 * what * what)]}"
        elif chance < 0.42:
            yield f"{subject}\t{_NAMES[int(3 * what)]}\t{_text(text, 4)}"
        elif chance < 0.60:
            value = key(int(subjects * other**3))
            yield f"{subject}\t{_attribute(int(attributes * what**12))}\t" + (
                f"<a>{value}</a>" if link < 0.5 else value
            )
        elif chance < 0.80:
            yield f"{subject}\t{_attribute(int(attributes * what**12))}\t{_text(text, 3 + int(8 * other))}"
        elif chance < 0.9:
            yield f"{subject}\t{_PLAIN[int(10 * what)]}\t{int(1000 * text * other)}"
        else:
            yield f"{subject}\t{_PLAIN[int(10 * what)]}\t{1700 + int(320 * text)}年{1 + int(12 * other)}月"


def _attribute(number: int) -> str:
    """Return the attribute with a number."""
    if number < len(_ATTRIBUTES):
        return _ATTRIBUTES[number]
    return _CHARACTERS[number >> 9 & 511] + _CHARACTERS[number & 511]


def _text(chance: float, length: int) -> str:
    """Return a text of so many characters; which one, *chance* says."""
    state = int(chance * 0x7FFFFFFF)
    characters = []
    for _ in range(length):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        characters.append(_CHARACTERS[state >> 22])
    return "".join(characters)


def mentions(lines: int, seed: int) -> Iterator[str]:
    """Yield so many lines of mentions: bare names of bracketed subjects, and short forms of others."""
    draw = np.random.default_rng([seed, 1 << 40])
    subjects = max(1, round(lines * LINES_OF_MENTION / LINES_OF_SUBJECT))
    for chance, short in draw.random((lines, 2)):
        entity = key(int(subjects * chance))
        mention = entity.partition("（")[0]
        yield f"{mention[:2] if short < 0.3 else mention}\t{entity}"


def write(folder: Path, lines: int, seed: int = 1) -> None:
    """Write a dump into *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "baike_triples.txt": triples(lines, seed),
        "m2e.txt": mentions(max(1, lines // LINES_OF_MENTION), seed),
    }
    for file, texts in files.items():
        with (folder / file).open("w", encoding="utf-8", newline="\n") as out:
            while some := list(islice(texts, 10_000)):
                out.write("\n".join(some) + "\n")


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description="A dump in the format of CN-DBpedia.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    write(chosen.folder, chosen.lines, chosen.seed)


if __name__ == "__main__":
    main()
