"""How each entry is sealed: those that stand there by now are of format 1."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column(
        "adsbpc_entries", sa.Column("format", sa.Integer, nullable=False, server_default="1")
    )
