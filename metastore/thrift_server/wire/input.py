"""Bytes as Thrift's accelerated decoder wants them."""

from io import BytesIO
from typing import NoReturn


class ShortError(Exception):
    """The bytes end before the value does."""


class Source:
    """The bytes of one message in the form in which the accelerated decoder reads a protocol and its transport."""

    __slots__ = ("container_length_limit", "cstringio_buf", "string_length_limit")

    def __init__(self, data: bytes, at: int) -> None:
        self.cstringio_buf = buffer = BytesIO(data)
        buffer.seek(at)
        self.string_length_limit = self.container_length_limit = len(data)

    @property
    def trans(self) -> "Source":
        """The decoder asks the protocol for its transport."""
        return self

    def cstringio_refill(self, _partial: bytes, _wanted: int) -> NoReturn:
        """The decoder wants more bytes than there are."""
        raise ShortError


class Nothing:
    """Stands for arguments that are skipped."""


SKIP = [Nothing, ()]
"""Makes the decoder step over a struct."""
