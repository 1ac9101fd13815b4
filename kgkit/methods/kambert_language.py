"""A KAM-BERT as a masked language model: its maps say nothing of the words that it is to guess.

    B  texts    N  word pieces of one    n  hidden ones of a batch    V  the vocabulary

Of a hidden word there is neither a correlation nor a span, and no auxiliary word is chosen by it. What finds
names, chunks and entities reads cloze questions with the answer blanked out, so that no other word tells it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from kgkit.encoder import Encoder
from kgkit.encoder.folder import ENCODER
from kgkit.evaluation.facts import ClozeQuestion
from kgkit.inputs.kambert import WORDS, AnnotatedText, KamBertReader, MappedText
from kgkit.inputs.masking import NOTHING, HiddenPieces, MaskedText, logits_of, pad_labels
from kgkit.methods.cloze import ClozeModel, hide_names
from kgkit.methods.kambert import FOLDER, Annotate, open_maps
from kgkit.methods.links import check_linker
from kgkit.models.kambert import KamBertManifest
from kgkit.models.manifest import checking_settings
from kgkit.models.opening import OpenModel

if TYPE_CHECKING:
    from contextlib import ExitStack

    from kgkit.heads.kambert import KamBert, KamBertInputs
    from kgkit.models.opening import Opening

_BLANK: Final = "_"


class MaskedMaps(NamedTuple):
    """Texts with hidden words, as a KAM-BERT reads them.

    Attributes:
        inputs: what the head reads.
        labels: (B, N) int64, the pieces that are hidden; `NOTHING` elsewhere.
    """

    inputs: "KamBertInputs"
    labels: Tensor

    def to(self, device: torch.device, **_: object) -> "MaskedMaps":
        """Return them on a device."""
        return MaskedMaps(self.inputs.to(device), self.labels.to(device))


def masked_maps(
    reader: KamBertReader, texts: Sequence[Sequence[AnnotatedText]], masked: Sequence[MaskedText]
) -> MaskedMaps:
    """Return texts with hidden words as a batch; their maps say nothing of these words.

    Args:
        reader: reader that read the texts, with what makes their maps.
        texts: what each was read from, with what was found in it.
        masked: the texts as they were read, with pieces hidden.
    """
    mapped = []
    for own, (text, labels) in zip(texts, masked, strict=True):
        words = text.mentions[WORDS]
        positions = np.flatnonzero(labels != NOTHING)
        firsts, ends = np.searchsorted(positions, words.spans.T)
        hidden = words.indices[firsts < ends].tolist()
        mapped.append(MappedText(text, reader.builder(own, hidden, words.indices)))
    inputs = reader.batch(mapped)
    return MaskedMaps(inputs, pad_labels(masked, inputs.ids.shape[1]))


def hidden_logits(kambert: "KamBert", batch: MaskedMaps) -> tuple[Tensor, Tensor]:
    """Return predictions for masked pieces, (n, V) float32 logits, and the pieces that are there, (n,)."""
    hidden = batch.labels != NOTHING
    output = kambert(batch.inputs, positions=hidden)
    return logits_of(output).float(), batch.labels[hidden]


class KamBertClozeModel(ClozeModel, OpenModel):
    """A KAM-BERT around a masked language model, which is asked cloze questions.

    Args:
        name: name in messages.
        encoder: encoder whose tokenizer cuts the questions.
        kambert: head, in evaluation mode.
        reader: reader of the questions, with what makes their maps.
        annotate: function that finds in texts what maps are made of.
        resources: stack that closes the knowledge bases.
    """

    def __init__(
        self,
        name: str,
        encoder: Encoder,
        kambert: "KamBert",
        reader: KamBertReader,
        annotate: Annotate,
        resources: "ExitStack",
    ) -> None:
        super().__init__(name, encoder, reader.tokens)
        self.kambert, self.reader, self._annotate = kambert.eval(), reader, annotate
        self._resources = resources

    @torch.inference_mode()
    def predict(self, questions: Sequence[ClozeQuestion]) -> HiddenPieces:
        """Return predictions for the masked pieces of the names that questions hide, read at once."""
        annotated = self._annotate(_blanked(question) for question in questions)
        texts = self.reader((question.text,) for question in questions)
        counts, names = hide_names(self.tokens, questions, texts, self.mask)
        chosen = [
            (name, own._replace(text=question.text))
            for question, name, own in zip(questions, names, annotated, strict=True)
            if name is not None
        ]
        if not chosen:
            return self.no_pieces(counts)
        batch = masked_maps(self.reader, [[own] for _, own in chosen], [name.text for name, _ in chosen])
        asked_for = batch.labels.clone()
        for row, (name, _) in enumerate(chosen):
            asked_for[row, name.others] = NOTHING
        device = self.kambert.model.device
        logits, gold = hidden_logits(self.kambert, batch._replace(labels=asked_for).to(device))
        return HiddenPieces(logits, gold, counts)


def _blanked(question: ClozeQuestion) -> str:
    """Return the text of a question as long as it is, with the name blanked out."""
    text = question.text
    for start, end in (question.span, *question.others):
        text = text[:start] + _BLANK * (end - start) + text[end:]
    return text


def open_language_model(folder: Path, manifest: KamBertManifest, opening: "Opening") -> KamBertClozeModel:
    """Open a trained KAM-BERT that predicts hidden words, with what its maps are made from.

    Raises:
        NotThere, StaleModel: as `kgkit.methods.kambert.open_maps` does, or if its linker was trained again.
        DamagedModel: if its files cannot be read.
    """
    from kgkit.heads.kambert import KamBert

    check_linker(opening.home, manifest.name, manifest.linker, manifest.linker_sha256)
    encoder = Encoder.load(str((folder / FOLDER / ENCODER).absolute()), device=opening.device)
    kambert = KamBert.from_pretrained(folder / FOLDER, device=opening.device)
    opened = open_maps(folder, manifest, kambert, opening)
    with opened.resources as stack:
        with checking_settings(folder):
            reader = KamBertReader(encoder, opened.builder, size=manifest.size, spaced=manifest.spaced)
        return KamBertClozeModel(manifest.name, encoder, kambert, reader, opened.sources, stack.pop_all())
