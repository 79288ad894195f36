"""Creation of tables, whichever server keeps the catalog.

Rule: Hive 4 takes a transactional table only from a client that lists the capabilities for such tables; the calls of
older versions have no field for them.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from metastore.client.answers import is_unknown_method
from metastore.client.declared_constraints import FIELDS
from metastore.client.domain_client import CAPABILITIES, IDENTIFIER, DomainClient
from metastore.errors import MetaError
from metastore.ids import TableName

_OF_KIND = ("transactional", "transactional_properties", "bucketing_version", "comment")


def managed_table(
    client: DomainClient,
    name: TableName,
    owner: str,
    sd: Any,
    partition_keys: Sequence[Any],
    parameters: Mapping[str, str],
) -> Any:
    """Return a managed table for ``create_table``."""
    return client.types.Table(
        tableName=name.table,
        dbName=name.db,
        owner=owner,
        createTime=0,
        lastAccessTime=0,
        retention=0,
        sd=sd,
        partitionKeys=list(partition_keys),
        parameters=dict(parameters),
        tableType="MANAGED_TABLE",
    )


def create_table(client: DomainClient, table: Any, *constraints: Any) -> None:
    """Create a table. ``constraints``: as create_table_with_constraints takes them, or none.

    Raises: AlreadyExistsError, and the metastore's other refusals.
    """
    try:
        client.create_table_req(
            client.types.CreateTableRequest(
                table=table,
                processorCapabilities=list(CAPABILITIES),
                processorIdentifier=IDENTIFIER,
                **dict(zip(FIELDS, constraints, strict=False)),
            )
        )
    except MetaError as error:
        if not is_unknown_method(error):
            raise
    else:
        return
    if constraints:
        client.create_table_with_constraints(table, *constraints)
    else:
        client.create_table(table)


def create_table_like(
    client: DomainClient, name: TableName, source: Any, owner: str, location: str | None, properties: Mapping[str, str]
) -> None:
    """Create a table of the kind of ``source``, one of the metastore's, without its rows and constraints.

    Raises: as ``create_table``.
    """
    sd = copy(source.sd)
    sd.location = location
    kept = {key: value for key, value in source.parameters.items() if key in _OF_KIND}
    create_table(client, managed_table(client, name, owner, sd, source.partitionKeys, {**kept, **properties}))
