"""Builds have a pattern of addresses, and the names of their identifiers."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("builds") as builds:
        builds.add_column(sa.Column("url_pattern", sa.String(), nullable=False, server_default=""))
        builds.add_column(sa.Column("identifiers", sa.JSON(), nullable=False, server_default="[]"))
    with op.batch_alter_table("builds") as builds:  # the defaults were for the rows that there were
        builds.alter_column("url_pattern", server_default=None)
        builds.alter_column("identifiers", server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("builds") as builds:
        builds.drop_column("identifiers")
        builds.drop_column("url_pattern")
