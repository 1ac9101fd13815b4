"""The tokenizer in the folder of an encoder, as the package tokenizers has it, without transformers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kgkit.encoder.folder import first_line, read_json
from kgkit.errors import MissingExtra, NotThere

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ADVICE: Final = "save it with `tokenizer.save_pretrained`, which writes tokenizer.json"
NO_LENGTH: Final = 1_000_000
"""A tokenizer says more than this if it knows no limit."""


class TokenizerFiles:
    """Tokenizer of an encoder, by tokenizer.json and the settings beside it.

    Args:
        folder: folder of an encoder, with a tokenizer.json.

    Attributes:
        longest: number of tokens that the model can read; None: they do not say.
        padding: id of the piece that stands behind shorter texts; 0 if there is none.

    Raises:
        MissingExtra: if tokenizers is not installed.
        NotThere: if they cannot be used.
        SourceError: if the settings cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._content = (folder / "tokenizer.json").read_text(encoding="utf-8")
            tokenizer = tokenizer_of(self._content)
        except MissingExtra:
            raise
        except Exception as error:  # tokenizers has no class of its own
            raise NotThere(
                f"{folder} has no tokenizer that can be read ({first_line(error)}): {ADVICE}"
            ) from error
        settings: dict[str, Any] = {}
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if (folder / name).exists():
                settings |= read_json(folder / name)
        longest = settings.get("model_max_length")
        if longest is not None:
            check_length(folder, longest)
        self.longest = int(longest) if longest is not None and longest < NO_LENGTH else None
        padding = settings.get("pad_token")
        if isinstance(padding, dict):
            padding = padding.get("content")
        self.padding = (tokenizer.token_to_id(padding) if isinstance(padding, str) else None) or 0

    def tokenizer(self) -> "Tokenizer":
        """Return the tokenizer, a copy, which cuts nothing off and fills nothing up."""
        return tokenizer_of(self._content)


def tokenizer_of(content: str) -> "Tokenizer":
    """Return the tokenizer that a tokenizer.json says, which cuts nothing off and fills nothing up.

    Raises:
        MissingExtra: if tokenizers is not installed.
        Exception: if it is no tokenizer.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("tokenizers", "neural") from None
    tokenizer = Tokenizer.from_str(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def check_length(folder: Path, longest: object) -> None:
    """Make sure that a tokenizer's greatest length is one.

    Raises:
        NotThere: if it is not.
    """
    if not isinstance(longest, int | float) or not longest >= 1:
        raise NotThere(
            f"{folder} has no tokenizer that can be used: model_max_length is {repr(longest)[:40]}, "
            "expected a number of tokens"
        )
