"""The tables of the service."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "adsbpc_keys",
        sa.Column("key_id", sa.String(32), primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("label", sa.String(200), nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("expires_us", sa.BigInteger),
        sa.Column("revoked_us", sa.BigInteger),
    )
    op.create_table(
        "adsbpc_sessions",
        sa.Column("session_hash", sa.String(64), primary_key=True),
        sa.Column("key_id", sa.String(32), nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("expires_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "adsbpc_batches",
        sa.Column("owner", sa.String(250), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("batch_key", sa.String(200), nullable=False),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("arrived_us", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("owner", "source", "batch_key"),
    )
    op.create_table(
        "adsbpc_files",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("advertiser", sa.String(200), nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("retired_us", sa.BigInteger),
    )
    op.create_index("adsbpc_files_live", "adsbpc_files", ["source", "retired_us"])
    op.create_table(
        "adsbpc_arrivals",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("closed_until_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "adsbpc_campaigns",
        sa.Column("campaign_id", sa.String(32), primary_key=True),
        sa.Column("scope", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("advertiser", sa.String(200), nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.String(32), nullable=False),
        sa.Column("lease_holder", sa.String(32), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.UniqueConstraint("scope", "name", name="adsbpc_campaigns_once"),
    )
    op.create_table(
        "adsbpc_counts",
        sa.Column("hour_us", sa.BigInteger, nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("owner", sa.String(250), nullable=False),
        sa.Column("verdict", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("hour_us", "source", "owner", "verdict"),
    )
