r"""The linker that comes with kgkit, `wsd-minilm`: a portable head, taught by a larger linker.

    python -m benchmarks.teaching_text OUT_DIR [--words 200000]
    python -m benchmarks.small_linker --home HOME --teacher LARGE --name NAME --text OUT_DIR/wiki.txt \
        --without OUT_DIR/wic.txt

HOME holds WordNet and the teacher, a linker of `kgkit train linker` over a larger encoder. The head learns
the gold of SemCor and of WordNet's usage examples but those of WiC, and the teacher's probabilities of what
the mentions of plain text mean: their cross entropy (Hinton et al. 2015). Its features are those of a prior
alone, so that it serves any knowledge base: of labelled data the prior is counted without the document, of
the text it is the knowledge base's. `benchmarks.parts_of_speech` makes its parts of speech.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import structs, to_builtins

import kgkit
from benchmarks.english import DATA
from kgkit.building import text_lines
from kgkit.candidates import Generator, generator_for, longest
from kgkit.embedding.partial import encoder_for
from kgkit.evaluation.calibration import best_temperature
from kgkit.evaluation.plain_text import check_plain, read_plain
from kgkit.home import Home
from kgkit.inputs import SpanReader
from kgkit.inputs.linking import LinkerSentence, sentences_of
from kgkit.kb import KnowledgeBase
from kgkit.linking.head import KIND, HeadScorer, save_head
from kgkit.linking.models import find_scorer
from kgkit.linking.prior_features import prior_features
from kgkit.linking.scoring import Scorer, meanings, shares
from kgkit.linking.text_vectors import open_text_vectors
from kgkit.models.kinds import LINKER
from kgkit.models.manifest import Needs
from kgkit.training.job import Outcome, Plan, run_job
from kgkit.training.linkers.head import HeadConfig, Hidden, LabelledSentence, fit_head, scaling
from kgkit.training.linkers.labelled import LabelledDocument, labelled_examples, labelled_senses, letters
from kgkit.training.linkers.means import LinkerData, TrainingSet, candidate_ids
from kgkit.training.linkers.ridge import held_out_metrics, prior_accuracy
from kgkit.training.linkers.settings import usual_reader
from kgkit.types import Document, Matrix

TEXT_WEIGHT: Final = 0.6
"""The weight of the cosine with the text of a sense, chosen on semeval2007: decision 0058."""

AT_ONCE: Final = 32  # documents that the teacher reads together

Taught = tuple[LabelledDocument, list[Matrix]]
"""A document, its likeliest candidates taken for right, and the teacher's probabilities of each mention."""


def taught_documents(generator: Generator, teacher: Scorer, data: Path) -> Iterator[Taught]:
    """Yield the documents of a file of plain text, with what a teacher says of the mentions in them.

    A document ends at a blank line. Mentions are those that *generator* finds, the longest of those that
    overlap; what a teacher leaves to NULL is shared out among the candidates.
    """
    check_plain(data)
    texts = enumerate(read_plain(data))
    while chunk := [plain_document(number, sentences) for number, sentences in islice(texts, AT_ONCE)]:
        documents = [
            structs.replace(document, mentions=longest(document.mentions))
            for document in generator(chunk)
            if document.mentions
        ]
        for document, scores in zip(documents, teacher(documents), strict=True):
            targets = [*map(shares, scores)]
            best = [np.arange(len(p)) == (p.argmax() if len(p) else 0) for p in targets]
            yield LabelledDocument(document, best), targets


def plain_document(number: int, sentences: Sequence[str]) -> Document:
    """Return sentences as a document, a space between them."""
    ends = list(accumulate(len(sentence) + 1 for sentence in sentences))
    spans = [(begin, end - 1) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
    return Document(str(number), " ".join(sentences), sentences=spans)


class Prior:
    """Gives the candidates of a document the features of a prior.

    Args:
        counted: sets of documents with gold that the prior is counted on: (n + 1) / Σ (n + 1), as WordNet's.
    """

    def __init__(self, counted: Sequence[TrainingSet]) -> None:
        self.counts = Counter[int]()
        for part in counted:
            self.counts.update(part.meanings.tolist())

    def __call__(self, labelled: LabelledDocument, own: Counter[int] | None) -> list[Matrix]:
        """Return (C, F) for each mention; *own* are the document's counts, None for the KB's prior."""
        priors = [
            each.priors
            if own is None
            else np.array([self.counts[m] - own[m] + 1 for m in meanings(each).tolist()], np.float32)
            for each in labelled.candidates
        ]
        sizes = np.array([len(each) for each in priors], np.int64)
        flat = np.concatenate([*priors, np.empty(0, np.float32)])
        return np.split(prior_features(flat, sizes), np.cumsum(sizes)[:-1])


def prior_sentences(
    parts: Sequence[TrainingSet], targets: Mapping[int, Sequence[Sequence[Matrix]]]
) -> Iterator[LabelledSentence]:
    """Yield the sentences of all sets, rows counted through, with the features of a prior alone.

    Args:
        parts: sets of documents; of the first some are held out.
        targets: by the index of a set, the probabilities of each mention of each of its documents.
    """
    prior, row = Prior([part for number, part in enumerate(parts) if number not in targets]), 0
    for index, part in enumerate(parts):
        held_out = set() if index else set(part.documents[part.held_out()].tolist())
        counts: list[Counter[int]] = [Counter() for _ in part.labelled]
        for document, meaning in zip(part.documents.tolist(), part.meanings.tolist(), strict=True):
            counts[document][meaning] += 1
        for number, labelled in enumerate(part.labelled):
            features = prior(labelled, None if index in targets else counts[number])
            answers = targets[index][number] if index in targets else labelled.right
            for indices in sentences_of(labelled.document):
                right = [answers[p] for p in indices]
                ids = [labelled.candidates[p].ids for p in indices]
                sentence = LinkerSentence(row + indices, ids, [features[p] for p in indices], right)
                zeros = [np.zeros(len(features[p]), np.float32) for p in indices]
                trainable = number not in held_out and any(some.any() and len(some) > 1 for some in right)
                yield LabelledSentence(sentence, zeros, index, number in held_out, trainable)
            row += len(labelled.candidates)


def train(
    kb: KnowledgeBase,
    name: str,
    gold: Callable[[Generator], Sequence[Sequence[LabelledDocument]]],
    taught: Callable[[Generator], Sequence[Taught]],
    config: HeadConfig,
    *,
    files: Sequence[Path] = (),
    **reading: Any,
) -> Path:
    """Train the head, and return its folder.

    Args:
        kb: knowledge base of the senses.
        name: name of the head.
        gold: function that returns sets of documents with gold; of the first some are held out.
        taught: function that returns what a teacher says.
        config: settings of the head.
        files: files that are read.
        reading: `encoder` of texts and mentions, and `reader`, its settings; both have a default.
    """
    home = Home(kb.home.path.parents[1])

    def prepare(_: ExitStack) -> Plan:
        generator = generator_for(kb, max_candidates=None, overlaps=True)
        vectors = open_text_vectors(kb, encoder=reading.get("encoder"))
        encoder = encoder_for(vectors)
        reader = SpanReader(encoder, reading.get("reader") or usual_reader(encoder))
        first, *others = gold(generator)
        learnt = taught(generator)
        sources = [first, [labelled for labelled, _ in learnt], *others]
        vectors.prepare(candidate_ids(sources))
        parts = [TrainingSet(reader, source, home.cache / "features", None) for source in sources]

        def fit(work: Path) -> Outcome:
            data = LinkerData(reader, vectors, parts)
            sentences = [*prior_sentences(parts, {1: [targets for _, targets in learnt]})]
            scale = scaling(sentences)
            sentences = [sentence.scaled(scale) for sentence in sentences]
            head = fit_head(data, None, sentences, scale, config, work, device="auto", progress=None)
            scorer = HeadScorer(reader, vectors, None, head.network(), scale)
            held_out = [sentence for sentence in sentences if sentence.held_out]
            scored = list(Hidden(parts).summed(scorer, held_out))
            temperature = best_temperature(scored, 1.0)

            def save(staged: Path, _: Mapping[str, Any]) -> dict[str, Any]:
                about = vectors.manifest
                return {
                    "type": KIND, "task": "wsd", "needs": Needs(), "vectors": about.name, "version": "",
                    "encoder": about.config["encoder"], "fingerprint": about.config["fingerprint"],
                    "reader": to_builtins(reader.config), "temperature": temperature,
                    "config": save_head(staged, head, scale, TEXT_WEIGHT, half=True),
                }  # fmt: skip

            return Outcome(held_out_metrics(scored, temperature) | prior_accuracy(scored), save)

        return Plan(kb.build, fit)

    return run_job(LINKER, home, name, config, prepare, files=files, seed=config.seed)


def main() -> None:
    """Train the linker."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_linker")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--without", type=Path, required=True)
    chosen = parser.parse_args()
    data, gold = (DATA / "semcor" / f"semcor.{part}.xz" for part in ("data.xml", "gold.key.txt"))
    without = frozenset(letters(line) for _, line in text_lines(chosen.without))
    with kgkit.open_kb("wordnet", home=chosen.home) as kb:
        teacher = find_scorer(chosen.teacher, kb)
        folder = train(
            kb, chosen.name,
            lambda generator: [
                [*labelled_senses(kb, generator, data, gold)],
                [*labelled_examples(kb, generator, without=without)],
            ],
            lambda generator: [*taught_documents(generator, teacher, chosen.text)],
            HeadConfig(), files=(data, gold, chosen.text, chosen.without),
        )  # fmt: skip
    print(folder)


if __name__ == "__main__":
    main()
