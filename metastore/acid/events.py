"""The columns of full ACID files, and the numbers of the operations in them.

EventColumns has the same in Java; both are tested with one file of vectors. Source: ACID-7.
"""

EVENT_COLUMNS = ("operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row")
EVENT_TYPES = ("int", "bigint", "int", "bigint", "bigint")
"""Their types, but that of ``row``, which is a struct of the table's columns."""
ID_COLUMNS = ("originalTransaction", "bucket", "rowId")
"""Those that name a row, within its ACID directory."""
ROW_ID_COLUMN = "ROW__ID"
"""The three of them as a column of a query."""

INSERT_EVENT = 0
"""1 is an update, which only Hive before 3 wrote: a new version of a row under the row's old id."""
DELETE_EVENT = 2
