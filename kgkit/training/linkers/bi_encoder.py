"""Two encoders and a linker that are trained together: one reads the documents, one the entities' texts.

Blevins and Zettlemoyer (2020), "Moving Down the Long Tail of Word Sense Disambiguation with Gloss Informed
Bi-encoders", with KnowBert's linker, (1) to (5), where they take a product.

The texts of all candidates are tens of times as long as the sentences of the mentions. So a bank keeps the
vector that each text had when all were encoded last, which `refresh` does now and then, and losses are
computed with those. A step follows the gradient by the vectors of texts for those where it is longest alone:

    ∇θ L ≈ Σ ⟨∂L / ∂b(e), ∇θ g(e; θ)⟩        b(e) in the bank, g(e; θ) encoded now

as in the gradient cache of Gao et al. (2021), but that the bank is older than a batch. What a step has
encoded does not go to the bank: right candidates are encoded more often than wrong ones, so a fresh vector
would betray the answer (tried: the loss falls, and the linker is worth nothing once all texts are fresh).

    n  texts read at once    T  their word pieces    D  width of both encoders    K  layers that are read
    m  mentions    R  candidates of all mentions    N  texts in the bank
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from kgkit.encoder.batches import batches
from kgkit.encoder.encoder import pool
from kgkit.encoder.folder import Pooling
from kgkit.heads.entity_linker import EntityLinker, LinkerInputs
from kgkit.inputs.linking import PaddedLayout
from kgkit.types import Numbers

if TYPE_CHECKING:
    from transformers import PreTrainedModel


_TOKENS: Final = (512, 4_096)  # fewest and most that go through the texts' encoder at once


class TextBatch(NamedTuple):
    """Stretches of text with their mentions, as tensors.

    Attributes:
        ids, mask: (n, T) word pieces, and 1 where there is one, 0 for padding.
        spans: (m, 3) text, first piece, piece behind the last.
        inputs: of the linker, without vectors of mentions and entities.
        right: (B, M, C) which candidates are right.
        mention: (2, m) where each stands in the inputs.
        candidate: (3, R) where each stands there.
        texts: (R,) the row of each candidate in the bank.
    """

    ids: Tensor
    mask: Tensor
    spans: Tensor
    inputs: LinkerInputs
    right: Tensor
    mention: Tensor
    candidate: Tensor
    texts: Tensor


@dataclass
class StepBatch:
    """What is read in one step: texts of like length together; and whether the bank is refreshed before."""

    parts: list[TextBatch]
    refresh: bool = False

    def to(self, device: torch.device, **_: object) -> Self:
        """Return them on a device."""
        return type(self)([_moved(part, device) for part in self.parts], self.refresh)


class BiEncoder(nn.Module):
    """Encoders and linker.

    Args:
        context: encoder of documents.
        texts: encoder of the texts of entities; None keeps their vectors as they are.
        linker: KnowBert's entity linker.
        layers: layers of *context* that are joined to the vector of a mention.
        pooling: pooling of *texts* over the word pieces of a text.
        tokens: word pieces of the texts in the bank, special ones included.
        bank: (N, D) vectors of these texts, at length 1.
        fresh: texts that a step encodes, at most.
        padding: id of the padding token.
    """

    bank: Tensor

    def __init__(
        self,
        context: "PreTrainedModel",
        texts: "PreTrainedModel | None",
        linker: EntityLinker,
        layers: Sequence[int],
        pooling: Pooling,
        tokens: Sequence[Sequence[int]],
        bank: Tensor,
        *,
        fresh: int,
        padding: int,
    ) -> None:
        super().__init__()
        self.context, self.texts, self.linker = context, texts, linker
        self.layers, self.pooling, self.tokens = tuple(layers), pooling, tokens
        self.fresh, self.padding = fresh, padding
        self.register_buffer("bank", bank)

    def forward(self, reads: StepBatch) -> tuple[Tensor, Tensor]:
        """Return the sum of the mentions' losses, and how many have one."""
        if reads.refresh:
            self.refresh(np.arange(len(self.bank)))
        rows = torch.cat([part.texts for part in reads.parts])  # (R,)
        cuts = np.cumsum([len(part.texts) for part in reads.parts])[:-1].tolist()
        learns = self.texts is not None and self.training
        vectors = self.bank[rows].requires_grad_(learns)  # (R, D)
        losses, counts = [], []
        for part, some in zip(reads.parts, vectors.tensor_split(cuts), strict=True):
            spans = self.mentions(part)
            with self._exact():
                output = self.linker(self._inputs(part, spans, some))
                loss, counted = self.linker.losses(output, part.right & _is_ambiguous(part)[..., None])
            losses.append(loss.sum())
            counts.append(counted.sum())
        total = torch.stack(losses).sum()
        if learns:
            total = total + self._of_texts(rows, *torch.autograd.grad(total, vectors, retain_graph=True))
        return total, torch.stack(counts).sum()

    def scores(self, part: TextBatch) -> Tensor:
        """Return ψ (B, M, C) by the texts as the bank has them."""
        with self._exact():
            scores: Tensor = self.linker(
                self._inputs(part, self.mentions(part), self.bank[part.texts])
            ).scores
        return scores

    def mentions(self, part: TextBatch) -> Tensor:
        """Return the vectors (m, K · D) of mentions: means over pieces, layers with a mean square of 1."""
        states = self.context(
            input_ids=part.ids, attention_mask=part.mask, output_hidden_states=True
        ).hidden_states
        hidden = torch.cat([states[layer].float() for layer in self.layers], dim=-1)  # (n, T, K · D)
        sums = functional.pad(hidden.cumsum(1), (0, 0, 1, 0))
        text, first, end = part.spans.unbind(1)
        means = (sums[text, end] - sums[text, first]) / (end - first)[:, None]  # (m, K · D)
        parts = functional.normalize(means.reshape(len(means), len(self.layers), -1), dim=-1)
        vectors: Tensor = parts.flatten(1) * float(parts.shape[-1]) ** 0.5
        return vectors

    def encoded(self, rows: Numbers) -> Iterator[tuple[Numbers, Tensor]]:
        """Yield rows (n,) of the bank, a batch at a time, and what vectors (n, D) their texts have now."""
        assert self.texts is not None
        least, most = _TOKENS
        tokens = [self.tokens[row] for row in rows.tolist()]
        for batch in batches(tokens, least=least, most=most, padding=self.padding):
            ids = torch.from_numpy(batch.ids).to(self.bank.device)
            mask = None if batch.mask is None else torch.from_numpy(batch.mask).to(self.bank.device)
            hidden = self.texts(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            yield rows[batch.rows], functional.normalize(pool(hidden, mask, self.pooling), dim=-1)

    @torch.no_grad()
    def refresh(self, rows: Numbers) -> None:
        """Encode texts anew, by their rows in the bank."""
        if self.texts is not None:
            self.texts.train(False)
            for some, vectors in self.encoded(rows):
                self.bank[torch.from_numpy(some)] = vectors
            self.texts.train(self.training)

    def _of_texts(self, rows: Tensor, slopes: Tensor) -> Tensor:
        """Return 0, with the gradient of the texts that matter most.

        Args:
            rows: (R,) of the candidates, in the bank.
            slopes: (R, D) gradient of the loss by their vectors.
        """
        unique, back = torch.unique(rows, return_inverse=True)
        sums = slopes.new_zeros(len(unique), slopes.shape[1]).index_add_(0, back, slopes)  # (U, D)
        longest = sums.norm(dim=1).topk(min(self.fresh, len(unique)))
        chosen = longest.indices[longest.values > 0]
        slope_of = dict(zip(unique[chosen].tolist(), sums[chosen], strict=True))
        total = slopes.new_zeros(())
        for some, vectors in self.encoded(unique[chosen].cpu().numpy()):
            total = total + (torch.stack([slope_of[row] for row in some.tolist()]) * vectors).sum()
        return total - total.detach()

    def _inputs(self, part: TextBatch, spans: Tensor, vectors: Tensor) -> LinkerInputs:
        empty = part.inputs
        hidden = spans.new_zeros((*empty.mentions.shape, spans.shape[1]))
        entities = vectors.new_zeros((*empty.candidates.shape, vectors.shape[1]))
        scaled = vectors * vectors.shape[1] ** 0.5
        return empty._replace(
            hidden=hidden.index_put(tuple(part.mention), spans),
            vectors=entities.index_put(tuple(part.candidate), scaled),
        )

    def _exact(self) -> AbstractContextManager[object]:
        """Leave bfloat16 to the encoders."""
        return torch.autocast(self.bank.device.type, enabled=False)


def read(
    tokens: Sequence[Sequence[int]],
    spans: Numbers,
    layout: PaddedLayout,
    inputs: LinkerInputs,
    right: Tensor,
    row_of: Callable[[NDArray[np.uint32]], Numbers],
    padding: int,
) -> TextBatch:
    """Return what is read of texts.

    Args:
        tokens: n of them.
        spans: (m, 3) text, first piece, piece behind the last, of the mentions in the order of *layout*.
        layout, inputs, right: see `kgkit.inputs.linking`.
        row_of: function from ids of entities to rows of the bank.
        padding: id of the padding token.
    """
    longest = max(map(len, tokens))
    ids = np.full((len(tokens), longest), padding, np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(tokens):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    as_tensor = torch.from_numpy
    return TextBatch(
        as_tensor(ids), as_tensor(mask), as_tensor(spans), inputs, right,
        as_tensor(np.stack(layout.mention)), as_tensor(np.stack(layout.candidate)),
        as_tensor(row_of(layout.ids)),
    )  # fmt: skip


def freeze(model: "PreTrainedModel", share: float) -> None:
    """Leave the embeddings of a model, and this share of its layers from the bottom, as they are.

    A model whose layers share their weights is trained whole.
    """
    deep = int(model.config.num_hidden_layers)
    stacks = (
        module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == deep
    )
    stack = next(stacks, None)
    if stack is not None:
        model.requires_grad_(False)
        for layer in list(stack)[round(deep * share) :]:
            layer.requires_grad_(True)


def _is_ambiguous(part: TextBatch) -> Tensor:
    """Return (B, M), which mentions have several candidates; a single one gives no gradient."""
    return part.inputs.candidates.sum(-1) > 1


def _moved(part: TextBatch, device: torch.device) -> TextBatch:
    inputs = {name: tensor.to(device) for name, tensor in part.inputs._asdict().items() if tensor is not None}
    tensors = {
        name: tensor.to(device) for name, tensor in part._asdict().items() if isinstance(tensor, Tensor)
    }
    return part._replace(inputs=LinkerInputs(**inputs), **tensors)
