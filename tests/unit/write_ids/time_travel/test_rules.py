"""What had been committed at an instant: right, or refused."""

from datetime import UTC, datetime, timedelta

import pytest

from metastore.errors import InvalidOperationError, UnavailableError
from metastore.ids import table_name
from metastore.write_ids.time_travel.rules import Horizon, PastWriteIds, require_settled, write_ids_at

NAME = table_name("db", "t")
AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(("next_id", "unfinished", "later", "text"), [
    (1, [], [], "db.t:0:9223372036854775807::"),
    (4, [], [], "db.t:3:9223372036854775807::"),
    (4, [(1, False), (2, False), (3, False)], [], "db.t:0:9223372036854775807::"),
    (8, [(2, False), (5, True)], [7], "db.t:6:2:2:5"),
    (8, [(7, False), (5, True)], [6], "db.t:4:9223372036854775807::"),
    (8, [(3, True), (7, False)], [5, 6], "db.t:4:9223372036854775807::3"),
])
def test_lists(next_id, unfinished, later, text):
    assert write_ids_at(NAME, PastWriteIds(AT, next_id, unfinished, later), AT).format() == text


def test_a_table_that_never_had_any():
    assert write_ids_at(NAME, PastWriteIds(None, 1, [], []), AT - timedelta(days=900)).high_watermark == 0


def test_from_when_on_the_commits_are_known():
    known_since = AT + timedelta(microseconds=999)
    assert write_ids_at(NAME, PastWriteIds(known_since, 2, [], []), AT).high_watermark == 1
    with pytest.raises(InvalidOperationError, match=r"db.t held at 2026-11-21 08:59:59.999 UTC is not on record: the times "
                                                    r"of its commits are known since 2026-11-21 09:00:00.000 UTC"):
        write_ids_at(NAME, PastWriteIds(known_since, 2, [], []), AT - MS)


def test_how_near_to_now():
    require_settled(AT - MS, Horizon(AT, AT))
    with pytest.raises(UnavailableError, match="may still be under way"):
        require_settled(AT, Horizon(AT, AT))
    with pytest.raises(UnavailableError):
        require_settled(AT - MS, Horizon(AT, AT - MS))
    with pytest.raises(InvalidOperationError, match="still to come: by the metastore's clock it is 2026-11-21 09:00:00.000"):
        require_settled(AT + MS, Horizon(AT, AT))
