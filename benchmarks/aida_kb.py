"""AIDA's Wikipedia slice as JSON lines, for the builder `jsonl`.

    python -m benchmarks.aida_kb OUT_DIR [--without testb] [--parts] [--links train]
    kgkit build-kb jsonl OUT_DIR --name aida

It is read from the folder `aida` of the shared data, which must not be passed on: nor may what is
written here. `docs/aida.md` says what is in the KB and how it does. What each source gives:

    candidates/entities.jsonl.xz    the entities, keyed by Wikipedia title: page id, links in and out,
                                    popularity (that of `freebase_popularity.jsonl.xz`, which holds nothing
                                    more on them), a type where one is known; the links, as `links_to`
    candidates/aliases.jsonl.xz     the surfaces of mentions, each with all pages it was ever a candidate of
    the titles                      surfaces too: whole, without what is in brackets at their end, and
                                    before their first comma, as news says Athens of Athens, Georgia
    redirects.json.xz               other titles of a page: other keys of its entity, and surfaces, shortened
                                    like titles. A title that has moved since is one; see `other_titles`
    aida_*.jsonl.xz, candidates/mention_candidates.jsonl.xz
                                    for `--without` alone: which surfaces, with which candidates, the
                                    documents of the other sets have. The field `entity` is never read

**Counts.** The count of a surface with an entity is the number of links to the entity, whatever says that
the surface can mean it: the sources tell who is a candidate, not how often. So a prior is an entity's share
of the links to all that the surface can mean, and a pair that several sources give counts once.

`--without testb` leaves out every pair of a surface and an entity that the mentions of testb alone give;
titles and redirects may still give it. `--without testa` does the same for testa. `--without redirects`
leaves out both uses of the redirects: nearly all lead to pages that are the answer somewhere in AIDA
(`docs/aida.md`).

`--parts` adds, for every title and redirect, each run of up to four of its words and its initials as
surfaces. Together with `--without testa --without testb` this is the alias table that no test document
has contributed to.

**Links.** PPRforNED gives the links among the candidates of one document, those of testa and testb too. So
the whole graph tells which candidates the lists of a test document have: a wrong candidate is linked with the
right ones of the other mentions more often where PPRforNED listed it than where a title alone gives it.
`--links` chooses a graph that no test document has contributed to:

    train       links among the candidates of one training document. Links that testa and testb alone give are
                missing, true ones too, and a training document has all of its own: a lower bound
    half        links among the candidates of one training document with an odd number. With the training
                documents of even numbers alone (`benchmarks.entities held-out --half`) those that are learnt
                from see the graph as those of the test do
    elsewhere   links among the entities on the pages of the dump samples in `wikipedia`, and facts of T-REx
                and Google-RE in `lama` between them: nothing of AIDA
"""

import bz2
import json
import lzma
import re
from collections.abc import Collection, Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any, Final

from benchmarks import lama_kb
from benchmarks.jsonl_source import run_writer, source_parser, write_lines

SPLITS: Final = ("train", "testa", "testb")
OPTIONAL: Final = ("testa", "testb", "redirects")
LINKS: Final = ("whole", "train", "half", "elsewhere")
MAX_PART_WORDS: Final = 4
NO_TYPE: Final = ("UNK", "UKN")  # both are there
HEAD: Final = {
    "name": "AIDA's Wikipedia slice",
    "licence": "research only, not to be passed on: facts of Wikipedia (CC BY-SA 3.0) by way of PPRforNED",
    "url": "https://github.com/masha-p/PPRforNED",
    "language": "en",
    "generator": "alias",
    "smoothing": 1.0,  # pages without a link to them are not impossible
    "label_aliases": False,  # titles are written out, with their counts
}

Pairs = dict[tuple[str, str], float]
"""(surface, key of an entity) -> count."""


def records(folder: Path, name: str) -> Iterator[Any]:
    """Yield what the lines of a compressed file hold."""
    with lzma.open(folder / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def redirects(folder: Path) -> dict[str, str]:
    """Return title -> title of the same page in 2023, as titles are written elsewhere."""
    with lzma.open(folder / "redirects.json.xz", "rt", encoding="utf-8") as file:
        return {
            source.replace("_", " "): target.replace("_", " ") for source, target in json.load(file).items()
        }


def names(title: str) -> list[str]:
    """Return what a page of this title may be called in a text.

    Example:
        >>> names("Athens, Georgia (city)")
        ['Athens, Georgia (city)', 'Athens, Georgia', 'Athens']
    """
    plain = re.sub(r"\s*\([^()]*\)$", "", title)
    variants = dict.fromkeys([title, plain, plain.partition(", ")[0]])
    return [name for name in variants if name]


def parts(title: str) -> list[str]:
    """Return each run of up to four words of a title, and its initials, without what is in brackets.

    Initials are those of all words, and those of the words with a capital, each with and without full stops.

    Example:
        >>> parts("Bank of Cyprus (company)")
        ['Bank', 'Bank of', 'Bank of Cyprus', 'of', 'of Cyprus', 'Cyprus', 'BOC', 'B.O.C.', 'BC', 'B.C.']
    """
    plain = re.sub(r"\s*\([^()]*\)$", "", title)
    words = plain.replace(",", " ").split()
    runs = [
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(len(words), start + MAX_PART_WORDS) + 1)
    ]
    initials = []
    every = [word for word in plain.replace(",", " ").replace("-", " ").split() if word[0].isalnum()]
    for letters in ([word[0] for word in every], [word[0] for word in every if word[0].isupper()]):
        if len(letters) > 1:
            joined = "".join(letters).upper()
            initials += [joined, ".".join(joined) + "."]
    return [*dict.fromkeys([*runs, *initials])]


def other_titles(links_to: Mapping[str, int], moved: Mapping[str, str]) -> dict[str, str]:
    """Return title -> entity, for all titles of a page but that of its entity.

    Titles that redirect to one title, and that title, are one page. Its entity is the page of that title
    if there is one, else the one that most links lead to: the entities have the titles of an older
    dump, so an entity's own title may be a redirect by now. Where a page has several entities, the
    others are listed here too, although they stay entities.

    Args:
        links_to: entity -> number of links to it.
        moved: title -> title in 2023.
    """
    pages: dict[str, list[str]] = {}
    for title in dict.fromkeys([*links_to, *moved, *moved.values()]):
        pages.setdefault(moved.get(title, title), []).append(title)
    entity_of: dict[str, str] = {}
    for now, titles in pages.items():
        entities = [title for title in titles if title in links_to]
        if entities:
            chosen = now if now in links_to else max(entities, key=lambda title: (links_to[title], title))
            entity_of.update((title, chosen) for title in titles if title != chosen)
    return entity_of


def squeezed(surface: str) -> str:
    """Return *surface* without blanks: some have the apostrophe as it stands, some as a token."""
    return surface.replace(" ", "")


def pairs_of_mentions(folder: Path, splits: Collection[str]) -> set[tuple[str, int]]:
    """Return the pairs of a surface, squeezed, and the page id of a candidate that *splits* give."""
    texts = {
        document["doc_id"]: [squeezed(mention["text"]) for mention in document["mentions"]]
        for split in splits
        for document in records(folder, f"aida_{split}")
    }
    return {
        (texts[row["doc_id"]][row["mention"]], candidate)
        for row in records(folder / "candidates", "mention_candidates")
        if row["doc_id"] in texts
        for candidate in row["candidates"]
    }


def surfaces_of_titles(
    links_to: Mapping[str, int], entity_of: Mapping[str, str], *, with_parts: bool
) -> Pairs:
    """Return the aliases of titles, and of the other titles in *entity_of* (title -> entity)."""
    pairs: Pairs = {}
    for title, key in [*((title, title) for title in links_to), *entity_of.items()]:
        for name in [*names(title), *(parts(title) if with_parts else ())]:
            pairs[name, key] = links_to[key]
    return pairs


def surfaces(
    folder: Path,
    links_to: Mapping[str, int],
    entity_of: Mapping[str, str],
    without: Collection[str],
    *,
    with_parts: bool = False,
) -> Pairs:
    """Return all aliases: of mentions, titles, and the other titles in *entity_of* (title -> entity)."""
    splits = [split for split in SPLITS if split not in without]
    mentioned = None if len(splits) == len(SPLITS) else pairs_of_mentions(folder, splits)
    pairs: Pairs = {}
    for row in records(folder / "candidates", "aliases"):
        for candidate in row["candidates"]:
            if mentioned is None or (squeezed(row["surface"]), candidate["id"]) in mentioned:
                pairs[row["surface"], candidate["title"]] = links_to[candidate["title"]]
    return pairs | surfaces_of_titles(links_to, entity_of, with_parts=with_parts)


def linked_together(folder: Path, documents: Collection[int]) -> Iterator[tuple[str, str]]:
    """Yield the links, by title, among the candidates of one document of some, each once."""
    entities = {entity["id"]: entity for entity in records(folder / "candidates", "entities")}
    candidates_of: dict[int, set[int]] = {number: set() for number in documents}
    for row in records(folder / "candidates", "mention_candidates"):
        if row["doc_id"] in candidates_of:
            candidates_of[row["doc_id"]].update(row["candidates"])
    links = {
        (source, target)
        for together in candidates_of.values()
        for source in together & entities.keys()
        for target in together.intersection(entities[source]["links"])
    }
    yield from ((entities[source]["title"], entities[target]["title"]) for source, target in sorted(links))


def links_elsewhere(
    data: Path, links_to: Mapping[str, int], entity_of: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the links among entities that dump samples and facts of T-REx and Google-RE give, each once.

    Args:
        data: folder of the shared data.
        links_to: entity -> number of links to it.
        entity_of: title -> entity, of other titles.
    """
    named = [*dump_links(data / "wikipedia")]
    named += (
        (fact.get("sub_label", ""), fact.get("obj_label", "")) for fact in lama_kb.records(data / "lama")
    )
    pairs = set()
    for titles in named:
        source, target = (
            title if title in links_to else entity_of.get(title)
            for title in (name[:1].upper() + name[1:] for name in titles)
        )
        if source and target and source != target:
            pairs.add((source, target))
    yield from sorted(pairs)


def dump_links(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the title of a page and the title that a link on it leads to, of the pages of dump samples."""
    for path in sorted(folder.glob("*.xml*.bz2")):
        for page in re.findall(r"<page>(.*?)</page>", bz2.decompress(path.read_bytes()).decode(), re.DOTALL):
            title = re.search(r"<title>(.*?)</title>", page)
            if title is None or "<redirect" in page:
                continue
            for target in re.findall(r"\[\[([^]|#]+)", unescape(page)):
                yield unescape(title[1]), target.replace("_", " ").strip()


def triples(
    folder: Path, links: str, links_to: Mapping[str, int], entity_of: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the links between entities, by title; arguments as for `write`, and `links_elsewhere`."""
    if links == "whole":
        entities = [*records(folder / "candidates", "entities")]
        title_of = {entity["id"]: entity["title"] for entity in entities}
        yield from ((entity["title"], title_of[other]) for entity in entities for other in entity["links"])
    elif links == "elsewhere":
        yield from links_elsewhere(folder.parent, links_to, entity_of)
    else:
        numbers = [document["doc_id"] for document in records(folder, "aida_train")]
        yield from linked_together(folder, [number for number in numbers if links == "train" or number % 2])


def entity_line(entity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of an entity."""
    attributes = {
        "wikipedia_id": entity["id"],
        "in_count": entity["in_count"],
        "out_count": entity["out_count"],
        "popularity": entity["freebase_popularity"],
    }
    return {
        "key": entity["title"],
        "kind": "page",
        "types": [] if entity["type"] in NO_TYPE else [entity["type"]],
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def write(
    folder: Path,
    out: Path,
    without: Collection[str] = (),
    *,
    with_parts: bool = False,
    links: str = "whole",
) -> dict[str, int]:
    """Write the KB's files into *out*, and return how many lines each has.

    Args:
        folder: `aida` of the shared data.
        out: a folder; made if it is not there.
        without: of `OPTIONAL`, what to leave out.
        with_parts: parts of titles, and their initials, are surfaces too.
        links: of `LINKS`, which links there are.
    """
    entities = [*records(folder / "candidates", "entities")]
    links_to = {entity["title"]: entity["in_count"] for entity in entities}
    entity_of = {} if "redirects" in without else other_titles(links_to, redirects(folder))
    pairs = surfaces(folder, links_to, entity_of, without, with_parts=with_parts)
    version = f"without {' and '.join(sorted(without))}" if without else "whole"
    version += ", parts of titles" if with_parts else ""
    version += f", links {links}" if links != "whole" else ""
    out.mkdir(parents=True, exist_ok=True)
    return {
        "entities": write_lines(
            out / "entities.jsonl",
            [{"kgkit": {**HEAD, "version": version}}, *map(entity_line, entities)],
        ),
        "aliases": write_lines(
            out / "aliases.jsonl",
            ({"alias": name, "key": key, "count": count} for (name, key), count in sorted(pairs.items())),
        ),
        "triples": write_lines(
            out / "triples.jsonl",
            (
                {"subject": source, "relation": "links_to", "object": target}
                for source, target in triples(folder, links, links_to, entity_of)
            ),
        ),
        "redirects": write_lines(
            out / "redirects.jsonl",
            (
                {"redirect": title, "to": key}
                for title, key in sorted(entity_of.items())
                if title not in links_to  # those are entities
            ),
        ),
    }


def main() -> None:
    """Write what the command line asks for."""
    parser = source_parser("aida_kb", "AIDA's Wikipedia slice, for `build-kb jsonl`.", "aida")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=OPTIONAL,
        help="leave out what only the mentions of testa or testb give, or the redirects; may be repeated",
    )
    parser.add_argument(
        "--parts", action="store_true", help="add runs of up to four words of titles, and their initials"
    )
    parser.add_argument(
        "--links",
        choices=LINKS,
        default="whole",
        help="which links there are: all, or those of no test document",
    )
    run_writer(
        parser,
        lambda chosen, folder: write(
            folder, chosen.out, chosen.without, with_parts=chosen.parts, links=chosen.links
        ),
    )


if __name__ == "__main__":
    main()
