"""How many facts K-BERT's trees would inject wrongly, by string match and by links.

    python -m benchmarks.wrong_facts --home HOME [--model prior --model gloss …]

HOME holds WordNet and `aida` (`benchmarks.aida_kb`), with vectors `text` for models that want some; models
that are not for one of the knowledge bases are left out there. The sentences of `benchmarks/ambiguous` are
our own:

    english.tsv    a sentence, a word that can mean several things, and the entity that it means, of WordNet
                   or AIDA
    chinese.tsv    the same over `names_zh.jsonl`, a knowledge base made for it with two entities to each
                   name: the first is the likelier one, facts name words that texts on it have
    cuts_zh.tsv    a sentence that the longest surfaces cut wrongly, the words in it, and others that are not

A fact is wrong if it hangs from what overlaps the word in question, and is not of the entity that is meant.
"""

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Final, Literal, NamedTuple

from benchmarks.report import Table
from kb_builders.jsonl import JSONLBuilder
from kgkit import build_kb, open_kb
from kgkit.building import Alias, Builder, Entity, Files, Record, SourceInfo, Triple
from kgkit.candidates import AliasGenerator, SegmentGenerator, jieba_segments
from kgkit.errors import NotThere, StaleModel, UsageError
from kgkit.kb import KnowledgeBase
from kgkit.linking import Linker
from kgkit.linking.references import References
from kgkit.trees import Tree, TreeBuilder, TreeConfig, generators_of
from kgkit.types import Document, LinkedDocument

HERE: Final = Path(__file__).parent / "ambiguous"
BIDEN: Final = "Biden wins election 2020. He is joining with Kamala Harris."


_COHERENCE: Final[tuple[Literal["graph"] | None, ...]] = (None, "graph")


class Case(NamedTuple):
    """A sentence, a word of it, and the entity that this means."""

    kb: str
    text: str
    mention: str
    gold: str


class Count(NamedTuple):
    """Sentences in which a fact of the right entity was injected, one of another, none."""

    right: int = 0
    wrong: int = 0
    none: int = 0

    def plus(self, other: "Count") -> "Count":
        """Return both together."""
        return Count(*(first + second for first, second in zip(self, other, strict=True)))

    @property
    def cells(self) -> tuple[str, str, str, str]:
        share = 100 * self.wrong / max(1, self.right + self.wrong)
        return f"{self.right}", f"{self.wrong}", f"{self.none}", f"{share:.0f} %"


def cases(name: str) -> list[Case]:
    """Return the sentences of a file."""
    return [Case(*line.split("\t")) for line in (HERE / name).read_text(encoding="utf-8").splitlines()[1:]]


def judged(case: Case, tree: Tree) -> Count:
    """Say what was injected at the word in question."""
    start = case.text.index(case.mention)
    end = start + len(case.mention)
    entities = {
        branch.entity
        for hook in tree.hooks
        if hook.start < end and start < hook.end
        for branch in hook.branches
    }
    if not entities:
        return Count(none=1)
    return Count(right=1) if entities == {case.gold} else Count(wrong=1)


def by_string(kb: KnowledgeBase, some: Sequence[Case]) -> Count:
    """Count over trees of the longest surfaces, each with its likeliest entity."""
    trees = TreeBuilder(generators_of([kb], "longest"))([(Document("", case.text),) for case in some])
    return reduce(Count.plus, map(judged, some, trees), Count())


def by_links(
    kb: KnowledgeBase, some: Sequence[Case], model: str, coherence: Literal["graph"] | None
) -> Count:
    """Count over trees of finished links."""
    linker = Linker.open(kb, model=model, coherence=coherence, device="cpu")
    linked = [References([kb])(document) for document in linker(case.text for case in some)]
    trees = TreeBuilder([AliasGenerator(kb)])([(document,) for document in linked])
    return reduce(Count.plus, map(judged, some, trees), Count())


def ambiguous(home: Path, models: Sequence[str], scratch: Path) -> Table:
    """Return the table of the facts that each query injects."""
    build_kb(JSONLBuilder(), HERE / "names_zh.jsonl", name="names_zh", home=scratch)
    rows = []
    every = [*cases("english.tsv"), *cases("chinese.tsv")]
    for name in dict.fromkeys(case.kb for case in every):
        some = [case for case in every if case.kb == name]
        with open_kb(name, scratch if name == "names_zh" else home) as kb:
            rows.append([name, "longest words, likeliest entity", *by_string(kb, some).cells])
            for model in models:
                for coherence in _COHERENCE:
                    try:
                        count = by_links(kb, some, model, coherence)
                    except (NotThere, StaleModel, UsageError) as error:  # it is not for this one
                        print(f"{name}, {model}: {error}")
                        continue
                    rows.append([name, f"link, {model}{', coherence' if coherence else ''}", *count.cells])
    columns = ("KB", "query", "right", "wrong", "none", "wrong of injected")
    return Table(title="Facts that are injected for ambiguous names", notes="", columns=columns, rows=rows)


class Words(Builder):
    """A knowledge base of words, each with a fact."""

    version = "1"

    def __init__(self, words: Iterable[str]) -> None:
        self._words = [*dict.fromkeys(words)]

    def look(self, source: Path) -> Files:
        return Files(SourceInfo(name="Words"), [])

    def observe(self, source: Path, part: str) -> Iterable[Record]:  # type: ignore[override]
        yield Entity("词", "词")
        for word in self._words:
            if word != "词":
                yield from (Entity(word, word), Alias(word, word), Triple(word, "是", "词"))


def cuts(scratch: Path) -> Table:
    """Return the table of how many sentences each query cuts right."""
    lines = (HERE / "cuts_zh.tsv").read_text(encoding="utf-8").splitlines()[1:]
    sentences = [
        (text, words.split(), outside.split())
        for text, words, outside in (line.split("\t") for line in lines)
    ]
    words = (word for _, inside, outside in sentences for word in (*inside, *outside))
    build_kb(Words(words), HERE, name="words", home=scratch)
    rows = []
    with open_kb("words", scratch) as kb:
        queries = {
            "longest surfaces": AliasGenerator(kb),
            "jieba, surfaces kept whole": SegmentGenerator(kb, jieba_segments(kb.surfaces())),
            "jieba, its own words": SegmentGenerator(kb, jieba_segments([])),
        }
        linker = Linker.open(kb, model="prior")
        documents_by_query: dict[str, list[Document | LinkedDocument]] = {}
        for name, generator in queries.items():
            cut = [*generator([Document("", sentence[0]) for sentence in sentences])]
            documents_by_query |= {name: [*cut], f"{name}, linked": [*linker(cut)]}
        for name, documents in documents_by_query.items():
            trees = TreeBuilder([AliasGenerator(kb)], TreeConfig(max_facts=1))(
                [(document,) for document in documents]
            )
            right = extra = lost = 0
            for (text, inside, _), tree in zip(sentences, trees, strict=True):
                matched = {text[hook.start : hook.end] for hook in tree.hooks}
                right += matched == set(inside)
                extra += len(matched - set(inside))
                lost += len(set(inside) - matched)
            rows.append([name, f"{right} of {len(sentences)}", f"{extra}", f"{lost}"])
    columns = ("query", "sentences right", "wrong words", "words not found")
    return Table(title="Chinese that the longest surfaces cut wrongly", notes="", columns=columns, rows=rows)


def biden(scratch: Path) -> list[str]:
    """Return the words of the sentence with the facts that hang from them."""
    people = HERE.parent / "ambiguous" / "people.jsonl"
    build_kb(JSONLBuilder(), people, name="people", home=scratch)
    with open_kb("people", scratch) as kb:
        [linked] = Linker.open(kb, model="prior")([BIDEN])
        document: LinkedDocument = References([kb])(linked)
        [tree] = TreeBuilder([AliasGenerator(kb)])([(document,)])
        return [
            f"{BIDEN[hook.start : hook.end]}: {'; '.join(' '.join(branch.words) for branch in hook.branches)}"
            for hook in tree.hooks
        ]


def main() -> None:
    """Count, and write the tables to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wrong_facts")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--model", action="append", default=[])
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(ambiguous(chosen.home, chosen.model or ["prior"], Path(folder)).markdown())
        print(cuts(Path(folder)).markdown())
        print("\n".join(biden(Path(folder))))


if __name__ == "__main__":
    main()
