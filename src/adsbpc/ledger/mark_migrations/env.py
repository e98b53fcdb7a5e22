"""How Alembic runs a migration: on the connection, and in the transaction, that it is given."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table=context.config.attributes["version_table"])
context.run_migrations()
