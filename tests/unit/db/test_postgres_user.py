"""The user that the embedded PostgreSQL runs as under root."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from metastore.db import postgres_user


def test_two_metastores_that_start_at_once_add_one_user(monkeypatch, tmp_path):
    """useradd gives a name that it has not seen while it looked another number: the first one's files would be nobody's."""
    both_looked, accounts, looks = threading.Barrier(2), [], threading.local()

    def getpwnam(name):
        if not getattr(looks, "first", None):
            looks.first = True
            both_looked.wait(timeout=60)
            raise KeyError(name)
        if not accounts:
            raise KeyError(name)
        return accounts[-1]

    monkeypatch.setattr(postgres_user, "_ACCOUNTS", str(tmp_path))
    monkeypatch.setattr(postgres_user.pwd, "getpwnam", getpwnam)
    monkeypatch.setattr(postgres_user.shutil, "which", lambda program: program)
    monkeypatch.setattr(postgres_user.subprocess, "run", lambda *_, **__: accounts.append(SimpleNamespace(pw_uid=999 - len(accounts))))

    with ThreadPoolExecutor(2) as threads:
        found = [start.result() for start in [threads.submit(postgres_user._account) for _ in range(2)]]

    assert [account.pw_uid for account in found] == [999, 999]
