"""A metastore that has lost its database for some of its calls: it stands before a real server and relays the others."""

from tests.unit.client.fake_server import FakeServer

SENTENCE = "The metastore's database went away, nothing was changed, try again: could not connect to server"


class Away:
    """Relays every call to ``client``, and answers those in ``lost`` as a server without its database does."""

    def __init__(self, client, *lost):
        self.client, self.lost = client, set(lost)

    def __getattr__(self, name):
        if name in self.lost:
            def refused(*_):
                raise self.client.types.MetaException(SENTENCE)
            return refused
        return getattr(self.client, name)


def without_database(client, *lost):
    """Return a server, to be used in a with statement; ``handler.lost`` may be changed on the way."""
    return FakeServer(Away(client, *lost))
