"""Small things to train a KnowBert on: two knowledge bases, an encoder with [MASK], links, plain text.

words     senses, as WordNet's; linked by wsd
places    entities, one surface of which two mean; linked by el, where NULL is a candidate
"""

import json
from pathlib import Path

import numpy as np

from kgkit.embedding.text import TextConfig, embed_text
from kgkit.encoder import Encoder
from kgkit.kb import KnowledgeBase
from kgkit.types import Alias, Entity, Triple
from tests.small_kb import build
from tests.tiny_encoder import WORDS

SENSES = (
    Entity("dog.n.01", "dog", "a big red dog barks"),
    Entity("dog.n.02", "dog", "it eats the fruit"),
    Entity("tree.n.01", "tree", "it grows"),
    Entity("dog%1", "dog"),
    Entity("dog%2", "dog"),
    Entity("tree%1", "tree"),
    Alias("dog", "dog.n.01", 3, "dog%1"),
    Alias("dog", "dog.n.02", 2, "dog%2"),
    Alias("tree", "tree.n.01", 1, "tree%1"),
)
PLACES = (
    Entity("Big_City", "big city", "not small"),
    Entity("City_Company", "city company", "it grows fruit"),
    Entity("Fruit", "fruit", "round and red"),
    Alias("big city", "Big_City", 3),
    Alias("city", "Big_City", 2),
    Alias("city", "City_Company", 2),
    Alias("company", "City_Company", 1),
    Alias("fruit", "Fruit", 5),
    Triple("City_Company", "sells", "Fruit"),
    Triple("Big_City", "sells", "Fruit"),
    Triple("Big_City", "beside", "City_Company"),
)
SENTENCES = (
    "dog%1 a big dog barks",
    "dog%2 the dog eats fruit",
    "dog%1 a small dog barks in the city",
    "tree%1 the tree grows",
)
TEMPLATE = "{label}: {description}"


def with_vectors(
    home: Path, name: str, encoder: Encoder, records: tuple[Entity | Alias | Triple, ...] | None = None
) -> KnowledgeBase:
    """Build `words` or `places` in *home*, with the vectors `text`, and open it."""
    kb = build(home, records or {"words": SENSES, "places": PLACES}[name], name=name)
    config = TextConfig(encoder=str(encoder.folder), device="cpu", dtype="float32", template=TEMPLATE)
    embed_text(kb, config, encoder=encoder)
    return kb


def senses(folder: Path, documents: int = 12, name: str = "x") -> tuple[Path, Path]:
    """Write documents of `SENTENCES` in the format of the unified framework; return data and gold."""
    texts, keys = [], []
    for number in range(documents):
        sentences = []
        for place, line in enumerate(SENTENCES):
            key, *words = line.split()
            called = f"d{number}.s{place}.t0"
            keys.append(f"{called} {key}\n")
            tokens = [
                f'<instance id="{called}" lemma="{word}" pos="NOUN">{word}</instance>'
                if word == key.split("%")[0]
                else f'<wf lemma="{word}" pos="X">{word}</wf>'
                for word in words
            ]
            sentences.append(f'<sentence id="d{number}.s{place}">{"".join(tokens)}</sentence>')
        texts.append(f'<text id="d{number}">{"".join(sentences)}</text>')
    data, gold = folder / f"{name}.data.xml", folder / f"{name}.gold.key.txt"
    data.write_text(f"<corpus>{''.join(texts)}</corpus>")
    gold.write_text("".join(keys))
    return data, gold


def links(path: Path, documents: int = 12) -> Path:
    """Write documents in which a big city is one, a city's company is one, and a fruit means nothing."""
    tokens = "the big city grows and a company of the city eats fruit".split()
    mentions = [
        {"start": 1, "end": 3, "entity": "Big_City"},
        {"start": 6, "end": 7, "entity": "City_Company"},
        {"start": 9, "end": 10, "entity": "City_Company"},
    ]
    record = {"tokens": tokens, "sentences": [[0, 4], [4, 12]], "mentions": mentions}
    path.write_text("".join(json.dumps({"doc_id": n, **record}) + "\n" for n in range(documents)))
    return path


def plain(path: Path, documents: int = 60, seed: int = 0) -> Path:
    """Write documents of three to six lines of words that are drawn, each a sentence."""
    drawn = np.random.default_rng(seed)
    texts = [
        "\n".join(" ".join(drawn.choice(WORDS, drawn.integers(2, 8))) for _ in range(drawn.integers(3, 7)))
        for _ in range(documents)
    ]
    path.write_text("\n\n".join(texts) + "\n")
    return path
