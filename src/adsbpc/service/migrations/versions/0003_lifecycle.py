"""Since when a campaign is paused."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("adsbpc_campaigns", sa.Column("paused_us", sa.BigInteger))
