"""What names an entity outside of its knowledge base: identifiers and an address."""

from typing import Any

from kgkit.store import Manifest
from kgkit.store.urls import UrlPattern, is_web_address
from kgkit.types import Entity

__all__ = ["Identifiers"]


class Identifiers:
    """The identifiers of the entities of one build, by what its manifest says of them.

    Args:
        manifest: manifest of the build.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.names = manifest.identifiers
        self.pattern = UrlPattern(manifest.url_pattern) if manifest.url_pattern else None

    def ids(self, entity: Entity) -> dict[str, Any]:
        """Return the attributes that are identifiers, by name; those that the entity has."""
        if not self.names or not entity.attributes:
            return {}
        values = {name: entity.attributes.get(name) for name in self.names}
        return {name: value for name, value in values.items() if value not in (None, "", [], {})}

    def url(self, entity: Entity) -> str:
        """Return the address of an entity; empty if it has none.

        Without a pattern, a key that is an address itself, as in RDF, is that.
        """
        if self.pattern is not None:
            return self.pattern.url(entity)
        return entity.key if is_web_address(entity.key) else ""
