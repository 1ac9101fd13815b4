"""How well hidden words are guessed, of what a model says of them."""

import pytest

pytest.importorskip("torch")
