"""Alembic's entry: one transaction per migration on the connection that metastore.db.migrate holds locked.

Rule: a migration is applied whole, together with its line in alembic_version, or not at all; so a start after a crash
simply goes on. Nothing here waits without end: the time-outs are set by metastore.db.migrate.
"""

from alembic import context

import metastore.db.catalog_tables  # noqa: F401 - the import adds its tables to the metadata
from metastore.db.tables import metadata


def run() -> None:
    """Run the migrations on the connection that was handed over. Raises: SystemExit without one."""
    connection = context.config.attributes.get("connection")
    if connection is None:
        from metastore.db import migrate

        raise SystemExit(migrate.ALEMBIC_ALONE)
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
