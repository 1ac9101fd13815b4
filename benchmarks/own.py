"""kgkit's side of every bench. Each function runs in a process of its own."""

import json
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import passes


def wordnet_folder() -> str:
    """Return the folder of the WordNet files that a build reads when it is told of none."""
    from kb_builders.wordnet_source import obtain
    from kgkit.home import Home

    return str(obtain(Home.find().cache))


def build(wordnet: str, out: str) -> None:
    """Build WordNet into the home *out*."""
    import kgkit

    kgkit.build_kb("wordnet", source=wordnet, home=out)


def look_up(what: str, keys: str, count: int) -> dict[str, float]:
    """Measure one kind of look-up; *what* names one of the loops below."""
    import kgkit

    queries = json.loads(Path(keys).read_text())
    names = [name for name, _ in queries["synsets"][:count]]
    with kgkit.open_kb("wordnet") as kb:

        def entity(names: list[str]) -> None:
            for name in names:
                kb[name]

        def arrays(lemmas: list[str]) -> None:
            for lemma in lemmas:
                candidates = kb.candidates(lemma)
                candidates.ids, candidates.priors  # noqa: B018 - the arrays are what is measured

        def decoded(lemmas: list[str]) -> None:
            for lemma in lemmas:
                kb.decode(kb.candidates(lemma))

        def neighbour_ids(ids: list[int]) -> None:
            for id_ in ids:
                kb.neighbors(id_)

        def hypernym_ids(ids: list[int]) -> None:
            for id_ in ids:
                kb.neighbors(id_, "hypernym")

        def neighbours(names: list[str]) -> None:
            for name in names:
                kb.neighbors(name)

        ids = [kb.id(name) for name in names] if what.endswith("_ids") else []
        questions: dict[str, tuple[Any, list[Any]]] = {
            "entity": (entity, names),
            "lemmas, arrays": (arrays, queries["lemmas"][:count]),
            "lemmas, decoded": (decoded, queries["lemmas"][:count]),
            "polysemous, arrays": (arrays, queries["polysemous"][:count]),
            "polysemous, decoded": (decoded, queries["polysemous"][:count]),
            "neighbour_ids": (neighbour_ids, ids),
            "hypernym_ids": (hypernym_ids, ids),
            "neighbours": (neighbours, names),
        }
        return passes(*questions[what])


def mentions(generator: str, text: str) -> dict[str, float]:
    """Run a generator of candidates over a text; the clock starts before the KB is opened.

    Args:
        generator: `LemmaGenerator` or `AliasGenerator`.
        text: a file with one document a line.
    """
    import kgkit
    from kgkit import candidates
    from kgkit.types import Document

    lines = Path(text).read_text(encoding="utf-8").splitlines()
    documents = [Document(str(number), line) for number, line in enumerate(lines)]
    start = time.process_time()
    with kgkit.open_kb("wordnet") as kb:
        generate = getattr(candidates, generator)(kb)
        opened = time.process_time()
        spans = 0
        for document in generate(iter(documents)):
            spans += len(document.mentions)
        stop = time.process_time()
        # Counted in a second reading: in the first nothing is done but the work itself.
        candidate_count = sum(
            len(mention.candidates) for document in generate(documents) for mention in document.mentions
        )
    tokens = sum(len(line.split()) for line in lines)
    return {
        "opening": opened - start,
        "seconds": stop - start,
        "tokens": tokens,
        "spans": spans,
        "candidates": candidate_count,
    }


def add(home: str, source: str, out: str) -> dict[str, float]:
    """Add *source* to a copy of WordNet in the home *out*, and link a text to it."""
    import shutil

    import kgkit

    add_to_kb, link = kgkit.add_to_kb, kgkit.link  # loads what they need
    shutil.copytree(home, out, symlinks=True)
    start = time.process_time()
    add_to_kb("wordnet", source, home=out)
    seconds = time.process_time() - start
    text = " and ".join(f"Zorblax {number}" for number in range(0, 1000, 50))
    links = link(text, kb="wordnet", home=out, model="prior").links
    return {"seconds": seconds, "linked": sum(str(link.entity).startswith("zorb_") for link in links)}


def edit(home: str, edits: str, out: str) -> dict[str, float]:
    """Edit a copy of WordNet in the home *out*, and count the retired entities that are gone."""
    import shutil

    import kgkit

    edit_kb = kgkit.edit_kb  # loads what it needs
    shutil.copytree(home, out, symlinks=True)
    start = time.process_time()
    manifest = edit_kb("wordnet", edits, home=out).manifest
    return {"seconds": time.process_time() - start, "retired": manifest.retired}


def rebuild(wordnet: str, out: str) -> dict[str, float]:
    """Build WordNet into the home *out*."""
    from kgkit import build_kb

    start = time.process_time()
    build_kb("wordnet", source=wordnet, home=out)
    return {"seconds": time.process_time() - start, "linked": 0}
