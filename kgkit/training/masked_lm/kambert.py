"""Training what a KAM-BERT has beside its encoder, as a masked language model: the task `mlm`.

The masked language model stays as it is. Of the word pieces 15 % are hidden as `kgkit.inputs.masking` has it,
drawn anew in each epoch.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder.folder import ENCODER
from kgkit.errors import UsageError
from kgkit.heads.attention_mixing import KamBertConfig
from kgkit.heads.kambert import KamBert
from kgkit.inputs.kambert import AnnotatedText, KamBertReader
from kgkit.inputs.masking import Masking, masking_of
from kgkit.inputs.passages import Passage
from kgkit.linking.hidden_words import perplexity_of_batches
from kgkit.methods.cloze_opening import open_masked_lm
from kgkit.methods.contract import Resources
from kgkit.methods.kambert import FOLDER, Annotate, begin_maps
from kgkit.methods.kambert_language import MaskedMaps, hidden_logits, masked_maps
from kgkit.methods.kambert_settings import KamBertTraining
from kgkit.training.job import Outcome, Plan, scores_by_epoch
from kgkit.training.passages import passages_of
from kgkit.training.tasks import about_data, fit_method, manifest_fields
from kgkit.types import Progress

if TYPE_CHECKING:
    from kgkit.methods.cloze_opening import MaskedLanguageModel
    from kgkit.methods.kambert import MapsBeginning


class MaskedPassages:
    """Batches of passages with hidden words, in another order each epoch: see `kgkit.training.batches`.

    Args:
        passages: texts.
        reader: reader of the texts.
        annotate: function that finds in texts what maps are made of.
        masking: what hides words.
        size: texts of a batch.
        seed: seed of order and hidden words.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        reader: KamBertReader,
        annotate: Annotate,
        masking: Masking,
        *,
        size: int,
        seed: int,
    ) -> None:
        self.passages, self.reader, self.masking = passages, reader, masking
        self.size, self.seed, self._annotate = size, seed, annotate
        self._annotated: dict[str, AnnotatedText] = {}

    def __len__(self) -> int:
        return math.ceil(len(self.passages) / self.size)

    def epoch(self, number: int, indices: Sequence[int]) -> Iterator[MaskedMaps]:
        """Yield the batches at *indices* of an epoch's order, which depends on seed and *number* alone."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.passages))
        for index in indices:
            chosen = order[index * self.size : (index + 1) * self.size]
            yield self.batch([self.passages[at] for at in chosen], (number, index))

    def batch(self, passages: Sequence[Passage], drawn: tuple[int, int]) -> MaskedMaps:
        """Return passages as a batch; what is hidden depends on the seed and on *drawn*."""
        texts = [passage.texts[0] for passage in passages]
        new = [text for text in dict.fromkeys(texts) if text not in self._annotated]
        self._annotated.update(zip(new, self._annotate(new), strict=True))
        generators = np.random.default_rng([self.seed, *drawn, 1]).spawn(len(texts))
        read = self.reader((text,) for text in texts)
        masked = [self.masking(text, own) for text, own in zip(read, generators, strict=True)]
        return masked_maps(self.reader, [[self._annotated[text]] for text in texts], masked)


def _loss(model: nn.Module, batch: MaskedMaps) -> tuple[Tensor, float]:
    kambert: Any = model
    logits, gold = hidden_logits(kambert, batch)
    return functional.cross_entropy(logits, gold), float(len(gold))


def plan_language_model(training: KamBertTraining, resources: Resources, progress: Progress | None) -> Plan:
    """Begin a KAM-BERT, and read the texts that it is trained on as a masked language model.

    Args:
        training: settings.
        resources: home and device; the facts of its knowledge bases are a map.
        progress: as `kgkit.training.tasks.train_method` takes it.

    Raises:
        UsageError: if the encoder is no masked language model, or there is nothing to learn.
        The rest as `kgkit.training.tasks.train_method` does.
    """
    home, kbs, device, stack = resources
    masked_lm = stack.enter_context(open_masked_lm(training.encoder, home, device))
    beginning = begin_maps(training, [chosen.kb for chosen in kbs], home, device)
    kambert = _begin_head(masked_lm, beginning, training)
    encoder = masked_lm.encoder
    reader = KamBertReader(encoder, beginning.builder, size=training.size)
    passages = passages_of(training, reader, paired=False, progress=progress)
    settings = {"size": training.batch, "seed": training.seed}
    learnt, held_out = (
        MaskedPassages(part, reader, beginning.sources, masking_of(encoder), **settings)
        for part in (passages.learn, passages.held_out)
    )

    def evaluate(_: Any) -> dict[str, float]:
        size = training.batch
        parts = (passages.held_out[index * size : (index + 1) * size] for index in range(len(held_out)))
        batches = (held_out.batch(part, (0, index)) for index, part in enumerate(parts))
        score = perplexity_of_batches(hidden_logits(kambert, batch.to(encoder.device)) for batch in batches)
        return {"gain": -score.perplexity, "perplexity": score.perplexity, "accuracy": score.accuracy}

    def train(work: Path) -> Outcome:
        groups = [{"params": [*kambert.mixing.parameters()], "lr": training.lr_new, "weight_decay": 0.0}]
        trained = fit_method(
            kambert, learnt, _loss, groups, training, work,
            device=device, evaluate=evaluate if passages.held_out else None, progress=progress,
        )  # fmt: skip
        counts = {"passages": len(passages.learn), "held_out": len(passages.held_out)}
        scores = scores_by_epoch(trained)
        for row in (scores, *scores["epochs"]):
            row.pop("gain", None)
        return Outcome({**scores, **counts, "seconds": trained.seconds}, save)

    def save(folder: Path, _: Mapping[str, Any]) -> dict[str, Any]:
        kambert.save_pretrained(folder / FOLDER, about=about_data(training, home))
        encoder.save_tokenizer(folder / FOLDER / ENCODER)
        return {**manifest_fields(training), **beginning.fields}

    return Plan((encoder.fingerprint, beginning.identity), train, needs=beginning.fields["needs"])


def _learns(config: KamBertConfig) -> bool:
    """Return whether the logits of attention depend on a weight that is learnt."""
    if config.kernel == "1":
        return config.alpha > 0 and bool(config.maps)
    return (config.has_skip and config.layers > 1) or (config.alpha > 0 and config.kernel == "3")


def _begin_head(
    masked_lm: "MaskedLanguageModel", beginning: "MapsBeginning", training: KamBertTraining
) -> KamBert:
    """Return a head around a masked language model, whose own weights are not trained.

    Raises:
        UsageError: if it has no weights to train.
    """
    model = masked_lm.model
    drawn = torch.Generator().manual_seed(training.seed)
    kambert = KamBert(model, KamBertConfig.of(model, **beginning.config), generator=drawn)
    if not _learns(kambert.config):
        raise UsageError(
            f"the kernel {training.kernel} has no weights to train as it is set: choose another kernel, or "
            "skip connections, an α above 0, or for the kernel 1 a source of a map"
        )
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return kambert.to(masked_lm.encoder.device)
