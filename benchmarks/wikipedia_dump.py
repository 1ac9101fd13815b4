"""A dump in the format of MediaWiki, of any length: `python -m benchmarks.wikipedia_dump OUT --articles N`.

Writes `OUT/madewiki-20260101-pages-articles.xml`, or several files of bz2 in streams of a hundred pages, and
`OUT/madewiki-20260101-page_props.sql`. The same articles and seed give the same bytes; nothing is kept in
memory but the filler.

Beside an article stand 1.4 redirects, and now and then a page of a category or a list of meanings. Articles
have 12 kB in the mean, of a log-normal distribution, with a link every 400 bytes, templates, tables, notes
and comments. Links lead to articles of the dump, the first ones most often, by a power law; one in ten by a
redirect, one in fifty nowhere. Every other link has its title as text, the others a part of it, a plural, a
word. One article in thirteen has a bracket and shares its name with four others. The words are made of
syllables and mean nothing.
"""

import argparse
import bz2
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.pairs_source import ranks

BYTES_OF_LINK: Final = 400  # of an article, for each of its links
MEAN: Final = 12_000  # bytes of wikitext of an article
SPREAD: Final = 1.0  # of their logarithm
POWER: Final = 4  # of the ranks of what is linked
PAGES_OF_STREAM: Final = 100
STEM: Final = "madewiki-20260101"

_BLOCK: Final = 1_024  # articles drawn at once
_CHUNKS: Final = 20_000  # of filler
_BITS: Final = 27  # of the number of an article
_ENDINGS: Final = ("", "", "", " River", " &amp; Sons", " – Part One", " Station", "")
_SENSES: Final = ("(novel)", "(footballer, born 1982)", "(2004 song)", "(TV series)", "(district)")
_GROUP: Final = 64  # articles, of which as many share a name as there are senses
_NAMESPACES: Final = {
    -2: "Media", -1: "Special", 1: "Talk", 2: "User", 4: "Wikipedia", 6: "File", 8: "MediaWiki",
    10: "Template", 12: "Help", 14: "Category", 100: "Portal", 828: "Module",
}  # fmt: skip


class Page(NamedTuple):
    """A page on its way into the file; texts are escaped as XML wants them."""

    title: str
    text: str
    namespace: int = 0
    redirect: str = ""


@cache
def words() -> list[str]:
    """Return the vocabulary: 16,384 different words of two or three syllables, short ones first."""
    syllables = [first + vowel for first, vowel in product("bdfgklmnprstvz", "aeiou")]
    pairs = ["".join(pair) for pair in product(syllables, syllables)]
    return pairs + [
        f"{pairs[index * 13 % len(pairs)]}{syllables[index // len(pairs)]}n"
        for index in range(16_384 - len(pairs))
    ]


def name(number: int) -> str:
    """Return the name with a number below 2 ** 27; no two are alike."""
    mixed = number * 0x2545F49 & (1 << _BITS) - 1  # one to one: the factor is odd
    first, second = words()[mixed >> 13], words()[mixed & 8191]
    if mixed & 7 == 0:
        first = first.replace("e", "é")
    return f"{first.capitalize()} {second}"


def title(number: int) -> str:
    """Return the title of an article: of 64, the first five have one name and a bracket each."""
    index = number % _GROUP
    if index < len(_SENSES):
        return f"{name(number - index)} {_SENSES[index]}"
    return name(number) + _ENDINGS[index % len(_ENDINGS)]


def redirects(number: int) -> list[str]:
    """Return the titles that lead to an article: 1.4 in the mean, one at least."""
    page_title = title(number)
    if number % 5 < 3:
        return [f"The {page_title}"]
    return [f"The {page_title}", f"{page_title} in history"]


def pages(articles: int, first: int, stop: int, seed: int) -> Iterator[Page]:
    """Yield the pages of articles *first* to *stop*, of so many *articles* in all."""
    for block in range(first - first % _BLOCK, stop, _BLOCK):
        draw = np.random.default_rng([seed, block])
        sizes = draw.lognormal(np.log(MEAN) - SPREAD**2 / 2, SPREAD, _BLOCK)
        links = np.clip(sizes / BYTES_OF_LINK, 1, 1_000).astype(int)
        total = int(links.sum())
        rows = zip(
            ranks(draw, total, articles, POWER).tolist(),
            draw.integers(_CHUNKS, size=total).tolist(),
            draw.random(total).tolist(),
            draw.random(total).tolist(),
            strict=True,
        )
        for number, size in enumerate(links.tolist(), block):
            drawn = list(islice(rows, size))
            if first <= number < stop:
                yield Page(title(number), _article(number, drawn, articles))
                yield from _other_pages(number, articles)


def _article(number: int, drawn: list[tuple[int, int, float, float]], articles: int) -> str:
    chunks = filler()
    bare = title(number).partition(" (")[0]
    first = (
        f"{{{{Short description|{words()[number % 4_000]} of {words()[number % 977]}}}}}\n"
        f"{{{{Infobox place\n| name = {bare}\n| image = {bare}.jpg\n| population = {number * 37 % 99_991}\n"
        f"| area_km2 = {{{{convert|{number % 911}|km2}}}}\n}}}}\n'''{bare}''' is a "
    )
    pieces = [first]
    for target, chunk, shape, text in drawn:
        pieces.append(_link(target, shape, text, articles))
        pieces.append(chunks[chunk])
    pieces.append("\n\n== References ==\n{{Reflist|30em}}\n\n")
    pieces += [
        f"[[Category:{words()[(number * factor + 11) % 2_003].capitalize()} places]]\n"
        for factor in (1, 3, 7)
    ]
    return "".join(pieces)


def _link(target: int, shape: float, text: float, articles: int) -> str:
    page_title = title(target)
    if shape < 0.5:
        return f"[[{page_title}]]"
    if shape < 0.75:
        return f"[[{page_title}|{_anchor(page_title, text)}]]"
    if shape < 0.8:
        return (
            f"[[{page_title[0].lower()}{page_title[1:]}]]s"
            if text < 0.5
            else f"[[{page_title.replace(' ', '_')}|{page_title}]]"
        )
    if shape < 0.9:
        by = redirects(target)[-1 if text < 0.3 else 0]
        return f"[[{by}]]" if text < 0.5 else f"[[{by}|{_anchor(page_title, text)}]]"
    if shape < 0.94:
        return f"[[{page_title}#History|{_anchor(page_title, text)}]]"
    if shape < 0.96:
        return f"[[{title((articles + target) % (1 << _BITS))}]]"  # to nowhere
    if shape < 0.98:
        return f"[[File:{page_title}.jpg|thumb|left|The [[{page_title}]] in winter]] "
    return f"[[:fr:{page_title}|{page_title}]]"


def _anchor(page_title: str, chance: float) -> str:
    bare = page_title.partition(" (")[0]
    if chance < 0.4:
        return bare
    first, _, second = bare.partition(" ")
    if chance < 0.6:
        return first
    if chance < 0.75:
        return second
    if chance < 0.85:
        return f"''{bare}''"
    return f"{words()[int(chance * 4_900)]} {second}"


def _other_pages(number: int, articles: int) -> Iterator[Page]:
    """Yield the pages that are no articles."""
    # Redirects come before or long after what they lead to, as they are made.
    other = (number * 3 + 1) % articles if articles % 3 else number
    for index, source in enumerate(redirects(other)):
        leads_to = redirects(other)[0] if index and other % 50 == 3 else title(other)
        text = f"#REDIRECT [[{leads_to}]]\n\n{{{{Redirect category shell|\n{{{{R from move}}}}\n}}}}"
        yield Page(source, text, redirect=leads_to)
    if number % _GROUP == 0:
        same = "".join(
            f"* [[{title(number + index)}]], a {words()[index * 7]} of {words()[number % 3_001]}\n"
            for index in range(min(len(_SENSES), articles - number))
        )
        yield Page(name(number), f"'''{name(number)}''' may refer to:\n{same}\n{{{{disambiguation}}}}")
    if number % 4 == 0:
        text = f"{{{{Category main|{title(number)}}}}}\n[[Category:Places by {words()[number % 300]}]]"
        yield Page(f"Category:{name(number)} things", text, namespace=14)


@cache
def filler() -> list[str]:
    """Return text to stand between two links, of about 380 bytes each, escaped as XML wants it."""
    draw = np.random.default_rng(2026)
    lengths = draw.integers(25, 90, _CHUNKS).tolist()
    vocabulary = words()
    drawn = iter(ranks(draw, sum(lengths), len(vocabulary), 4).tolist())
    chunks = []
    for number, (length, kind) in enumerate(zip(lengths, draw.random(_CHUNKS).tolist(), strict=True)):
        some = [vocabulary[index] for index in islice(drawn, length)]
        chunks.append(_chunk(some, kind, number))
    return chunks


def _chunk(some: list[str], kind: float, number: int) -> str:
    half = len(some) // 2
    opening, closing = " ".join(some[:half]), " ".join(some[half:])
    if kind < 0.45:
        return f", {opening}. {closing.capitalize()} – "
    if kind < 0.6:
        return f" {opening}, {number % 2_000} {closing}.\n\n{some[0].capitalize()} "
    if kind < 0.8:
        return (
            f" {opening}.&lt;ref name=&quot;{some[0]}{number}&quot;&gt;{{{{cite web|url=https://{some[1]}.example/"
            f"{number}|title={closing}|date={1 + number % 28} May {1950 + number % 70}}}}}&lt;/ref&gt; It "
        )
    if kind < 0.86:
        return f".\n\n=== {some[0].capitalize()} {some[1]} ===\n{opening}; {closing} "
    if kind < 0.92:
        return f"\n* '''{some[0]}''': {opening} ''{closing}''\n* "
    if kind < 0.95:
        rows = "".join(
            f"|-\n| {first} || {second}\n" for first, second in zip(some[::2], some[1::2], strict=False)
        )
        return f":\n{{| class=&quot;wikitable&quot;\n! Name !! Place\n{rows}|}}\n{some[0].capitalize()} "
    if kind < 0.98:
        return f" {opening} {{{{convert|{number}|km|mi|abbr=on}}}} {closing}&amp;nbsp;km. "
    return f" {opening} &lt;!-- {closing} --&gt; "


def xml(page: Page, number: int) -> str:
    """Return a page with its number, as it stands in a dump."""
    redirect = f'\n    <redirect title="{page.redirect}" />' if page.redirect else ""
    day = f"20{10 + number % 15}-0{1 + number % 9}-1{number % 10}T0{number % 7}:4{number % 9}:23Z"
    digest = f"{number * 0x9E3779B97F4A7C15:031x}"
    return f"""  <page>
    <title>{page.title}</title>
    <ns>{page.namespace}</ns>
    <id>{number}</id>{redirect}
    <revision>
      <id>{1_000_000_000 + number * 7}</id>
      <parentid>{900_000_000 + number * 5}</parentid>
      <timestamp>{day}</timestamp>
      <contributor>
        <username>Maker {number % 9_973}</username>
        <id>{number % 9_973}</id>
      </contributor>
      <comment>/* {page.title} */ corrected</comment>
      <origin>{1_000_000_000 + number * 7}</origin>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text bytes="{len(page.text)}" sha1="{digest}" xml:space="preserve">{page.text}</text>
      <sha1>{digest}</sha1>
    </revision>
  </page>
"""


def head() -> str:
    """Return the XML before the first page."""
    spaces = "".join(
        f'      <namespace key="{key}" case="first-letter">{label}</namespace>\n'
        for key, label in _NAMESPACES.items()
    )
    return f"""<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>madewiki</dbname>
    <base>https://made.example/wiki/Main_Page</base>
    <generator>kgkit's benchmarks</generator>
    <case>first-letter</case>
    <namespaces>
{spaces}      <namespace key="0" case="first-letter" />
    </namespaces>
  </siteinfo>
"""


def write(folder: Path, articles: int, seed: int = 1, files: int = 0) -> None:
    """Write a dump into *folder*.

    Args:
        folder: made if it is not there.
        articles: how many; at most 2 ** 26.
        seed: another one gives another dump.
        files: of bz2; 0 is one file of plain XML.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    with (folder / f"{STEM}-page_props.sql").open("w", encoding="utf-8") as properties:
        properties.write("CREATE TABLE `page_props` (`pp_page` int, `pp_propname` varbinary(60));\n")
        for file in range(max(files, 1)):
            ending = f"{file + 1}.xml.bz2" if files else ".xml"
            kind = "pages-articles-multistream" if files else "pages-articles"
            first, stop = (articles * end // max(files, 1) for end in (file, file + 1))
            with (folder / f"{STEM}-{kind}{ending}").open("wb") as out:
                packed = bz2.compress if files else bytes
                file_pages = pages(articles, first, stop, seed)
                number = _write_file(out, file_pages, number, packed, properties)
        properties.write("-- Dump completed\n")


def _write_file(
    out: Any, file_pages: Iterator[Page], number: int, packed: Callable[[bytes], bytes], properties: Any
) -> int:
    out.write(packed(head().encode()))
    while some := list(islice(file_pages, PAGES_OF_STREAM)):
        numbers = range(number + 10, number + 10 + 2 * len(some), 2)
        number += 2 * len(some)
        out.write(packed("".join(map(xml, some, numbers)).encode()))
        rows = chain.from_iterable(
            (f"({here},'defaultsort','{here}',NULL)", f"({here},'wikibase_item','Q{here * 3}',NULL)")
            for page, here in zip(some, numbers, strict=True)
            if not page.redirect and not page.namespace
        )
        if text := ",".join(rows):
            properties.write(f"INSERT INTO `page_props` VALUES {text};\n")
    out.write(packed(b"</mediawiki>\n"))
    return number


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description="A dump in the format of MediaWiki.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--articles", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=0, help="so many files of bz2 instead of one of XML")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    write(chosen.folder, chosen.articles, chosen.seed, chosen.files)


if __name__ == "__main__":
    main()
