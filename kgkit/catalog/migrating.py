"""Bringing a catalog to the revision that this kgkit speaks.

The revisions are the files in the checkout's `alembic/versions/`; a wheel carries that folder as
`kgkit/catalog/migrations`. A file's name begins with the number of its revision. A catalog that is as it
should be is recognised by one query; alembic is loaded for one that is not.
"""

from pathlib import Path

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection, Engine

from kgkit.catalog.database import transaction, url_text
from kgkit.errors import CatalogError
from kgkit.home import CATALOG_URL


def migrations() -> Path:
    """Return the folder of the migrations.

    Raises:
        CatalogError: if there is none: kgkit was installed in part.
    """
    here = Path(__file__).parent
    for folder in (here / "migrations", here.parents[1] / "alembic"):
        if (folder / "env.py").is_file():
            return folder
    raise CatalogError(f"no migrations of the catalog beside {here}: install kgkit again")


def revisions() -> list[str]:
    """Return the revisions that this kgkit knows, oldest first."""
    return sorted(path.name.partition("_")[0] for path in (migrations() / "versions").glob("[0-9]*.py"))


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a catalog, None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def upgrade(engine: Engine) -> None:
    """Bring a catalog to the newest revision; one process does it, others wait until it has.

    Raises:
        CatalogError: if it is of a revision that this kgkit does not know, or cannot be changed.
    """
    scripts = revisions()
    with transaction(engine) as connection:
        if _is_newest(connection, scripts):
            return
    with transaction(engine, writing=True, rebuilding=True) as connection:
        if _is_newest(connection, scripts):
            return  # another process was quicker
        from alembic import command
        from alembic.config import Config

        config = Config(attributes={"connection": connection})
        # Alembic reads % as the beginning of a variable.
        config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
        command.upgrade(config, "head")


def _is_newest(connection: Connection, scripts: list[str]) -> bool:
    revision = revision_of(connection)
    if revision is not None and revision not in scripts:
        raise CatalogError(
            f"the catalog {url_text(connection.engine.url)} has revision {revision}, which this kgkit does "
            f"not know (it knows {scripts[0]} to {scripts[-1]}): a newer kgkit wrote it. Upgrade kgkit, or "
            f"name another database with {CATALOG_URL}"
        )
    return revision == scripts[-1]
