"""The property that keeps a table's past."""

from datetime import timedelta

import pytest

from metastore.acid.retention import HISTORY_RETENTION, history_retention
from metastore.errors import MetaError


@pytest.mark.parametrize(("parameters", "days"), [
    ({}, 0), ({"other": "x"}, 0), ({HISTORY_RETENTION: "0"}, 0), ({HISTORY_RETENTION: " 30 "}, 30),
    ({HISTORY_RETENTION.upper(): "36500"}, 36500)])
def test_days(parameters, days):
    assert history_retention(parameters) == timedelta(days=days)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "a week", "36501", "9" * 5000, "٣"])
def test_what_is_no_number_of_days(text):
    with pytest.raises(MetaError, match="'acid.history.retention.days' must be a whole number of days from 0 to 36500, not "):
        history_retention({HISTORY_RETENTION: text})
