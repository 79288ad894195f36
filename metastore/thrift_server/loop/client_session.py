"""A client's statements about itself, which an upstream gets as well.

Rule: a session lives as long as the connection, so each part of it is bounded, and too large a part is refused.
"""

from metastore.errors import MetaError

LONGEST = 1 << 13
"""Bytes of one `set_ugi`, or of one setting's name and value."""
_MOST_SETTINGS = 32


class Session:
    """The messages that are sent first on every upstream connection for the client."""

    __slots__ = ("_settings", "user", "version")

    def __init__(self) -> None:
        self.version = 0
        """Connections that know an older session are of no use any more."""
        self.user: tuple[bytes, ...] = ()
        """The message with which the client names its user."""
        self._settings: dict[str, bytes] = {}

    def name(self, message: bytes) -> None:
        """Keep the client's ``set_ugi`` message. Raises: MetaError for too long a message."""
        require_short("set_ugi", len(message))
        self.user = (message,)
        self.version += 1

    def set(self, key: str, message: bytes) -> None:
        """Keep a ``setMetaConf`` message with only this key and its value. Raises: MetaError for too much."""
        require_short("setMetaConf", len(message))
        if key not in self._settings and len(self._settings) == _MOST_SETTINGS:
            raise MetaError(
                f"setMetaConf of {key} is refused: a connection has at most {_MOST_SETTINGS} settings of its own. "
                "Make a new connection."
            )
        self._settings.pop(key, None)
        self._settings[key] = message

    @property
    def settings(self) -> tuple[bytes, ...]:
        """The messages of settings, in the order in which they are to be sent."""
        return tuple(self._settings.values())


def require_short(method: str, size: int) -> None:
    """Raise MetaError for more than a connection keeps of one call."""
    if size > LONGEST:
        raise MetaError(f"{method} is at most {LONGEST} bytes long, since it is kept with the connection: not {size}.")
