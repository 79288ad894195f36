"""Rules of a cut-over between this service and a Hive metastore, in both directions: no id goes backwards."""

from collections.abc import Mapping
from typing import NamedTuple

from metastore.ids import TableName

_MOST_NAMED = 3


class Marks(NamedTuple):
    """The ids that are allocated next."""

    txn_id: int
    lock_id: int
    compaction_id: int
    write_ids: Mapping[TableName, int]


def adoption_refusal(here: Marks, there: Marks, compactions: int) -> str | None:
    """Return a sentence why ``there`` cannot be taken over; None if it can.

    ``compactions``: the number of those that are in work or not cleaned there.
    """
    if compactions:
        return (
            f"{compactions} compactions of the Hive metastore are in work or wait for its Cleaner: let them end "
            "(SHOW COMPACTIONS), with its Initiator switched off (metastore.compactor.initiator.on=false)"
        )
    ahead = []
    if here.txn_id > there.txn_id:
        ahead.append(f"the next transaction is {here.txn_id} here, {there.txn_id} there")
    tables = [name for name, write_id in here.write_ids.items() if write_id > there.write_ids.get(name, 0)]
    ahead += [
        f"the next write id of {name} is {here.write_ids[name]} here, {there.write_ids.get(name, 1)} there"
        for name in sorted(tables)[:_MOST_NAMED]
    ]
    if not ahead:
        return None
    more = f" and {len(tables) - _MOST_NAMED} more" if len(tables) > _MOST_NAMED else ""
    return (
        f"Ids would go backwards: {'; '.join(ahead)}{more}. This service has worked since: go on with it, or begin "
        "with an empty database"
    )


def release_refusal(open_txns: int, compactions: int) -> str | None:
    """Return a sentence why a Hive metastore cannot go on from here; None if it can."""
    if open_txns:
        return (
            f"{open_txns} transactions are open: let them end, or end them (`metastore show txns`, `metastore txn "
            "abort`)"
        )
    if compactions:
        return (
            f"{compactions} compactions are in work or wait for the Cleaner: let them end "
            "(`metastore show compactions`)"
        )
    return None
