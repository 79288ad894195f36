"""The columns of full ACID files, and the numbers of the operations in them. Source: ACID-7."""

EVENT_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
ID_COLUMNS = ("originalTransaction", "bucket", "rowId")
"""Those that name a row, within its ACID directory."""

INSERT_EVENT = 0
"""1 is an update, which only Hive before 3 wrote: a new version of a row under the row's old id."""
DELETE_EVENT = 2
