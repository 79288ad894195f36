"""What a client has said about itself; an upstream hears it as well."""

_MOST_SETTINGS = 32


class Session:
    """What is said first on every connection to the upstream that stands for the client."""

    __slots__ = ("settings", "user", "version")

    def __init__(self) -> None:
        self.version = 0
        """Connections that know an older session are of no use any more."""
        self.user: tuple[bytes, ...] = ()
        """Who it says that it is."""
        self.settings: tuple[bytes, ...] = ()

    def name(self, message: bytes) -> None:
        """``set_ugi`` as the client sent it."""
        self.user = (message,)
        self.version += 1

    def set(self, message: bytes) -> None:
        """``setMetaConf`` as the client sent it."""
        self.settings = (*self.settings, message)[-_MOST_SETTINGS:]
