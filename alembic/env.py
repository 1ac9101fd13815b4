"""How alembic reaches a catalog: that of `KGKIT_CATALOG_URL`, else that of the home.

kgkit hands over the connection on which it holds the lock; on alembic's own command line this file takes
the lock itself, so that neither comes in the way of the other.
"""

from alembic import context
from alembic.operations import MigrationScript

from kgkit.catalog.database import catalog_url, engine_of, transaction
from kgkit.catalog.migrating import revisions
from kgkit.catalog.models import Base, Moment
from kgkit.home import Home


def number(migration, revision, directives):
    """Name a new revision by the next number."""
    [script] = directives
    if isinstance(script, MigrationScript):
        script.rev_id = f"{len(revisions()) + 1:04}"


def rendered(kind, item, autogen):
    """Write a moment as what it is in the database: a migration outlives the classes of the models."""
    return "sa.DateTime(timezone=True)" if isinstance(item, Moment) else False


def run(connection):
    """Run the migrations that were asked for, all in the transaction that has begun."""
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        # SQLite cannot change a column: there a table is written anew, and takes the place of the old one.
        render_as_batch=True,
        process_revision_directives=number,
        render_item=rendered,
    )
    context.run_migrations()


if context.is_offline_mode():
    raise SystemExit("a catalog is migrated where it is; there is no --sql")
if (connection := context.config.attributes.get("connection")) is not None:
    run(connection)
else:
    home = Home.find()
    if not (url := catalog_url(home)).host:
        home.path.mkdir(parents=True, exist_ok=True)
    with transaction(engine_of(url), writing=True, rebuilding=True) as connection:
        run(connection)
