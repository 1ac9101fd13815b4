"""Settings of linking, from which Python's arguments, options of commands, services and spaCy are made."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypedDict

from kgkit.errors import UsageError
from kgkit.ranges import check_range
from kgkit.setting_types import convert_settings

KB_MENTIONS: Final = "kb"
ALL_MENTIONS: Final = "all"
MENTIONS_OF_KB: Final = (None, KB_MENTIONS, ALL_MENTIONS)
"""Values of `mentions` that name no tagger."""

Overlaps = Literal["longest", "keep", "score"]


@dataclass(frozen=True, kw_only=True)
class LinkSettings:
    """Settings of linking: arguments of `kgkit.link` and `kgkit.Linker.open`, options of `kgkit link`.

    The metadata of a field are those of `kgkit.commands.setting_options`; a setting whose `option` is None
    is Python's alone.

    Attributes:
        model: what scores the candidates: `auto` ($KGKIT_MODEL, else the best that was trained for the KB,
            else what needs no training), `prior`, `gloss`, or the name or folder of a trained linker;
            `kgkit models list` names them.
        vectors: vectors of the entities, for a model that reads some; by default its own, else `text`.
        device: device that the model computes on: `auto`, `cpu`, `cuda`, `cuda:1`, ….
        coherence: rescore the links of a document for coherence: `graph`, by neighbours in the KB.
        mentions: `kb` for the names that the KB has; `all` for function words too, names that are hardly
            ever links, and words in lower case that the KB writes with capitals only; or a tagger whose
            names are linked: its name, its folder, or `spacy:PIPELINE`. By default the model's own tagger,
            else `kb`.
        overlaps: of overlapping mentions, score the longest only (`longest`); or score all, and keep all
            links (`keep`), or the link with the highest score (`score`).
        references: link first and last names of persons, and initials, to what a longer name in the text
            means.
        corrections: file of corrections: links that are said to be right, and words that are no names; see
            `kgkit.linking.Corrections`.
        threshold: links below this score, in [0, 1], mean nothing in the KB: they are NIL. By default the
            model's own, else 0.
        nil: keep mentions that mean nothing in the KB, marked, instead of dropping them.
        top_k: candidates to write with each link, the best.
        explain: say what scores are made of: prior, context, coherence.
        max_candidates: candidates of a mention that are scored, the likeliest; None: all.

    Raises:
        UsageError: if a setting is of another type or out of range, or two exclude each other.
    """

    model: str = field(default="auto", metadata={"metavar": "MODEL"})
    vectors: str | None = field(default=None, metadata={"metavar": "NAME"})
    device: str = field(default="auto", metadata={"metavar": "DEVICE"})
    coherence: Literal["graph"] | None = field(default=None, metadata={"metavar": "KIND"})
    mentions: str | None = field(default=None, metadata={"metavar": "WHOSE"})
    overlaps: Overlaps = "longest"
    references: bool = False
    corrections: Path | None = None
    threshold: float | None = field(default=None, metadata={"metavar": "SCORE", "least": 0, "most": 1})
    nil: bool = False
    top_k: int = field(default=5, metadata={"least": 0})
    explain: bool = False
    max_candidates: int | None = field(default=30, metadata={"least": 1, "option": None})

    def __post_init__(self) -> None:
        convert_settings(self)
        check_range(self, "threshold", least=0, most=1)
        check_range(self, "top_k", least=0)
        check_range(self, "max_candidates", least=1)
        if self.explain and not self.top_k:
            raise UsageError("explain says what the scores of candidates are made of, and top_k is 0")
        if self.vectors is not None and self.model == "prior":
            raise UsageError(f"vectors is {self.vectors!r}, and the model prior reads none: leave them out")
        if self.mentions not in MENTIONS_OF_KB and self.overlaps != "longest":
            raise UsageError(
                f"overlaps is {self.overlaps!r}, but the mentions are those of the tagger {self.mentions}, "
                "which do not overlap: leave out one of the two"
            )


class LinkArguments(TypedDict, total=False):
    """The fields of `LinkSettings` as keyword arguments, for type checkers."""

    model: str
    vectors: str | None
    device: str
    coherence: Literal["graph"] | None
    mentions: str | None
    overlaps: Overlaps
    references: bool
    corrections: Path | None
    threshold: float | None
    nil: bool
    top_k: int
    explain: bool
    max_candidates: int | None
