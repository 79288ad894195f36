"""Tables whose rules a writer without Spark cannot keep.

Rule: nothing here evaluates a CHECK, and what is declared NOT NULL must not become NULL by a stream, so such a table is
refused when a writer connects.
"""

from metastore.client import MetastoreClient
from metastore.errors import InvalidOperationError
from metastore.ids import TableName


def require_unconstrained(client: MetastoreClient, name: TableName) -> None:
    """Raise InvalidOperationError for a table with NOT NULL or CHECK constraints that are ENABLEd."""
    request = client.types.AllTableConstraintsRequest(name.db, name.table, name.catalog)
    found = client.get_all_table_constraints(request).allTableConstraints
    names = [one.nn_name for one in found.notNullConstraints if one.enable_cstr]
    names += [one.dc_name for one in found.checkConstraints if one.enable_cstr]
    if names:
        raise InvalidOperationError(f"{name} has NOT NULL or CHECK constraints, which writers without Spark cannot "
                                    f"keep ({', '.join(names)}): write with Spark, or DISABLE them.")
