"""Hadoop's keys of object stores (``fs.s3a.*``, ``fs.gs.*``, ``fs.azure.*``), as arguments for fsspec's file systems.

Rule: a key means here what it means to Hadoop, or the process does not start; none that decides who reads, where or how
is ignored. Keys that only tune Hadoop's client change nothing here. Compaction jobs get all of them as they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from metastore.object_stores import azure, credentials, google, s3

PREFIXES = (
    "fs.s3a.",
    "fs.gs.",
    "fs.azure.",
    "google.cloud.auth.",
    "hadoop.security.credential.",
    "hadoop.security.credstore.",
)
_STORES = {
    "s3": s3.options,
    "s3a": s3.options,
    "s3n": s3.options,
    "gs": google.options,
    "abfs": azure.options,
    "abfss": azure.options,
    "wasb": azure.options,
    "wasbs": azure.options,
}
_EFFECTIVE = {"fs.s3a.": s3.KEYS, "fs.gs.": google.KEYS, "google.cloud.auth.": google.OLD_KEYS, "fs.azure.": azure.KEYS}


@dataclass(frozen=True)
class ObjectStores:
    """The keys of object stores in force, by name."""

    keys: Mapping[str, str] = field(default_factory=dict, repr=False)

    def options(self, uri: str) -> dict[str, Any]:
        """Return fsspec's arguments for the store of a URI. Raises: ValueError naming a key without an equivalent."""
        scheme = urlsplit(uri).scheme.lower()
        found = _STORES[scheme](self.keys, urlsplit(uri).netloc) if self.keys and scheme in _STORES else {}
        if "session" in found:
            found["session"] = credentials.session(found["session"])
        if "credential" in found:
            found["credential"] = credentials.azure_credential(*found["credential"])
        return found

    def require_usable(self) -> None:
        """Raise ValueError, naming the key, unless all keys have an equivalent, for each bucket that is named."""
        for bucket in ("", *s3.buckets(self.keys)):
            s3.options(self.keys, bucket)
        google.options(self.keys, "")
        for account in ("", *azure.accounts(self.keys)):
            azure.options(self.keys, f"container@{account}")

    def of_jobs(self) -> dict[str, str]:
        """Return the keys for Hadoop in a job."""
        return {name: text for name, text in self.keys.items() if not _is_of_files(name)}


def is_key(name: str) -> bool:
    """Return True if a key is one of object stores."""
    return name.startswith(PREFIXES)


def effect(name: str) -> str:
    """Return a note on a key that works only in compaction jobs; "" if it works in our own file systems too."""
    prefix = next((prefix for prefix in _EFFECTIVE if name.startswith(prefix)), None)
    if prefix is None or _is_effective(name, prefix):
        return ""
    return "only in compaction jobs: it tunes Hadoop's client"


def _is_of_files(name: str) -> bool:
    """Return True for keys that name credential files. A job gets the credentials and need not read the files."""
    return name.startswith("hadoop.") or name.endswith(".security.credential.provider.path")


def _is_effective(name: str, prefix: str) -> bool:
    return any(
        short == key or short.startswith(f"{key}.") for short in _shorts(name, prefix) for key in _EFFECTIVE[prefix]
    )


def _shorts(name: str, prefix: str) -> Iterator[str]:
    """Yield the name without its prefix, and without the bucket, whose name may have dots."""
    short = name.removeprefix(prefix)
    yield short
    if short.startswith("bucket."):
        words = short.split(".")
        yield from (".".join(words[at:]) for at in range(2, len(words)))
