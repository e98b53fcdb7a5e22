"""The journal of entries."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "adsbpc_entries",
        sa.Column("scope", sa.String(200), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("campaign", sa.String(200), nullable=False),
        sa.Column("slot", sa.Integer, nullable=False),
        sa.Column("part", sa.String(50), nullable=False),
        sa.Column("pico_rho", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("recorded_at", sa.String(40), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("scope", "position"),
        sa.UniqueConstraint(
            "scope", "campaign", "slot", "kind", "part", name="adsbpc_entries_once"
        ),
        sa.CheckConstraint("pico_rho >= 0", name="adsbpc_entries_never_refund"),
    )
