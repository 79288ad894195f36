"""Side files: the last complete length counts."""

import pytest

from metastore.acid.side_files import MalformedSideFileError, flushed_length


def _lengths(*lengths: int) -> bytes:
    return b"".join(length.to_bytes(8, "big") for length in lengths)


@pytest.mark.parametrize(("content", "expected"), [
    (_lengths(0), 0),
    (_lengths(0, 660, 1360), 1360),
    (_lengths(0, 660) + b"\0\0\1", 660),
    (_lengths(2**40), 2**40)])
def test_the_last_complete_length_counts(content: bytes, expected: int) -> None:
    assert flushed_length(content, "x_flush_length") == expected


@pytest.mark.parametrize("content", [b"", b"\0" * 7])
def test_a_side_file_without_a_length_is_an_error(content: bytes) -> None:
    with pytest.raises(MalformedSideFileError, match="x_flush_length says no length"):
        flushed_length(content, "x_flush_length")
