"""Vectors small enough to read, for the toy of `tests/toys.py`.

Seven entities in a plane: Apple, Apple_Inc., New_York_City, York, Road, Fruit, Company.
"""

from pathlib import Path
from typing import Any

import numpy as np

import kgkit
from kgkit.building.build import Built
from kgkit.vectors import Vectors, Work
from tests.toys import build_toy

DIRECTIONS = np.array([[4, 0], [3, 1], [0, 2], [0, 0], [-1, 0], [5, 0.1]], np.float32)
"""By id; York (3) has no vector, and the matrix ends before Company (6)."""


def made(
    home: Path, rows: Any = DIRECTIONS, *, kb: str = "toy", name: str = "plane", **settings: Any
) -> Vectors:
    """Publish *rows* as the vectors KB/*name*."""
    rows = np.asarray(rows, np.float32)
    with (
        kgkit.open_kb(kb, home=home) as opened,
        Work(opened, name, {"method": "hand", **settings}) as work,
    ):
        work.matrix(*rows.shape)[:] = rows
        return work.publish("hand")


def built(folder: Path, **settings: Any) -> tuple[Path, Built]:
    """Build the toy in a home of its own; return the home and the build."""
    toy = build_toy(folder, **settings)
    return toy.path.parents[3], toy
