"""The settings that all generators have."""

from dataclasses import dataclass

from kgkit.ranges import check_range


@dataclass(frozen=True, kw_only=True)
class GeneratorConfig:
    """What every generator can be told.

    `all_surfaces` switches off four rules: that function words are no mentions, nor surfaces under
    `min_link_probability`, nor what stands within an address (URL, path, e-mail, handle), nor words in lower
    case that the KB has with capitals only. The last is not one of `LemmaGenerator`: a lexicon has the words
    of its language, which are found in any spelling.
    """

    max_candidates: int | None = 30  # a mention, as in KnowBert; None for all
    min_prior: float = 0.0  # p(entity | surface), in [0, 1]
    null: float = 0.0  # prior of "none of these", in [0, 1)
    min_link_probability: float = 0.01  # of a surface that is sought in texts, in [0, 1]; 0 for all
    all_surfaces: bool = False  # function words, those hardly ever links, words spelled otherwise
    cache_mb: float = 100.0  # what tokens and spans that are remembered may take, in 10⁶ bytes, roughly

    def __post_init__(self) -> None:
        check_range(self, "max_candidates", least=1)
        check_range(self, "min_prior", "min_link_probability", least=0, most=1)
        check_range(self, "null", least=0, below=1)
        check_range(self, "cache_mb", least=0)
