"""Grafana's dashboards in the chart, made from deploy/dashboards.yaml."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.docs.chart import CHART

SOURCE = Path(__file__).parents[2] / "deploy" / "dashboards.yaml"
_WIDTH, _HEIGHTS = 24, {"stat": 4, "timeseries": 8}
"""A dashboard is 24 units wide."""
_DATA = {"type": "prometheus", "uid": "${datasource}"}


def pages() -> dict[Path, Callable[[], Iterator[str]]]:
    """Return the files, and what makes each."""
    return {CHART / "dashboards" / f"{board['name']}.json": partial(_page, board) for board in boards()}


def boards() -> list[dict[str, Any]]:
    """Return the dashboards as the source has them."""
    return yaml.safe_load(SOURCE.read_text())


def _page(board: dict[str, Any]) -> Iterator[str]:
    panels, top = [], 0
    for row in board["rows"]:
        height, width = _HEIGHTS[row[0].get("kind", "timeseries")], _WIDTH // len(row)
        for at, panel in enumerate(row):
            panels.append(_panel(panel, len(panels) + 1, {"x": at * width, "y": top, "w": width, "h": height}))
        top += height
    yield json.dumps({
        "uid": f"transaction-metastore-{board['name']}", "title": board["title"], "tags": ["transaction-metastore"], "schemaVersion": 39,
        "editable": True, "refresh": "30s", "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]},
        "links": [{"type": "dashboards", "title": "Transaction metastore", "tags": ["transaction-metastore"], "asDropdown": True}],
        "panels": panels}, indent=1) + "\n"


def _panel(panel: dict[str, Any], number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [{"refId": chr(ord("A") + at), "expr": asked, "legendFormat": legend, "datasource": _DATA} for at, (legend, asked) in enumerate(panel["of"].items())]
    return {"id": number, "type": panel.get("kind", "timeseries"), "title": panel["title"], "description": panel["tells"], "gridPos": place, "datasource": _DATA,
            "fieldConfig": {"defaults": {"unit": panel["unit"], "min": 0}, "overrides": []}, "targets": targets}
