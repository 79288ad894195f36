"""The columns of a row's id: beside a table's own in a plan, and as users see them."""

from metastore.acid_tables.table import OURS

OPERATION, WRITE_ID, BUCKET, ROW_NUMBER, BY = (
    f"{OURS}{name}" for name in ("operation", "write_id", "bucket", "row_id", "by")
)
"""A scan's names of an event's fields; the last is the write id of the statement that wrote the event."""

ROW_ID = (WRITE_ID, BUCKET, ROW_NUMBER)
"""A row's id: a compaction keeps it, and it is unique within an ACID directory."""
