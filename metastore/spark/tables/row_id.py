"""The columns of a row's id: their names in a plan, beside the table's columns, and their names for users."""

from metastore.acid_tables.table import OURS

OPERATION, WRITE_ID, BUCKET, ROW_NUMBER, BY = (
    f"{OURS}{name}" for name in ("operation", "write_id", "bucket", "row_id", "by")
)
"""Names of an event's fields in a scan; the last is the write id of the statement that wrote the event."""

ROW_ID = (WRITE_ID, BUCKET, ROW_NUMBER)
"""A row's id: a compaction keeps it, and it is unique within an ACID directory."""
