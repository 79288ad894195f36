"""A commit that PostgreSQL is still carrying out when the server that sent it loses the connection."""

import os
import socket
import threading
from contextlib import contextmanager

import psycopg2
import pytest

from metastore.db.pool import ConnectionPool

_WAITING = ("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'metastore' "
            "AND datname = current_database() AND pid <> %s")
PATIENCE_S = 30.0


@pytest.fixture
def commit_in_flight(database_url, monkeypatch):
    """``with commit_in_flight():`` the first commit of a writer in the block loses its connection, and goes on.

    It waits for the counter's row, which somebody else holds until a second session of the server waits as well,
    whatever that wants. ``seen`` of what the block is given: how many sessions have waited.
    """
    links = []
    take = ConnectionPool.take

    def noted(pool):
        links.append(take(pool))
        return links[-1]

    monkeypatch.setattr(ConnectionPool, "take", noted)

    @contextmanager
    def holding():
        holder, watcher = psycopg2.connect(database_url), psycopg2.connect(database_url)
        watcher.autocommit = True
        cursor = watcher.cursor()
        holder.cursor().execute("SELECT FROM txn_counter FOR UPDATE")
        pause, seen = threading.Event(), []

        def first_beside(pid):
            for _ in range(int(PATIENCE_S / 0.01)):
                cursor.execute(_WAITING, (pid,))
                if waiting := cursor.fetchone():
                    seen.append(waiting[0])
                    return
                pause.wait(0.01)

        def act():
            try:
                first_beside(0)
                for link in links:
                    if not link.raw.closed and seen[0] == link.raw.info.backend_pid:
                        with socket.socket(fileno=os.dup(link.raw.fileno())) as cut:
                            cut.shutdown(socket.SHUT_RDWR)
                first_beside(seen[0])
            finally:
                holder.rollback()

        thread = threading.Thread(target=act)
        thread.start()
        try:
            yield seen
        finally:
            thread.join()
            holder.close()
            watcher.close()
    return holding
