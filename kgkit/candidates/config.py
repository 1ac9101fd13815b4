"""The settings that all generators have."""

from dataclasses import dataclass

from kgkit.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class GeneratorConfig:
    """What every generator can be told.

    `all_surfaces` switches off three rules: that function words are no mentions, nor surfaces under
    `min_link_probability`, nor words in lower case that the KB has with capitals only. The last is not
    one of `LemmaGenerator`: a lexicon has the words of its language, which are found in any spelling.
    """

    max_candidates: int | None = 30  # a mention, as in KnowBert; None for all
    min_prior: float = 0.0  # p(entity | surface), in [0, 1]
    null: float = 0.0  # prior of "none of these", in [0, 1)
    min_link_probability: float = 0.01  # of a surface that is sought in texts, in [0, 1]; 0 for all
    all_surfaces: bool = False  # function words, those hardly ever links, words spelled otherwise
    cache_mb: float = 100.0  # what tokens and spans that are remembered may take, in 10⁶ bytes, roughly

    def __post_init__(self) -> None:
        few = self.max_candidates is not None and self.max_candidates < 1
        shares = 0 <= self.min_prior <= 1 and 0 <= self.min_link_probability <= 1
        if few or not shares or not 0 <= self.null < 1 or self.cache_mb < 0:
            raise UsageError(
                f"out of range in {self}: max_candidates >= 1, min_prior and min_link_probability in [0, 1], "
                "null in [0, 1), cache_mb >= 0"
            )
