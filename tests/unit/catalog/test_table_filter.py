"""The filter of get_table_names_by_filter (CAT-T8)."""

import pytest

from metastore.catalog.model import Table
from metastore.catalog.rules.table_filter import TableFilter
from metastore.errors import InvalidRequestError
from metastore.ids import TableName

TABLE = Table(TableName("hive", "d", "sales"), {}, owner="ann", last_access_time=90, parameters={"retention": "30", "Team": "bi"})
OWNER, ACCESS, NAME, PARAMETER = (f"hive_filter_field_{one}__" for one in ("owner", "last_access", "tableName", "params"))


@pytest.mark.parametrize(("text", "accepted"), [
    (f'{OWNER} = "ann"', True), (f'{OWNER} like ".*n"', True), (f'{OWNER} > "b"', False), (f'{OWNER} != "ann"', False),
    (f"{ACCESS} = 90", True), (f"{ACCESS} < 90", False), (f"{ACCESS} >= 90", True), (f"{ACCESS} <= 89", False),
    (f'{NAME} like "(?i)SAL.*"', True), (f'{NAME} like "SAL.*"', False), (f'{OWNER.upper()} = "ann"', True),
    (f'{PARAMETER}retention = "30"', True), (f"{PARAMETER}retention = 30", True), (f'{PARAMETER}team = "bi"', False),
    (f'{PARAMETER}Team = "bi"', True), (f'{PARAMETER}absent != "x"', False), (f'{PARAMETER}retention like "3%"', True),
    (f'{OWNER} = "bob" or {ACCESS} = 90', True), (f'{OWNER} = "bob" and {ACCESS} = 90', False),
    (f'{ACCESS} = 1 or ({OWNER} = "ann" and ({NAME} = "x" or {PARAMETER}Team = "bi"))', True),
    (f'{OWNER} not in ("ann", "bob")', False), (f"{ACCESS} between 80 and 95", True),
])
def test_which_tables_are_accepted(text: str, *, accepted: bool) -> None:
    assert TableFilter.of(text).accepts(TABLE) is accepted


@pytest.mark.parametrize(("text", "sentence"), [
    ('owner = "ann"', "Invalid key name in filter: owner. Use hive_filter_field_owner__, hive_filter_field_last_access__ or"),
    (f'{ACCESS} = 1 and ({OWNER} = "a" or x = 1)', "Invalid key name in filter: x"),
    (f'{PARAMETER}retention > "3"', "Only =, !=, <> and LIKE are supported on table parameters, not >"),
    (f'{ACCESS} like "9%"', "compared with an integer, and not by LIKE"), (f'{ACCESS} = "90"', "compared with an integer"),
    (f"{OWNER} = ", "Error parsing partition filter; unexpected 'end'"),
])
def test_a_wrong_filter_is_refused_before_any_table_is_seen(text: str, sentence: str) -> None:
    with pytest.raises(InvalidRequestError, match=sentence):
        TableFilter.of(text)
