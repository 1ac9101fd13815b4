"""Trained models on disk, for whatever purpose: manifests, folders, publishing, rows in the catalog.

The package is a function too: `kgkit.models()` lists the models, as `kgkit.models.listing.models` does.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgkit.models.listing import models as models
else:
    models = sys.modules[__name__]


class _CallablePackage(ModuleType):
    @property
    def __wrapped__(self) -> Any:
        """The function, whose signature `inspect.signature` shows."""
        from kgkit.models import listing

        return listing.models

    def __call__(self, *args: Any, **settings: Any) -> Any:
        return self.__wrapped__(*args, **settings)


sys.modules[__name__].__class__ = _CallablePackage
