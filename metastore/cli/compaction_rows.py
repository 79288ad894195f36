"""Row counts of files, from their footers."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metastore.files import Files

_AT_A_TIME = 8


def rows_of(uris: Sequence[str]) -> int | None:
    """Count the rows of all files; None if a file has no footer with the number, or has gone. Raises: OSError."""
    from metastore.files import Files

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        rows = list(pool.map(partial(_rows, Files()), uris))
    known = [number for number in rows if number is not None]
    return sum(known) if len(known) == len(rows) else None


def _rows(files: "Files", uri: str) -> int | None:
    from pyarrow import ArrowException, orc, parquet

    try:
        opened = files.open(uri)
    except FileNotFoundError:  # The Cleaner has removed it since the server listed it.
        return None
    with opened as source:
        magic = source.read(4)
        source.seek(0)
        try:
            if magic.startswith(b"ORC"):
                return int(orc.ORCFile(source).nrows)
            return int(parquet.ParquetFile(source).metadata.num_rows) if magic == b"PAR1" else None
        except (ArrowException, OSError) as error:
            raise OSError(f"The footer of {uri} cannot be read: {error}") from error
