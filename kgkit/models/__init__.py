"""Trained models on disk, for whatever purpose: manifests, folders, publishing, rows in the catalog.

The package is a function too: `kgkit.models()` lists the models, as `kgkit.models.listing.models` does.
"""

import sys
from typing import TYPE_CHECKING

from kgkit.lazy import make_callable

if TYPE_CHECKING:
    from kgkit.models.listing import models as models
else:
    models = sys.modules[__name__]

make_callable(__name__, "kgkit.models.listing")
