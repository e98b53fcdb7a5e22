"""Since when a campaign is paused, and who is to be forgotten."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("adsbpc_campaigns", sa.Column("paused_us", sa.BigInteger))
    op.create_table(
        "adsbpc_forgotten",
        sa.Column("user_id", sa.String(200), primary_key=True),
        sa.Column("asked_us", sa.BigInteger, nullable=False),
    )
