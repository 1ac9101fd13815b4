"""The tables of the catalog."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kbs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kbs")),
        sa.UniqueConstraint("home", "name", name=op.f("uq_kbs_home_name")),
    )
    op.create_table(
        "builds",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kb_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("base", sa.String(), nullable=True),
        sa.Column("builder", sa.String(), nullable=False),
        sa.Column("builder_version", sa.String(), nullable=False),
        sa.Column("kgkit_version", sa.String(), nullable=False),
        sa.Column("format", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("source_version", sa.String(), nullable=False),
        sa.Column("source_sha256", sa.String(), nullable=False),
        sa.Column("licence", sa.String(), nullable=False),
        sa.Column("entities", sa.BigInteger(), nullable=False),
        sa.Column("triples", sa.BigInteger(), nullable=False),
        sa.Column("aliases", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("gone", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["kb_id"], ["kbs.id"], name=op.f("fk_builds_kb_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_builds")),
        sa.UniqueConstraint("kb_id", "name", name=op.f("uq_builds_kb_id_name")),
    )
    op.create_table(
        "vectors",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("build_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("width", sa.BigInteger(), nullable=False),
        sa.Column("dtype", sa.String(), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["build_id"], ["builds.id"], name=op.f("fk_vectors_build_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vectors")),
        sa.UniqueConstraint("build_id", "name", name=op.f("uq_vectors_build_id_name")),
    )
    op.create_table(
        "indexes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("vectors_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("params", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["vectors_id"], ["vectors.id"], name=op.f("fk_indexes_vectors_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_indexes")),
        sa.UniqueConstraint("vectors_id", "kind", name=op.f("uq_indexes_vectors_id_kind")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("encoder", sa.String(), nullable=True),
        sa.Column("build_id", sa.Integer(), nullable=True),
        sa.Column("vectors_id", sa.Integer(), nullable=True),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("gone", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["build_id"], ["builds.id"], name=op.f("fk_models_build_id")),
        sa.ForeignKeyConstraint(["vectors_id"], ["vectors.id"], name=op.f("fk_models_vectors_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("home", "name", name=op.f("uq_models_home_name")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("home", sa.String(), nullable=False),
        sa.Column("command", sa.String(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=True),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("seeds", sa.JSON(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("peak_memory", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_runs_model_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_table(
        "scores",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("dataset", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_scores_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scores")),
        sa.UniqueConstraint(
            "run_id", "task", "dataset", "metric", name=op.f("uq_scores_run_id_task_dataset_metric")
        ),
    )


def downgrade() -> None:
    op.drop_table("scores")
    op.drop_table("runs")
    op.drop_table("models")
    op.drop_table("indexes")
    op.drop_table("vectors")
    op.drop_table("builds")
    op.drop_table("kbs")
