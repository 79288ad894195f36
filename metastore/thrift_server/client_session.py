"""What a client has said about itself; an upstream hears it as well."""

_MOST_SETTINGS = 32


class Session:
    """What is said first on every connection to the upstream that stands for the client."""

    __slots__ = ("_settings", "_user", "version")

    def __init__(self) -> None:
        self.version = 0
        """Connections that know an older session are of no use any more."""
        self._user: tuple[bytes, ...] = ()
        self._settings: tuple[bytes, ...] = ()

    def name(self, message: bytes) -> None:
        """``set_ugi`` as the client sent it."""
        self._user = (message,)
        self.version += 1

    def set(self, message: bytes) -> None:
        """``setMetaConf`` as the client sent it."""
        self._settings = (*self._settings, message)[-_MOST_SETTINGS:]

    @property
    def messages(self) -> tuple[bytes, ...]:
        """In the order in which they are to be sent."""
        return (*self._user, *self._settings)
