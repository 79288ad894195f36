"""The life of a process."""

import gc
import subprocess
import sys
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


def test_a_signal_that_does_not_interrupt_the_main_thread_stops_the_process():
    """Deliver it to another thread, as one that arrives just before the main thread begins to wait: Python's handler does not run."""
    script = """
import os, signal, threading
from metastore.cli import lifecycle
stopping = lifecycle.stop_signals()
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
stopping.wait()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
