"""Event ids by sender, and the moments at which released slots become visible."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "adsbpc_event_ids",
        sa.Column("owner", sa.String(250), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("position_us", sa.BigInteger, nullable=False),
        sa.Column("began_us", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("marks", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("owner", "source", "position_us"),
    )
    op.create_table(
        "adsbpc_salts",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("salt", sa.String(64), nullable=False),
    )
    op.create_table(
        "adsbpc_published",
        sa.Column("campaign_id", sa.String(32), nullable=False),
        sa.Column("slot", sa.BigInteger, nullable=False),
        sa.Column("published_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("campaign_id", "slot"),
    )
