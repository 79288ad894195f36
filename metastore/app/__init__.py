"""The composition root: settings in, a running process out. The only place where parts meet.

``services`` builds each service once, ``handlers`` and ``loops`` hand them to their users; ``server`` and ``worker``
start and stop the two kinds of process, step by step.
"""

from metastore.app.process import VERSION
from metastore.app.server import App
from metastore.app.worker import WorkerApp

__all__ = ["VERSION", "App", "WorkerApp"]
