"""The life of a process."""

import gc
from threading import Event

from metastore.cli import lifecycle


class Service:
    """Makes something when it starts, and looks at its end whether the garbage collector walks it."""

    def __init__(self):
        self.made, self.walked = [], None

    def start(self):
        self.made = [[]]

    def stop(self):
        self.walked = any(each is self.made for each in gc.get_objects())

    def addresses(self):
        return {}


def test_what_the_start_made_is_not_collected():
    service, stopping = Service(), Event()
    stopping.set()
    try:
        lifecycle.run(service, stopping, [], None)
    finally:
        gc.unfreeze()
    assert service.walked is False
