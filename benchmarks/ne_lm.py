"""NE-LM, a language model of typed names, the control of KALM: Parvez et al. (2018).

    python -m benchmarks.ne_lm --home HOME [--recipes 0.1] [--only ne-lm-both] [OPTION …]

    B  rows    T  words that a row reads    S  words that it predicts    V  the vocabulary    K  types

Two models that are trained on typed text are joined where they are scored:

    type model   AWD-LSTM of a text whose names are replaced by their types: P(s), where s is a type of names,
                 or a general word
    name model   AWD-LSTM that reads the words with their types, and predicts a name of a type: P(y | τ), a
                 softmax over the vocabulary of the type

    P(y) = P(s = y) + Σ_τ P(s = τ) P(y | τ)

The first term is there for general words, the others for the types whose names the word may be, so that the
probabilities of the V words of all systems sum to 1. The types of the words that are read are those of the
labels (CoNLL-2003), or the likeliest type of a knowledge base (recipes); of the word to be predicted none is
known. Words, order and stopping are those of `benchmarks.kalm` and `benchmarks.kalm_recipes`, whose models
are trained by `kgkit train kalm`.

Departures:
    The published name model reads the type of the next word too. Here that type chooses the softmax.
    The published one predicts general words also, whose probability is 1 once the type model has said them.
    Types of what is read are added to the embeddings of words; published is both side by side.
    Both models are trained in one loop: they have no parameter in common, but their gradient is clipped
    together, and one epoch is chosen for both.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks import kalm as conll
from benchmarks.kalm_recipes import KB as RECIPE_KB
from benchmarks.kalm_recipes import RecipeBench
from benchmarks.report import Table
from kgkit.evaluation.ner import read_names
from kgkit.heads.kalm import ALL, KALM, KALMConfig, KALMOutput, LogSumExp, State
from kgkit.home import Home
from kgkit.inputs.kalm import TypedVocabulary, read_words
from kgkit.methods.kalm import score_words
from kgkit.methods.kalm_settings import KALMTraining
from kgkit.training.job import fit, scores_by_epoch
from kgkit.training.kalm import (
    LENGTH,
    RATE,
    SIZES,
    CarriedState,
    loss_with_states,
    schedule_of,
    word_batches,
)
from kgkit.types import Numbers

MODELS: Final = {"ne-lm": False, "ne-lm-both": True}
"""Models by name, and whether they predict words from both sides."""

NOTES: Final = """
Nats and perplexity of a word, with the vocabulary of the models of `kgkit train kalm` beside it, `<unk>` and
ends of sentences among the words; `both`: from both sides, a pseudo-perplexity. It is trained with types of
names, those of the labels of CoNLL-2003, or of the knowledge base for recipes, and reads them in the context
of each word on the scored texts too, which KALM does not.
"""


class NELMOutput(NamedTuple):
    """What both models say of the words that they predict.

    Attributes:
        vectors: (B, S, E) of the type model.
        types, names: outputs of the type model and of the name model.
        state: states of both behind the last word; of both directions None.
    """

    vectors: Tensor
    types: KALMOutput
    names: KALMOutput
    state: State | None


class NELM(nn.Module):
    """A type model and a name model, whose words are numbers of words plus V times their types.

    Args:
        members: (1 + K, V) bool: general words, and the names of each type; word 0 is the unknown one.
        sizes: settings of `KALMConfig`, for both.
        bidirectional: whether words are predicted from both sides.
    """

    reduced: Tensor

    def __init__(self, members: Tensor, sizes: Mapping[str, Any], bidirectional: bool) -> None:
        super().__init__()
        (kinds, self.words), general = members.shape, members[0].nonzero()[:, 0]
        self.general = len(general)
        # Numbers in the type model: general words first, then types. A name that is read as none is unknown.
        reduced = torch.zeros(self.words, dtype=torch.long)
        reduced[general] = torch.arange(len(general))
        self.register_buffer("reduced", reduced)
        every: dict[str, Any] = {**sizes, "bidirectional": bidirectional}
        self.type_model = KALM(KALMConfig(words=len(general) + kinds - 1, **every))
        types = tuple(str(number) for number in range(1, kinds))
        self.name_model = KALM(KALMConfig(words=self.words, types=types, **every), members)
        self.context_types = nn.Embedding(kinds, self.type_model.config.embedding)

    @property
    def config(self) -> KALMConfig:
        """Settings of the type model."""
        return self.type_model.config

    @property
    def embedding(self) -> Tensor:
        """Embeddings of the type model."""
        return self.type_model.embedding

    def replaced(self, typed: Tensor) -> Tensor:
        """Return words as the type model has them: names by their types."""
        types = typed // self.words
        return torch.where(types > 0, self.general + types - 1, self.reduced[typed % self.words])

    def forward(self, typed: Tensor, lengths: Tensor | None = None, state: State | None = None) -> NELMOutput:
        """Return what is said of typed words (B, T), as `KALM` does."""
        layers = self.config.layers
        before = (None, None) if state is None else (state[:layers], state[layers:])
        types = self.type_model(self.replaced(typed), lengths, before[0])
        vectors = self.name_model.embed(typed % self.words) + self.context_types(typed // self.words)
        names = self.name_model.read(vectors, lengths, before[1])
        if types.state is None or names.state is None:
            return NELMOutput(types.vectors, types, names, None)
        return NELMOutput(types.vectors, types, names, [*types.state, *names.state])

    def log_likelihood(self, output: NELMOutput, typed: Tensor) -> Tensor:
        """Return log P(y), (B, S), of words whose types are not looked at."""
        words, table, bias = typed % self.words, self.type_model.embedding, self.type_model.bias
        vectors = output.vectors
        flat: Tensor
        [flat] = LogSumExp.apply(vectors.flatten(0, 1), table, bias, [ALL])  # type: ignore[no-untyped-call]
        sums = flat.view(words.shape)
        general = self.reduced[words]
        own = ((vectors * table[general]).sum(-1) + bias[general]).masked_fill(
            ~self.name_model.members[0][words], -torch.inf
        )
        names = vectors @ table[self.general :].T + bias[self.general :]  # (B, S, K)
        log_types = torch.cat([own[..., None], names], dim=-1) - sums[..., None]
        certain = output.names._replace(types=torch.zeros_like(log_types))
        within = self.name_model.joint(certain, words)  # log P(y | τ)
        within = torch.cat([torch.zeros_like(within[..., :1]), within[..., 1:]], dim=-1)
        return (log_types + within).logsumexp(-1)

    def loss(self, output: NELMOutput, typed: Tensor, real: Tensor) -> Tensor:
        """Return the loss of typed words (B, S) where they are real: that of the types, and that of names."""
        total = self.type_model.loss(output.types, self.replaced(typed), real)
        types = typed // self.words
        names = real & (types > 0)
        if bool(names.any()):
            types = types[names]
            certain = torch.full((len(types), len(self.name_model.members)), -torch.inf, device=types.device)
            certain[torch.arange(len(types)), types] = 0.0
            chosen = output.names._replace(vectors=output.names.vectors[names][None], types=certain[None])
            total = total + self.name_model.loss(chosen, (typed % self.words)[names][None])
        return total


# -- typed texts --------------------------------------------------------------


class TypedTexts(NamedTuple):
    """Texts whose words have types, and what the vocabulary of each type is.

    Attributes:
        vocabulary: words of all systems.
        members: (1 + K, V) bool.
        parts: (N,) words plus V times their types, of each part.
    """

    vocabulary: TypedVocabulary
    members: NDArray[np.bool_]
    parts: Mapping[str, Numbers]


def label_types(gold: Path) -> Iterator[tuple[str, str]]:
    """Yield the tokens of labelled text with the types of their names, "" outside of names."""
    for document in read_names(gold):
        text, tokens = document.document.text, document.document.tokens or ()
        types = {
            token: name.type
            for name in document.names
            for token in tokens
            if name.start <= token[0] < name.end
        }
        for token in tokens:
            yield text[token[0] : token[1]], types.get(token, "")


def labelled_words(vocabulary: TypedVocabulary, text: Path, gold: Path) -> Numbers:
    """Return the words of a plain text with the types that its labelled file gives them.

    Raises:
        SystemExit: if the two have other words.
    """
    sequence, labels = [vocabulary.end], label_types(gold)
    numbers = {"": 0} | {kind: number for number, kind in enumerate(vocabulary.types, 1)}
    for sentence in read_words(text, vocabulary.style):
        for word, number in zip(sentence, vocabulary.ids(sentence), strict=True):
            token, kind = next(labels, ("", ""))
            if token != word or kind not in numbers:
                raise SystemExit(f"{text} has the word {word!r} where {gold} has {token!r} of type {kind!r}")
            sequence.append(number + len(vocabulary) * numbers[kind])
        sequence.append(vocabulary.end)
    return np.array(sequence, np.int64)


def words_of_kb(vocabulary: TypedVocabulary, text: Path) -> Numbers:
    """Return the words of a plain text with their likeliest types in the knowledge base."""
    types = np.where(vocabulary.members[1:].any(0), 1 + vocabulary.prior[:, 1:].argmax(1), 0)
    words = vocabulary.read([text])
    typed: Numbers = words + len(vocabulary) * types[words]
    return typed


def vocabularies(vocabulary: TypedVocabulary, learn: Numbers) -> NDArray[np.bool_]:
    """Return which words are general and which are names of each type, (1 + K, V).

    Names of a type are those of the knowledge base, and the words that have the type in the typed text; the
    rest are general words, and those that the text has without a type. What is unknown may be of any.
    """
    members = vocabulary.members.copy()
    types, words = np.divmod(learn, len(vocabulary))
    members[types, words] = True
    members[0] = ~members[1:].any(0)
    members[0, words[types == 0]] = True
    members[:, vocabulary.unknown] = True
    members[0, vocabulary.end] = True
    return members


def conll_texts(bench: conll.Bench, training: KALMTraining) -> TypedTexts:
    """Return the parts of CoNLL-2003 with the types of their labels."""
    vocabulary = conll.data_of(bench.home, training, bench.kb).vocabulary
    parts = {
        part: labelled_words(vocabulary, bench.text(part), bench.gold(part))
        for part in ("train", "testa", "testb")
    }
    return TypedTexts(vocabulary, vocabularies(vocabulary, parts["train"]), parts)


def recipe_texts(bench: RecipeBench, training: KALMTraining) -> TypedTexts:
    """Return the parts of the recipes with the types of the knowledge base."""
    vocabulary = conll.data_of(bench.home, training, RECIPE_KB).vocabulary
    parts = {part: words_of_kb(vocabulary, bench.text(part)) for part in ("train", "valid", "test")}
    return TypedTexts(vocabulary, vocabularies(vocabulary, parts["train"]), parts)


# -- training -----------------------------------------------------------------


def train(texts: TypedTexts, training: KALMTraining, folder: Path, device: str = "auto") -> dict[str, Any]:
    """Train an NE-LM, go on with one that was stopped, and return its scores; they are computed once.

    Args:
        texts: first what is learnt from, then what chooses the epoch, then the rest.
        training: settings, as of the KALM that it is compared with.
        folder: folder for checkpoints and scores.
        device: torch device.

    Raises:
        StoppedTraining: on Ctrl-C or SIGTERM, once a checkpoint is written.
    """
    path = folder / "scores.json"
    if path.exists():
        scores: dict[str, Any] = json.loads(path.read_bytes())
        return scores
    torch.manual_seed(training.seed)
    model: Any = NELM(torch.from_numpy(texts.members), SIZES, training.bidirectional)
    carried, count = CarriedState(), len(texts.vocabulary)
    unknown = [
        word + count * kind for word in texts.vocabulary.all_unknown for kind in range(len(texts.members))
    ]
    learn, dev = list(texts.parts.values())[:2]

    def scored(words: Numbers) -> dict[str, float]:
        score = score_words(model, words, unknown, length=LENGTH)
        return {"nats": score.nats, "perplexity": score.perplexity}

    trained = fit(
        model, word_batches(training, learn), loss_with_states(model, carried),
        [torch.optim.Adam(model.parameters(), lr=RATE)], schedule_of(training, device), folder,
        evaluate=lambda _: {"log_likelihood": -scored(dev)["nats"]},
        carried=None if training.bidirectional else carried,
    )  # fmt: skip
    scores = {part: scored(words) for part, words in [*texts.parts.items()][1:]}
    scores |= {"seconds": trained.seconds, "epochs": len(scores_by_epoch(trained)["epochs"])}
    path.write_text(json.dumps(scores), encoding="utf-8")
    return scores


def rows(
    texts: TypedTexts, training: KALMTraining, names: Iterable[str], folder: Path, device: str
) -> Iterator[list[str]]:
    """Yield a row of the table for each model; what was trained is not trained again."""
    for name in names:
        chosen = replace(training, bidirectional=MODELS[name])
        key = blake2b(repr((name, chosen)).encode(), digest_size=6).hexdigest()
        scores = train(texts, chosen, folder / f"{name}-{key}", device)
        figures = [
            f"{scores[part][measure]:{form}}"
            for part in [*texts.parts][1:]
            for measure, form in (("nats", ".3f"), ("perplexity", ".2f"))
        ]
        yield [name, *figures, f"{scores['epochs']}", f"{scores['seconds'] / 60:.1f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is not there, and write the table to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ne_lm")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=conll.DATA, help="folder of data sets")
    parser.add_argument("--kb", default="conll", help="knowledge base of types")
    parser.add_argument("--recipes", type=float, metavar="SHARE", help="of this share of the recipes instead")
    parser.add_argument("--only", action="append", choices=[*MODELS])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--min-count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args(arguments)
    home = Home(chosen.home)
    settings = {"epochs": chosen.epochs, "min_count": chosen.min_count, "seed": chosen.seed}
    if chosen.recipes is None:
        bench = conll.Bench(home, chosen.data, chosen.kb, ())
        training = KALMTraining(data=(bench.text("train"),), **settings)
        texts, title = conll_texts(bench, training), "NE-LM on CoNLL-2003"
    else:
        recipes = RecipeBench(home, chosen.data, chosen.recipes, ())
        training = KALMTraining(data=(recipes.text("train"),), style="recipe", **settings)
        texts, title = recipe_texts(recipes, training), "NE-LM on recipes"
    names = chosen.only or [*MODELS]
    table = [*rows(texts, training, names, home.path / "ne-lm", chosen.device)]
    columns = "model", "nats, valid", "perplexity", "nats, test", "perplexity", "epochs", "minutes"
    print(Table(title=title, notes=NOTES, columns=columns, rows=table).markdown())


if __name__ == "__main__":
    main()
