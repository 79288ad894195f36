"""What several of these tests vary."""

import pytest

from metastore.spark.read import scans


@pytest.fixture(params=[scans.SMALL, 0], ids=["whole", "in parts"])
def small(request, monkeypatch) -> None:
    """Small files, read at once and as large ones."""
    monkeypatch.setattr(scans, "SMALL", request.param)
