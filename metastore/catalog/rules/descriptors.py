"""Storage descriptors: one complete, normalised form, as Hive 2.3.10 sends them (CAT-T4: lists are never null).

Column names are lower case. The location is kept apart, so that equal descriptors of partitions have equal digests.
"""

import hashlib
import json

from metastore.catalog.model import Json

_DEFAULTS: Json = {"compressed": False, "numBuckets": 0, "storedAsSubDirectories": False}


def normalised(sd: Json) -> Json:
    """Return the descriptor with lower-case columns and no collection absent.

    ``cols`` and ``serdeInfo`` may be absent.
    """
    skewed = sd.get("skewedInfo") or {}
    serde = sd.get("serdeInfo") or {}
    full = {
        **_DEFAULTS,
        **sd,
        "cols": columns(sd.get("cols") or []),
        "serdeInfo": {**serde, "parameters": serde.get("parameters") or {}},
        "bucketCols": [name.lower() for name in sd.get("bucketCols") or []],
        "sortCols": [{**column, "col": column["col"].lower()} for column in sd.get("sortCols") or []],
        "parameters": sd.get("parameters") or {},
        "skewedInfo": {
            "skewedColNames": [name.lower() for name in skewed.get("skewedColNames") or []],
            "skewedColValues": skewed.get("skewedColValues") or [],
            "skewedColValueLocationMaps": skewed.get("skewedColValueLocationMaps") or [],
        },
    }
    return {name: value for name, value in full.items() if value is not None}


def columns(fields: list[Json]) -> list[Json]:
    """Return columns or partition keys with lower-case names."""
    return [{**column, "name": column["name"].strip().lower()} for column in fields]


def split_location(sd: Json) -> tuple[str | None, Json]:
    """Return the location, and the descriptor in the form that is stored."""
    return sd.get("location"), {name: value for name, value in sd.items() if name != "location"}


def with_location(sd: Json, location: str | None) -> Json:
    """Return the descriptor in the form that clients get, with the location."""
    return {**sd, "location": location} if location is not None else sd


def digest(sd: Json) -> str:
    """Return the key of a stored descriptor; equal content has equal digests."""
    return hashlib.sha256(json.dumps(sd, sort_keys=True).encode()).hexdigest()[:32]
