"""KnowBert: Peters et al. (2019), "Knowledge Enhanced Contextual Word Representations", sections 3.3 and 3.4.

`KAR` links entities, equations (1) to (5) (`kgkit.heads.entity_linker`), and adds them to the words, (6) and
(7); `KnowBert` puts one or more of these between the layers of an encoder.

    B  sentences     M  mentions per sentence    H  encoder width
    T  word pieces   N  word pieces whose output is asked for
    E  width in which spans and entities meet

    hidden (B, T, H) ─(1) to (5)─▶ words (B, T, E), spans (B, M, E), weighted (B, M, E)
    spans + weighted ─(6)─▶ spans with entities ─┐
    words ───────────────── attend to them ──────┴─▶ words (B, T, E) ─(7)─▶ + hidden (B, T, H)

Departures:
    From the paper, as the released code (allenai/kb) has it: the spans with entities, and what goes back to
    the encoder, go through a LayerNorm (with an ε of 1e-5).
    From both: the way back to the encoder begins as the pseudo-inverse of (1): the code inverts a matrix that
    has no inverse where E < H, and adds the bias that is to be taken away; it may begin as nothing, see
    `KAR.silence`.
    Elsewhere: a mention is hidden once, whole (`kgkit.inputs.masking`). Those of the linker stand there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from torch import Tensor, nn

from kgkit.encoder.device import pick_device
from kgkit.encoder.folder import ENCODER
from kgkit.errors import UsageError
from kgkit.heads.entity_linker import EntityLinker, LinkerInputs, LinkerOutput
from kgkit.heads.folder import EncoderHead, encoder_below, load_module
from kgkit.heads.parts import TransformerBlock, draw_weights, layers_of
from kgkit.heads.settings import EntityLinkerConfig, read_settings
from kgkit.ranges import check_range

if TYPE_CHECKING:
    from typing import Self

    from transformers import PreTrainedModel

KIND: Final = "knowbert"


@dataclass(frozen=True, kw_only=True)
class KARConfig:
    """Settings of a `KAR`: a knowledge base at a place in the encoder.

    Attributes:
        linker: settings of its entity linker.
        layer: layer of the encoder, counted from 1, that it follows; 0: it follows the embeddings.
        heads: heads of the attention of word pieces to the spans.
        inner: hidden width of its feed-forward network.
        dropout: dropout of that block, of ẽ, and of what is projected back.
    """

    linker: EntityLinkerConfig
    layer: int
    heads: int = 4
    inner: int = 1024
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_range(self, "layer", least=0)
        check_range(self, "heads", "inner", least=1)
        check_range(self, "dropout", least=0, below=1)
        if self.linker.width % self.heads:
            raise UsageError(f"a width of {self.linker.width} cannot be divided among {self.heads} heads")


@dataclass(frozen=True, kw_only=True)
class KnowBertConfig:
    """What a KnowBert is made of.

    Attributes:
        model: class of transformers of its encoder, or of the model around it.
        kbs: knowledge bases by name, from the bottom up.
        trained_with: builds and vectors by the name of a knowledge base: `kgkit.inputs.Knowledge.about`.
    """

    model: str
    kbs: dict[str, KARConfig]
    trained_with: dict[str, dict[str, str]]


class KAR(nn.Module):
    """Knowledge attention and recontextualization, section 3.3: links entities, and adds them to the words.

    Args:
        config: settings.
        generator: generator that the first parameters are drawn with.
    """

    def __init__(self, config: KARConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        width, hidden = config.linker.width, config.linker.hidden
        self.linker = EntityLinker(config.linker, generator)
        self.span_norm = nn.LayerNorm(width)
        self.block = TransformerBlock(width, config.heads, config.inner, config.dropout)
        self.back = nn.Linear(width, hidden)  # W2, b2
        self.norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(config.dropout)
        draw_weights(self.block, generator)
        self.invert()

    @torch.no_grad()
    def invert(self) -> None:
        """Let the projection back undo (1), as far as E numbers can hold H: W2 = W1⁺, b2 = -W1⁺ b1.

        To be called again when the linker has been trained by itself, before all is; or `silence`.
        """
        project = self.linker.project
        if project.weight.is_meta:  # there are no numbers: only shapes are asked for
            return
        inverse = torch.linalg.pinv(project.weight.cpu().double())  # (H, E); not all devices have float64
        self.back.weight.copy_(inverse)
        self.back.bias.copy_(-inverse @ project.bias.cpu().double())

    @torch.no_grad()
    def silence(self) -> None:
        """Let nothing come back to the encoder: W2 = 0, b2 = 0.

        The inverse of (1) does not give back what was projected, since the block in between normalises it: an
        encoder has to be trained for long until it guesses as well as before.
        """
        self.back.weight.zero_()
        self.back.bias.zero_()

    def forward(self, inputs: LinkerInputs) -> tuple[Tensor, LinkerOutput]:
        """Return the word pieces (B, T, H) with what their entities tell, and what the linker said."""
        linked = self.linker(inputs)
        spans = self.span_norm(linked.spans + self.dropout(linked.weighted))  # (B, M, E)  (6)
        words = self.block(linked.words, spans, inputs.mentions)  # (B, T, E)
        added = self.dropout(self.back(words))  # (B, T, H)  (7)
        hidden = self.norm(inputs.hidden + added.to(inputs.hidden.dtype))  # (B, T, H)
        return hidden, linked


class KnowBertOutput(NamedTuple):
    """What KnowBert returns.

    Attributes:
        model: output of the encoder, or of the model around it: its hidden states have the knowledge. None
            where a linker alone was asked for.
        linked: outputs of linkers, by the name of their knowledge base.
    """

    model: Any
    linked: dict[str, LinkerOutput]


class KnowBert(EncoderHead):
    """An encoder with knowledge bases between its layers, section 3.4.

    The encoder's own code runs, whatever model of transformers it is, with whatever stands on top of it
    (`BertModel`, `BertForMaskedLM`, `RobertaForSequenceClassification`, …): each `KAR` changes what comes
    out of one of its layers. One call at a time; not with gradient checkpointing, which would run layers
    a second time.

    Args:
        model: encoder, or a model around it. It is changed in place: its layers get hooks, which do
            nothing unless it is called by this one.
        kbs: knowledge bases by name, from the bottom up; those behind one layer follow each other.
        generator: generator that the first parameters are drawn with.
        trained_with: builds and vectors by the name of a knowledge base (`kgkit.inputs.Knowledge.about`): a
            model that is read again is checked with them.

    Raises:
        UsageError: if the encoder has no such layer, or another width; if layers share their weights.

    Examples:
        >>> bert = AutoModelForMaskedLM.from_pretrained("bert-base-uncased")
        >>> linker = EntityLinkerConfig(hidden=768, stored=584)
        >>> knowbert = KnowBert(bert, {"wordnet": KARConfig(linker=linker, layer=10)})
        >>> output = knowbert({"wordnet": inputs}, input_ids=ids, attention_mask=mask)
        >>> output.model.logits, output.linked["wordnet"].scores
        >>> knowbert.save_pretrained("mine")
    """

    kind, settings = KIND, KnowBertConfig

    def __init__(
        self,
        model: "PreTrainedModel",
        kbs: Mapping[str, KARConfig],
        generator: torch.Generator | None = None,
        *,
        trained_with: Mapping[str, dict[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.trained_with = dict(trained_with or {})
        self.drawn: frozenset[str] = frozenset()  # parameters of the model that its files lack
        self._names: list[str] = []
        self._kars = nn.ModuleList()
        self._alone: str | None = None  # whose linker alone is trained
        self._call: _Call | None = None
        self._hooks = [model.base_model.register_forward_hook(self._select_positions)]
        for name, config in kbs.items():
            self.add(name, config, generator)

    def add(
        self,
        name: str,
        config: KARConfig,
        generator: torch.Generator | None = None,
        kar: KAR | None = None,
    ) -> None:
        """Put a knowledge base into the model, above those that stand behind the same layer.

        Args:
            name: name of the knowledge base.
            config: settings.
            generator: generator that its first parameters are drawn with.
            kar: what stands between the layers; None: a new one of these settings.

        Raises:
            UsageError: if it is there already, if the encoder has no such layer, or another width.
        """
        embeddings, layers = layers_of(self.model)
        if name in self._names:
            raise UsageError(f"the knowledge base {name} is in this model already")
        if config.layer > len(layers):
            raise UsageError(f"{name} is to stand behind layer {config.layer}; the encoder has {len(layers)}")
        if config.linker.hidden != self.model.config.hidden_size:
            raise UsageError(
                f"the linker of {name} reads vectors of width {config.linker.hidden}, the encoder has "
                f"{self.model.config.hidden_size}"
            )
        self._names.append(name)
        self._kars.append((kar or KAR(config, generator)).to(self.model.device).train(self.training))
        behind = [embeddings, *layers][config.layer]  # 0: the embeddings
        self._hooks.append(behind.register_forward_hook(partial(self._recontextualize, name)))

    def detach(self) -> None:
        """Take its hooks off the model, which then has nothing to do with this any more."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    @property
    def kars(self) -> dict[str, KAR]:
        """What stands between the layers, by the name of the knowledge base."""
        return dict(zip(self._names, self._kars, strict=True))  # type: ignore[arg-type]

    def forward(
        self,
        knowledge: Mapping[str, LinkerInputs],
        *,
        positions: Tensor | None = None,
        until: str | None = None,
        **inputs: Any,
    ) -> KnowBertOutput:
        """Run the model, with what is known of the mentions.

        Args:
            knowledge: mentions and their candidates, by the name of their knowledge base; `hidden` is not
                read. One that is left out is as if it were not there.
            positions: (B, T) bool, word pieces whose N vectors alone, (N, H), reach what stands on the
                encoder, as the projection to the vocabulary; None: all, (B, T, H).
            until: knowledge base whose linker is all that is asked for: what follows it is not computed, and
                there is no output of the model.
            inputs: inputs of the model: `input_ids` (B, T), `attention_mask` (B, T), …

        Raises:
            UsageError: with gradient checkpointing.
        """
        checkpointing = any(getattr(part, "gradient_checkpointing", False) for part in self.model.modules())
        if self.training and checkpointing:
            raise UsageError("gradient checkpointing runs layers twice: switch it off for KnowBert")
        self._call = _Call(knowledge, {}, positions, until)
        try:
            return KnowBertOutput(self.model(**inputs), self._call.linked)
        except _Linked:
            return KnowBertOutput(None, self._call.linked)
        finally:
            self._call = None

    def train(self, mode: bool = True) -> "Self":
        """Set training mode, or evaluation mode; what is frozen as a whole stays in evaluation mode."""
        super().train(mode)
        if mode and self._alone is not None:
            super().train(False)
            self.kars[self._alone].linker.train()
        return self

    def unfreeze(self, linker: str | None = None) -> None:
        """Say what is trained, as Algorithm 1 has it: for each knowledge base its linker, and then all.

        When a linker has been trained by itself, the way back to the encoder is to be made anew, so that it
        undoes what has been learnt: see `KAR.invert`. Stored vectors of entities are no parameters, and are
        never trained.

        Args:
            linker: knowledge base whose linker is trained alone; None: everything is.

        Raises:
            UsageError: if there is no such knowledge base.
        """
        if linker is not None and linker not in self._names:
            raise UsageError(f"no knowledge base {linker} in this model; it has: {', '.join(self._names)}")
        self._alone = linker
        if linker is None:
            self.requires_grad_(True)
            return
        self.requires_grad_(False)
        chosen = self.kars[linker].linker
        chosen.requires_grad_(True)
        for special, trained in ((chosen.null, chosen.config.null), (chosen.mask, False)):
            if special is not None:  # no loss of the linker reaches it, but where it is a candidate
                special.requires_grad_(trained)

    def _saved_config(self) -> KnowBertConfig:
        kbs = {name: kar.config for name, kar in self.kars.items()}
        return KnowBertConfig(model=type(self.model).__name__, kbs=kbs, trained_with=self.trained_with)

    def _own_weights(self) -> Mapping[str, Tensor]:
        return self._kars.state_dict()

    @classmethod
    def from_pretrained(
        cls,
        folder: Path | str,
        *,
        model: str | None = None,
        device: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> "Self":
        """Return the model that was saved in *folder*, ready to be asked.

        Args:
            folder: folder of the model.
            model: class of transformers for the encoder, or for the model around it, where it is not the one
                that it was saved as: `AutoModel` leaves out what stood on top.
            device: name of the torch device.
            settings: settings of that class, as `{"num_labels": 3}`.

        Raises:
            NotThere, DamagedModel, UsageError: as `KBert.from_pretrained` does.
        """
        folder, where = Path(folder), pick_device(device)
        config = read_settings(folder, KIND, KnowBertConfig)
        kars = load_module(folder, lambda: nn.ModuleList(map(KAR, config.kbs.values())))
        encoder, missing = encoder_below(
            folder, folder.absolute() / ENCODER, config.model, model, settings=settings
        )
        knowbert = cls(encoder, {}, trained_with=config.trained_with)
        knowbert.drawn = missing
        for (name, own), kar in zip(config.kbs.items(), kars, strict=True):
            assert isinstance(kar, KAR)
            knowbert.add(name, own, kar=kar)
        return knowbert.to(where).eval()

    def _recontextualize(self, name: str, layer: nn.Module, args: Any, output: Any) -> Any:
        """Change the output of a layer: a hook of torch."""
        call = self._call
        if call is None or name not in call.knowledge:
            return output
        hidden, further = (output[0], output[1:]) if isinstance(output, tuple) else (output, None)
        inputs = call.knowledge[name]._replace(hidden=hidden)
        if call.until == name:
            call.linked[name] = self.kars[name].linker(inputs)
            raise _Linked
        hidden, call.linked[name] = self.kars[name](inputs)
        return hidden if further is None else (hidden, *further)

    def _select_positions(self, encoder: nn.Module, args: Any, output: Any) -> Any:
        """Leave the vectors of those word pieces that were asked for: a hook of torch."""
        if self._call is None or self._call.positions is None:
            return output
        if isinstance(output, tuple):
            return (output[0][self._call.positions], *output[1:])
        output.last_hidden_state = output.last_hidden_state[self._call.positions]  # (N, H)
        return output


class _Call(NamedTuple):
    """A call under way: what is known and asked for, and what has been linked so far."""

    knowledge: Mapping[str, LinkerInputs]
    linked: dict[str, LinkerOutput]
    positions: Tensor | None
    until: str | None


class _Linked(Exception):
    """Ends a call, once the linker that was asked for has linked."""


def usual_layers(depth: int, kbs: int) -> list[int]:
    """Return behind which layers knowledge bases stand, from the bottom up, as published.

    Of 12 layers: 10 for one; 10 and 11 for two.

    Args:
        depth: number of the encoder's layers.
        kbs: number of knowledge bases.
    """
    first = max(0, depth - max(2, kbs))
    return [min(first + number, depth) for number in range(kbs)]
