"""Pairs of words and word pieces, on which a map is fitted: of the words that vectors keep, or encoded ones.

    F(x)   the vector of the word x, by the encoder that made the vectors of the entities, as an entity is
           encoded that has the label x and nothing else
    E(x)   the input embedding of the word piece x of the target

E-BERT (Poerner et al. 2020, 3.1) takes F from Wikipedia2Vec. Vectors of texts keep no words, so these are
encoded.

    A  texts    S  numbers of a vector
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kgkit.embedding.align.alignment import Alignment, fit_alignment
from kgkit.embedding.align.anchors import Anchors, read_pairs, shared_words
from kgkit.embedding.align.fitting import spread_evenly
from kgkit.embedding.entity_text import Template
from kgkit.embedding.text import encoder_of, is_of_texts, text_settings
from kgkit.embedding.wikipedia2vec import read_words
from kgkit.encoder import Encoder
from kgkit.encoder.vocabulary import vocabulary_words
from kgkit.errors import UsageError
from kgkit.types import Entity, Matrix, Progress
from kgkit.vectors import Vectors

if TYPE_CHECKING:
    from kgkit.kb import KnowledgeBase

_MOST_LABELS: Final = 200_000  # entities whose labels are looked at
_BATCH: Final = 4_096  # entities that are read at once


def align_encoder(
    vectors: Vectors,
    encoder: Encoder,
    *,
    rescale: bool = False,
    pairs: Path | None = None,
    kb: "KnowledgeBase | None" = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Alignment:
    """Map *vectors* into the word-piece space of *encoder*, and save the map beside them.

    For vectors of texts the encoder that made them encodes the words among the pieces, or the texts of a file
    of pairs; all others are mapped by the words that they keep.

    Args:
        vectors: vectors of texts, as `kgkit.embedding.text` makes them, or vectors with words.
        encoder: encoder whose input embeddings are the space.
        rescale: whether all that is mapped gets the mean norm of the word pieces.
        pairs: a file of anchors, word or text and piece, instead of the pieces that are whole words.
        kb: knowledge base of the vectors, whose labels the map is checked on.
        device: torch device that words are encoded on.
        progress: callback with the number of words that are encoded, of how many, then with that of
            steps that are done.

    Raises:
        UsageError: if vectors of texts were made by another encoder of that name, or by one of another width;
            if vectors with words share none with the pieces.
        DamagedVectors: if vectors of texts do not name their encoder.
        NotThere: if their encoder is gone; if other vectors keep no words.
        SourceError: if the file of pairs is none.
        WriteFailed: if the disk refuses the map.
    """
    pieces, _ = encoder.word_pieces()
    piece_of = vocabulary_words(pieces)
    if is_of_texts(vectors):
        words = [] if pairs is not None else sorted(piece_of)
        numbers = {word: number for number, word in enumerate(words)}
        if pairs is None:
            anchors = shared_words(words, pieces)
        else:
            anchors = read_pairs(pairs, lambda text: numbers.setdefault(text, len(numbers)), piece_of.get)
        template = Template(text_settings(vectors)["template"])
        rows = _encoded(vectors, [template(Entity(word, word)) or word for word in numbers], device, progress)
    else:
        words, rows = read_words(vectors)
        if pairs is None:
            anchors = shared_words(words, pieces)
        else:
            row_of = {word: row for row, word in reversed([*enumerate(words)])}
            anchors = read_pairs(pairs, row_of.get, piece_of.get)
    labelled = None if kb is None else _labelled_entities(kb, vectors, pieces)
    return fit_alignment(
        vectors, rows, encoder, anchors, rescale=rescale, labelled=labelled, progress=progress
    )


def _labelled_entities(kb: "KnowledgeBase", vectors: Vectors, pieces: Sequence[str]) -> Anchors:
    """Return entities of *kb* whose label is a word among *pieces*, of several the first, and its row.

    Of a large knowledge base 200,000 entities are looked at, spread evenly.
    """
    chosen = spread_evenly(len(vectors.matrix), _MOST_LABELS)
    labels = [
        entity.label
        for begin in range(0, len(chosen), _BATCH)
        for entity in kb.store.entities(chosen[begin : begin + _BATCH].tolist())
    ]
    anchors = shared_words(labels, pieces)
    return Anchors(chosen[anchors.source], anchors.target)


def _encoded(vectors: Vectors, texts: Sequence[str], device: str, progress: Progress | None) -> Matrix:
    """Return the vectors of *texts* (A, S) by the encoder of *vectors*."""
    about = text_settings(vectors)
    encoder = encoder_of(vectors, device=device)
    if encoder.width != vectors.width:
        raise UsageError(
            f"the encoder {encoder.name} makes vectors of width {encoder.width}, and the vectors "
            f"{vectors.name} have {vectors.width}: it has not made them; make them anew with `kgkit embed "
            f"{vectors.manifest.kb} --method text --name {vectors.manifest.name}`"
        )
    return encoder.encode(
        texts, normalize=about["normalize"], batch_tokens=about["batch_tokens"], progress=progress
    )
