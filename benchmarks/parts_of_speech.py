"""The parts of speech of `wsd-minilm`: a linear map of what its encoder reads, from the tags of SemCor.

    python -m benchmarks.parts_of_speech --home HOME OUT_FILE [--texts 70]

HOME holds WordNet. Of SemCor's texts in which all words are annotated some are drawn, and written as one
writes them. Mentions are what `--mentions all` finds, the longest of those that overlap; each that is one
token of the data is learnt from, with the tag of that token: noun, verb, adjective (numbers too), adverb, or
none of these, as of prepositions, particles and auxiliaries. Of the classes those take part that the mention
has a candidate of, and none. The last of the texts are held out. Two CPU minutes.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs

import kgkit
from benchmarks.raw_senses import Tagged, Token, read_tagged
from benchmarks.senses import DATA
from kgkit.candidates import Generator, generator_for, longest
from kgkit.inputs.spans import SpanReader, hidden_of
from kgkit.kb import KnowledgeBase
from kgkit.linking.head import HeadScorer
from kgkit.linking.models import find_scorer
from kgkit.linking.parts_of_speech import ORDER, PartsOfSpeech
from kgkit.types import Document, Matrix

MODEL: Final = "wsd-minilm"
NONE: Final = len(ORDER)
AUXILIARIES: Final = frozenset(["be", "have", "do"])
"""Lemmas of verbs that are auxiliaries where SemCor gives them no sense."""

HELD_OUT: Final = 4  # texts
EPOCHS, BATCH, RATE, DECAY = 12, 256, 2e-3, 1.0


class Examples(NamedTuple):
    """Mentions with their part of speech.

    Attributes:
        hidden: (M, W) float16, what the encoder says of them.
        classes: (M, 5) whether a mention has a candidate of a part of speech; the last is none of them.
        right: (M,) the column that is right.
    """

    hidden: Matrix
    classes: np.ndarray
    right: np.ndarray


def class_of(token: Token) -> int:
    """Return the column of the part of speech of a token."""
    if not token.pos or (not token.id and token.pos == "v" and token.lemma in AUXILIARIES):
        return NONE
    return ORDER.index(token.pos)


def examples_of(
    text: Tagged, generator: Generator, reader: SpanReader, parts_of_speech: PartsOfSpeech
) -> Examples:
    """Return the mentions of a text that are one token of the data."""
    document = Document(text.document.id, text.document.text)
    tokens = {(token.start, token.end): token for token in text.tokens}
    mentions = [
        mention
        for mention in longest(generator.mentions(document.text))
        if (mention.start, mention.end) in tokens
    ]
    [(_, vectors)] = reader([structs.replace(document, mentions=mentions)])
    right = np.array([class_of(tokens[mention.start, mention.end]) for mention in mentions])
    classes = np.array(
        [[*parts_of_speech.classes(mention.candidates).any(axis=0), True] for mention in mentions]
    )
    known = classes[np.arange(len(right)), right]  # else WordNet has it as something else alone
    hidden = hidden_of(vectors, len(reader.config.layers))
    return Examples(hidden[known].astype(np.float16), classes[known], right[known])


def drawn_texts(count: int, seed: int = 0) -> Iterator[Tagged]:
    """Yield some of SemCor's texts in which all words are annotated, not the verbs alone."""
    texts = [
        text
        for text in read_tagged(DATA / "semcor" / "semcor.data.xml.xz")
        if not text.source.startswith("brownv")
    ]
    for index in np.random.default_rng(seed).permutation(len(texts))[:count].tolist():
        yield texts[index]


def together(parts: Sequence[Examples]) -> Examples:
    """Return all examples of some texts."""
    return Examples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def fit(examples: Examples, seed: int = 0) -> Matrix:
    """Return the weights, (W + 1, 5) float16."""
    import torch

    hidden = torch.from_numpy(examples.hidden.astype(np.float32))
    classes, right = torch.from_numpy(examples.classes), torch.from_numpy(examples.right.astype(np.int64))
    linear = torch.nn.Linear(hidden.shape[1], NONE + 1)
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.zeros_(linear.bias)
    steps = EPOCHS * -(-len(hidden) // BATCH)
    optimizer = torch.optim.AdamW(linear.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=steps)
    random = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(hidden), generator=random).split(BATCH):
            logits = linear(hidden[rows]).masked_fill(~classes[rows], -torch.inf)
            loss = torch.nn.functional.cross_entropy(logits, right[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    weights = torch.cat([linear.weight.T, linear.bias[None]]).detach().numpy()
    result: Matrix = weights.astype(np.float16)
    return result


def accuracies(weights: Matrix, examples: Examples) -> tuple[float, float, float]:
    """Return the shares that are right: of all, of the parts of speech, and of none of them."""
    logits = examples.hidden.astype(np.float32) @ weights[:-1].astype(np.float32) + weights[-1]
    chosen = np.where(examples.classes, logits, -np.inf).argmax(axis=1)
    right, none = chosen == examples.right, examples.right == NONE
    return float(right.mean()), float(right[~none].mean()), float(right[none].mean())


def examples_by_text(kb: KnowledgeBase, count: int) -> list[Examples]:
    """Return the examples of some texts of SemCor, as the model reads them."""
    scorer = find_scorer(MODEL, kb)
    if not isinstance(scorer, HeadScorer):
        raise SystemExit(f"{MODEL} is no head")
    generator = generator_for(kb, all_surfaces=True)
    parts_of_speech = PartsOfSpeech(np.zeros((scorer.reader.width + 1, NONE + 1), np.float16), kb)
    return [examples_of(text, generator, scorer.reader, parts_of_speech) for text in drawn_texts(count)]


def main() -> None:
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parts_of_speech")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--texts", type=int, default=70)
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    with kgkit.open_kb("wordnet", home=chosen.home) as kb:
        texts = examples_by_text(kb, chosen.texts)
    learnt, held_out = together(texts[:-HELD_OUT]), together(texts[-HELD_OUT:])
    weights = fit(learnt)
    all_right, of_content, of_none = accuracies(weights, held_out)
    np.save(chosen.out, weights)
    print(f"{len(learnt.right):,} mentions; of {len(held_out.right):,} held out {all_right:.1%} right:")
    print(f"{of_content:.1%} of nouns, verbs, adjectives and adverbs, {of_none:.1%} of other words")


if __name__ == "__main__":
    main()
