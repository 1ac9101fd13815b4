"""KALM, a language model with latent types: Liu, Du, Stoyanov (2019), "Knowledge-Augmented Language Model".

    B  rows of words    T  words of one       V  the vocabulary    K  types; type 0 is that of general words
    E  an embedding     H  an inner layer     D  a type embedding  S  words that are predicted

    words (B, T) ─embedding─▶ (B, T, E) ─LSTMs─▶ h (B, T, E) ─embedding, transposed─▶ words (B, S, V)
                      ▲                             └─W^h, W^e─▶ types (B, S, 1 + K)
                      └──── mean type embedding ν ───────┘

Below is an AWD-LSTM (Merity, Keskar and Socher 2018) with tied embeddings and without weight drop. A word is
a mixture over types, each of which has a vocabulary V_j:

    (3)  P(y) = Σ_j P(y | τ = j) P(τ = j)
    (4)  P(y = i | τ = j) = exp(W^p_i · h) / Σ_{w ∈ V_j} exp(W^p_w · h)
    (5)  P(τ = j) = softmax_j(W^e_j · (W^h h))
    (6)  ν = Σ_j P(τ = j) W^e_j, of the next word,
    (7)  ỹ = [y; ν]: which is joined to that word where it is read
    (8)  both contexts: h is that before the word and, of a model from right to left, that behind it
    (9)  types of both contexts, as in (5)
    (10) P(τ | contexts, y) = α P(τ | contexts) + β P(τ | y), with P(τ | y) from a knowledge base
    (11) loss: − log P(y) + λ KL(P(τ | contexts) ‖ P(τ | y))²

Departures:
    In (10) `posterior` stands in the place of P(τ | contexts): P(τ | contexts, y) ∝ P(y | τ) P(τ | contexts).
    λ of (11) is 0, as trainings of kgkit have it.

K = 0 is the AWD-LSTM. With (6) and (7) a word is read after the types of it are known, so the LSTMs go word
by word; without, each reads its sequence at once.

What the paper leaves open:
    W^p of all vocabularies is one matrix, tied to the embeddings, so a word has one vector in all of them.
    From 2 E of both contexts to the tied E: a linear layer without bias.
    In (6) each direction is fed the types of its own states, by its half of W^h; those of both contexts have
    read the word that is to be predicted. The loss and the types of both directions are those of the T − 2
    inner words.
    Dropout of the input is that of embeddings; ν is not dropped.
    A word whose P(τ | y) is uniform, as of an open name, has no divergence in (11).
    P(τ | y) has zeros, where the divergence in (11) is infinite: it is mixed with 1 % (`_SMOOTHING`) of the
    uniform distribution.
    The first weights of W^e and W^h: uniform in ±0.1, as the embeddings; LSTMs begin as torch has them.
    AR and TAR of both directions are the means of theirs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgkit.errors import DamagedModel, UsageError
from kgkit.heads.folder import SavedHead
from kgkit.ranges import check_range

if TYPE_CHECKING:
    from typing import Self


def locked_mask(like: Tensor, share: float, training: bool) -> Tensor:
    """Return a mask of the shape of *like*, (B, 1, width), which is the same for all words of a row."""
    return functional.dropout(torch.ones_like(like), share, training)


def mean_square(states: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the mean of the squares of states (B, T, ·) that are not padding."""
    squares = states.pow(2)
    if lengths is None:
        return squares.mean()
    return squares[torch.arange(states.shape[1], device=states.device) < lengths[:, None]].mean()


def turn_rows(vectors: Tensor, lengths: Tensor | None) -> Tensor:
    """Return rows (B, T, ·) with their words in the other order; what is padded stays behind."""
    if lengths is None:
        return vectors.flip(1)
    positions = torch.arange(vectors.shape[1], device=vectors.device)
    turned = lengths[:, None] - 1 - positions  # (B, T)
    turned = torch.where(turned >= 0, turned, positions)
    return vectors.gather(1, turned[..., None].expand_as(vectors))


_LOGITS: Final = (2_000_000, 200_000_000)  # that are computed at a time: on a CPU, elsewhere


class WordRows(NamedTuple):
    """Words that are summed over, and the rows that ask for the sum.

    Attributes:
        rows: numbers of rows, each once.
        words: numbers of words, each once.
    """

    rows: slice | Tensor
    words: slice | Tensor


ALL: Final = WordRows(slice(None), slice(None))
"""All words, for all rows."""


class LogSumExp(torch.autograd.Function):
    """log Σ_{v ∈ V_j} exp(W_v · x + b_v) of N rows x, without the logits: the gradient computes them again.

    Some rows at a time, whose logits fit into a cache of a CPU. All vocabularies share one gradient of W.

    Examples:
        >>> [sums] = LogSumExp.apply(vectors, weights, bias, [ALL])
    """

    @staticmethod
    def forward(
        ctx: Any, vectors: Tensor, weights: Tensor, bias: Tensor, vocabularies: Sequence[WordRows]
    ) -> tuple[Tensor, ...]:
        """Return the sums (N_j,) of each vocabulary, for vectors (N, E), weights (V, E) and bias (V,)."""
        results = []
        ctx.set_materialize_grads(False)
        for rows, words in vocabularies:
            chosen, table, shift = vectors[rows], weights[words], bias[words]
            sums = vectors.new_empty(len(chosen))
            for part in _parts(chosen, table):
                sums[part] = torch.addmm(shift, chosen[part], table.T).logsumexp(-1)
            results.append(sums)
        ctx.vocabularies = vocabularies
        ctx.save_for_backward(vectors, weights, bias, *results)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, Tensor, None]:
        """Return the gradients of vectors, weights and bias, for those of the sums."""
        vectors, weights, bias, *results = ctx.saved_tensors
        of_vectors, of_weights, of_bias = map(torch.zeros_like, (vectors, weights, bias))
        for (rows, words), sums, gradient in zip(ctx.vocabularies, results, gradients, strict=True):
            if gradient is None or not len(sums):
                continue
            chosen, table, shift = vectors[rows], weights[words], bias[words]
            of_chosen, of_table, of_shift = map(torch.zeros_like, (chosen, table, shift))
            for part in _parts(chosen, table):
                shares = torch.addmm(shift, chosen[part], table.T).sub_(sums[part, None]).exp_()
                shares.mul_(gradient[part, None])
                of_chosen[part] = shares @ table
                of_table.addmm_(shares.T, chosen[part])
                of_shift += shares.sum(0)
            of_vectors[rows] += of_chosen
            of_weights[words] += of_table
            of_bias[words] += of_shift
        return of_vectors, of_weights, of_bias, None


def _parts(vectors: Tensor, weights: Tensor) -> list[slice]:
    """Return slices of rows, such that so many logits are computed at a time as the device computes well."""
    size = max(1, _LOGITS[vectors.device.type != "cpu"] // max(1, len(weights)))
    return [slice(begin, begin + size) for begin in range(0, len(vectors), size)]


KIND: Final = "kalm"

_INITIAL: Final = 0.1  # weights are drawn from ± this

_MOST_LAYERS: Final = 100  # settings of a few bytes ask for no more
_SMOOTHING: Final = 0.01  # share of the uniform distribution in P(τ | y) of equation (11)

State = list[tuple[Tensor, Tensor]]
"""Hidden and cell state, (B, width) each, of every layer."""


@dataclass(frozen=True, kw_only=True)
class KALMConfig:
    """Settings of `KALM`; the defaults are the paper's.

    Attributes:
        words: V.
        types: K names of types; none: an AWD-LSTM.
        bidirectional: whether a word is predicted from both sides.
        embedding, hidden, type_width: E, H and D.
        layers: number of LSTMs; the last one has width E.
        dropout_words: dropout of whole words of the vocabulary.
        dropout_input, dropout_hidden, dropout_output: locked dropout of the embeddings, between layers, and
            behind the last one.
        activation: AR, the weight of the squares of the dropped states.
        slowness: TAR, the weight of the squared differences of states that follow each other.
        prior_weight: λ of equation (11).
    """

    words: int
    types: tuple[str, ...] = ()
    bidirectional: bool = False
    embedding: int = 400
    hidden: int = 1150
    type_width: int = 100
    layers: int = 3
    dropout_words: float = 0.1
    dropout_input: float = 0.65
    dropout_hidden: float = 0.3
    dropout_output: float = 0.4
    activation: float = 2.0
    slowness: float = 1.0
    prior_weight: float = 0.0

    REMOVED: ClassVar[Mapping[str, object]] = {"feedback": True, "smoothing": 0.01}

    def __post_init__(self) -> None:
        check_range(self, "words", "embedding", "hidden", "type_width", least=1)
        check_range(self, "layers", least=1, most=_MOST_LAYERS)
        drops = "dropout_words", "dropout_input", "dropout_hidden", "dropout_output"
        check_range(self, *drops, least=0, below=1)
        check_range(self, "activation", "slowness", "prior_weight", least=0)
        if len({*self.types}) < len(self.types) or not all(self.types):
            raise UsageError(f"types are {self.types}: none of them empty, or twice")

    def widths(self) -> list[tuple[int, int]]:
        """Return the widths of the input and of the output of each layer."""
        inner = [self.hidden] * (self.layers - 1)
        read = self.embedding + (self.type_width if self.types else 0)
        return list(zip([read, *inner], [*inner, self.embedding], strict=True))


class KALMOutput(NamedTuple):
    """What KALM says of the words that it predicts.

    Attributes:
        vectors: (B, S, E), which the projection to words reads.
        types: (B, S, 1 + K), log P(τ) in the context.
        dropped, raw: states of the last layers, after and before dropout, (B, T, E) of each direction.
        state: state of the layers behind the last word of a model from left to right; of both directions
            None.
        lengths: (B,) int64, words of each row that was read; None: all.
    """

    vectors: Tensor
    types: Tensor
    dropped: list[Tensor]
    raw: list[Tensor]
    state: State | None
    lengths: Tensor | None = None


class LSTMStack(nn.Module):
    """LSTMs above each other, with locked dropout between them, in one direction.

    Args:
        config: settings.
    """

    def __init__(self, config: KALMConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(nn.LSTM(*widths, batch_first=True) for widths in config.widths())

    def begin(self, rows: int) -> State:
        """Return the state before the first word of *rows* rows: zeros."""
        weight = next(self.parameters())
        return [
            (weight.new_zeros(rows, width), weight.new_zeros(rows, width))
            for _, width in self.config.widths()
        ]

    def forward(
        self, words: Tensor, state: State, types: "TypeLayer | None", half: slice
    ) -> tuple[Tensor, State]:
        """Return the states (B, T, E) of the last layer, and those of all layers behind the last word.

        Args:
            words: (B, T, E).
            state: before the first of them.
            types: layer of the types that are fed back; None: none are.
            half: columns of W^h that this direction has.
        """
        masks = [
            locked_mask(words.new_ones(len(words), 1, width), self.config.dropout_hidden, self.training)
            for _, width in self.config.widths()[:-1]
        ]
        if types is not None:
            return self._step(words, state, masks, types, half)
        last, states = words, []
        for number, layer in enumerate(self.layers):
            before = tuple(part[None].contiguous() for part in state[number])
            last, (hidden, cell) = layer(last, before)
            states.append((hidden[0], cell[0]))
            if number < len(masks):
                last = last * masks[number]
        return last, states

    def _step(
        self, words: Tensor, state: State, masks: list[Tensor], types: "TypeLayer", half: slice
    ) -> tuple[Tensor, State]:
        """Return what `forward` does, word by word, with the types of each word from the states before it."""
        state, results = [*state], []
        for index in range(words.shape[1]):
            mean = types.mean(types(state[-1][0], half))  # (B, D), equation (6)
            last = torch.cat([words[:, index], mean], dim=-1)  # equation (7)
            for number, layer in enumerate(self.layers):
                weights = layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0
                hidden, cell = torch.lstm_cell(last, state[number], *weights)  # type: ignore[arg-type]
                state[number] = hidden, cell
                last = hidden * masks[number][:, 0] if number < len(masks) else hidden
            results.append(last)
        return torch.stack(results, dim=1), state


class TypeLayer(nn.Module):
    """Types of the next word, equations (5) and (6).

    Args:
        config: settings, with types.
    """

    def __init__(self, config: KALMConfig) -> None:
        super().__init__()
        directions = 2 if config.bidirectional else 1
        self.embedding = nn.Parameter(torch.empty(1 + len(config.types), config.type_width))  # W^e
        self.projection = nn.Parameter(torch.empty(config.type_width, directions * config.embedding))  # W^h
        for weight in self.parameters():
            nn.init.uniform_(weight, -_INITIAL, _INITIAL)

    def forward(self, states: Tensor, half: slice | None = None) -> Tensor:
        """Return log P(τ), (..., 1 + K), of states (..., 2 E), or (..., E) of the direction with *half*."""
        projection = self.projection if half is None else self.projection[:, half]
        return torch.log_softmax(states @ projection.T @ self.embedding.T, dim=-1)

    def mean(self, types: Tensor) -> Tensor:
        """Return ν, the mean type embedding (..., D), for log P(τ)."""
        return types.exp() @ self.embedding


class KALM(SavedHead):
    """A language model of words whose types are latent.

    Args:
        config: settings.
        members: (1 + K, V) bool, the vocabulary of each type; None: all words are in each, to be filled from
            a file. No vocabulary is empty, and each word is in one.
        prior: (V, 1 + K), P(τ | y); None: uniform.

    Examples:
        >>> kalm = KALM(KALMConfig(words=5, types=("LOC",)), members, prior)
        >>> output = kalm(words[:, :-1])                    # (B, T) int64
        >>> kalm.loss(output, words[:, 1:]).backward()
        >>> kalm.log_likelihood(output, words[:, 1:])       # (B, T), nats of each word
    """

    kind, settings = KIND, KALMConfig
    config: KALMConfig
    members: Tensor
    prior: Tensor

    def __init__(
        self, config: KALMConfig, members: Tensor | None = None, prior: Tensor | None = None
    ) -> None:
        super().__init__()
        self.config = config
        kinds = 1 + len(config.types)
        if members is None:
            members = torch.ones(kinds, config.words, dtype=torch.bool)
        if prior is None:
            prior = torch.full((config.words, kinds), 1 / kinds)
        self.register_buffer("members", members)
        self.register_buffer("prior", prior)
        self.embedding = nn.Parameter(torch.empty(config.words, config.embedding))  # W^p too
        self.bias = nn.Parameter(torch.zeros(config.words))
        nn.init.uniform_(self.embedding, -_INITIAL, _INITIAL)
        self.directions = nn.ModuleList(LSTMStack(config) for _ in range(1 + config.bidirectional))
        self.join = (
            nn.Linear(2 * config.embedding, config.embedding, bias=False) if config.bidirectional else None
        )
        self.types = TypeLayer(config) if config.types else None
        self._indices: list[slice | Tensor] | None = None

    # -- words that are read ----------------------------------------------------

    def forward(self, words: Tensor, lengths: Tensor | None = None, state: State | None = None) -> KALMOutput:
        """Return what is said of words.

        From left to right output s is of the word behind words[:, s], S = T; of both directions it is of the
        word words[:, s + 1], S = T − 2.

        Args:
            words: (B, T) int64.
            lengths: (B,) int64, words of each row, the first ones; None: all. What is padded reaches no other
                word, and the outputs for it mean nothing.
            state: state that the words before them left, of a model from left to right; None: zeros.

        Raises:
            UsageError: if a model of both directions gets a state, or fewer than three words.
        """
        return self.read(self.embed(words), lengths, state)

    def embed(self, words: Tensor) -> Tensor:
        """Return the embeddings of words, (B, T, E), of which some words of the vocabulary are dropped."""
        vectors = functional.embedding(words, self.embedding)
        keeps = self.embedding.new_ones(self.config.words, 1)
        return vectors * functional.embedding(
            words, functional.dropout(keeps, self.config.dropout_words, self.training)
        )

    def read(self, vectors: Tensor, lengths: Tensor | None = None, state: State | None = None) -> KALMOutput:
        """Return what is said of words whose embeddings (B, T, E) are given; see `forward`."""
        config = self.config
        if config.bidirectional and (state is not None or vectors.shape[1] < 3):
            raise UsageError(
                f"found {vectors.shape[1]} words{' and a state' if state is not None else ''}: a model of "
                "both directions reads three or more, and carries no state"
            )
        vectors = vectors * locked_mask(vectors[:, :1].detach(), config.dropout_input, self.training)
        raw, dropped = [], []
        for number, stack in enumerate(self.directions):
            assert isinstance(stack, LSTMStack)
            words = vectors if number == 0 else turn_rows(vectors, lengths)
            half = slice(number * config.embedding, (number + 1) * config.embedding)
            before = stack.begin(len(words)) if state is None else state
            states, state_behind = stack(words, before, self.types, half)
            drop = locked_mask(states[:, :1].detach(), config.dropout_output, self.training)
            both = (states, states * drop)
            if number == 1:
                both = turn_rows(both[0], lengths), turn_rows(both[1], lengths)
            raw.append(both[0])
            dropped.append(both[1])
        if self.join is None:
            contexts, vectors, behind = dropped[0], dropped[0], state_behind
        else:
            contexts = torch.cat([dropped[0][:, :-2], dropped[1][:, 2:]], dim=-1)  # equation (8)
            vectors, behind = self.join(contexts), None
        # Equations (5) and (9); of a model without types there is type 0 alone.
        log_types = vectors.new_zeros(*vectors.shape[:2], 1) if self.types is None else self.types(contexts)
        return KALMOutput(vectors, log_types, dropped, raw, behind, lengths)

    # -- words that are predicted -----------------------------------------------

    def joint(self, output: KALMOutput, words: Tensor) -> Tensor:
        """Return log P(y, τ), (B, S, 1 + K), of words (B, S); -inf where the word is not of the type."""
        vectors, targets = output.vectors.flatten(0, 1), words.flatten()  # N = B S
        own = (vectors * self.embedding[targets]).sum(-1) + self.bias[targets]  # (N,)
        rows_by_type = [members[targets].nonzero()[:, 0] for members in self.members]  # others need no sum
        vocabularies = list(map(WordRows, rows_by_type, self._vocabularies()))
        sums_by_type = LogSumExp.apply(vectors, self.embedding, self.bias, vocabularies)  # type: ignore[no-untyped-call]
        columns = [
            torch.full_like(own, -torch.inf).index_copy(0, rows, own[rows] - sums).view(words.shape)  # (4)
            for rows, sums in zip(rows_by_type, sums_by_type, strict=True)
        ]
        return output.types + torch.stack(columns, dim=-1)  # (3)

    def log_likelihood(self, output: KALMOutput, words: Tensor) -> Tensor:
        """Return log P(y), (B, S), of words (B, S): equation (3)."""
        return self.joint(output, words).logsumexp(-1)

    def loss(self, output: KALMOutput, words: Tensor, real: Tensor | None = None) -> Tensor:
        """Return the loss of words (B, S): equation (11), with AR and TAR.

        Args:
            output: what `forward` said.
            words: (B, S) int64, the right words.
            real: (B, S) bool, where there is one; None: everywhere.
        """
        config = self.config
        losses = -self.log_likelihood(output, words)
        if config.prior_weight and config.types:
            is_told = (self.prior != self.prior[:, :1]).any(1)[words]
            losses = losses + config.prior_weight * (self.divergence(output, words) * is_told) ** 2
        real = torch.ones_like(words, dtype=torch.bool) if real is None else real
        total = losses[real].mean()
        count = len(output.raw)
        for dropped, raw in zip(output.dropped, output.raw, strict=True):
            total = total + config.activation / count * mean_square(dropped, output.lengths)
            if raw.shape[1] > 1:
                steps = None if output.lengths is None else output.lengths - 1
                total = total + config.slowness / count * mean_square(raw[:, 1:] - raw[:, :-1], steps)
        return total

    def divergence(self, output: KALMOutput, words: Tensor) -> Tensor:
        """Return KL(P(τ | contexts) ‖ P(τ | y)), (B, S), of words (B, S), whose prior is smoothed."""
        prior = self.prior[words] * (1 - _SMOOTHING) + _SMOOTHING / self.prior.shape[-1]
        return (output.types.exp() * (output.types - prior.log())).sum(-1)

    def posterior(self, output: KALMOutput, words: Tensor) -> Tensor:
        """Return P(τ | contexts, y), (B, S, 1 + K), of words (B, S), by Bayes' rule from (3).

        A word in a single vocabulary has its type with certainty; no softmax is computed for it.
        """
        members = self.members.T[words]  # (B, S, 1 + K)
        result = members.to(output.types.dtype)
        is_ambiguous = members.sum(-1) > 1
        chosen = output._replace(
            vectors=output.vectors[is_ambiguous][None], types=output.types[is_ambiguous][None]
        )
        joint = self.joint(chosen, words[is_ambiguous][None])[0]
        result[is_ambiguous] = joint.softmax(-1).to(result.dtype)
        return result

    def mixed_types(
        self,
        output: KALMOutput,
        words: Tensor,
        prior: Tensor,
        prior_weight: float,
        *,
        posterior: bool = True,
    ) -> Tensor:
        """Return the mixture of types (B, S, 1 + K) of words (B, S): equation (10).

        Args:
            output: what `forward` said.
            words: (B, S) int64.
            prior: (B, S, 1 + K) P(τ | y).
            prior_weight: β; α is 1 − β.
            posterior: whether `posterior` has the weight α; else P(τ | contexts), as published.
        """
        types = self.posterior(output, words) if posterior else output.types.exp()
        return (1 - prior_weight) * types + prior_weight * prior

    def _vocabularies(self) -> list[slice | Tensor]:
        """Return the words of each type, as a slice where they stand together."""
        if self._indices is None or any(
            isinstance(part, Tensor) and part.device != self.members.device for part in self._indices
        ):
            self._indices = []
            for row in self.members:
                words = row.nonzero()[:, 0]
                first, last = int(words[0]), int(words[-1])
                together = last - first + 1 == len(words)
                self._indices.append(slice(first, last + 1) if together else words)
        return self._indices

    # -- on disk ----------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, folder: Path | str, *, device: str = "auto") -> "Self":
        """Return the model that was saved in *folder*, ready to be asked.

        Raises:
            NotThere, DamagedModel, UsageError: as `SavedHead` does.
        """
        kalm = super().from_pretrained(folder, device=device)
        members, prior = kalm.members, kalm.prior
        sums = prior.sum(1)
        if not (
            bool(members.any(1).all() & members.any(0).all() & (prior >= 0).all())
            and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
        ):
            raise DamagedModel(f"the head in {folder} cannot be loaded: its types or priors are none")
        return kalm
