"""The user that runs the embedded PostgreSQL, since it refuses to run as root.

Rules: a user who is not root runs PostgreSQL himself. Under root it runs as a user of its own, if that user may pass
the directories above the data and the programs; else as root in a user namespace in which root has another number.
Modes of directories that are not ours are never changed: if neither way is open the start is refused with a remedy.
"""

import contextlib
import ctypes
import fcntl
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metastore.errors import UnavailableError

STAND_IN = "pgserver"
_ACCOUNTS = "/etc"
_INSIDE = 1000
"""Root's number in the namespace."""
_CLONE_NEWUSER = 0x10000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class PostgresUser:
    """A user as the file system sees it. ``gid``: None if files need not be handed over to it."""

    uid: int
    gid: int | None = None
    in_namespace: bool = False

    def own(self, path: Path) -> None:
        """Hand over a new file or directory to the user."""
        if self.gid is not None:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def process(self, first: Callable[[], None] | None = None) -> dict[str, Any]:
        """Return arguments by which a subprocess runs as this user.

        ``first``: a call that the subprocess makes before the program.
        """
        if self.gid is not None:
            return {"user": self.uid, "group": self.gid, "extra_groups": [], "preexec_fn": first}
        if not self.in_namespace:
            return {"preexec_fn": first}

        def enter() -> None:
            _enter_namespace()
            if first is not None:
                first()

        return {"preexec_fn": enter}


def chosen(cluster: Path, programs: Path) -> PostgresUser:
    """Choose the user who runs the PostgreSQL in ``cluster``, which need not exist yet. Raises: UnavailableError."""
    if os.geteuid() != 0:
        return PostgresUser(os.geteuid())
    account = _account()
    owner = cluster.stat().st_uid if cluster.exists() else None
    closed = None
    if account is not None and owner in {None, account.pw_uid}:
        closed = next(_closed_to(account, [cluster, programs]), None)
        if closed is None:
            return PostgresUser(account.pw_uid, account.pw_gid)
    if owner in {None, 0} and _namespaces_work():
        return PostgresUser(0, in_namespace=True)
    raise UnavailableError(
        f"PostgreSQL refuses to run as root, and its user {STAND_IN!r} "
        + (
            "could not be added"
            if account is None
            else f"may not pass the directory {closed}"
            if closed
            else f"does not own {cluster}"
        )
        + ". Run the metastore as another user, choose a --data-dir that every user may reach (the package must be "
        f"where every user may reach it as well), allow the passage (chmod o+x), add the user {STAND_IN!r}, or give a "
        "PostgreSQL with --database-url."
    )


def _account() -> pwd.struct_passwd | None:
    """Return the PostgreSQL user; add it if it is missing and may be added."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(STAND_IN)
    useradd = shutil.which("useradd")
    if useradd:
        with _alone():
            with contextlib.suppress(KeyError):
                return pwd.getpwnam(STAND_IN)
            subprocess.run(  # noqa: S603 - a constant command
                [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", STAND_IN],
                check=False,
                capture_output=True,
            )
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(STAND_IN)
    return None


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one metastore of this machine at a time run the block.

    useradd looks for the name before it takes its own lock. If two ran at once, the second would give the user another
    number, and the first one's PostgreSQL files would have no owner.
    """
    accounts = os.open(_ACCOUNTS, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(accounts, fcntl.LOCK_EX)
        yield
    finally:
        os.close(accounts)


def _closed_to(account: pwd.struct_passwd, paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the directories above these paths that the user may not pass."""
    for path in paths:
        for parent in path.parents:
            status = parent.stat()
            bit = (
                stat.S_IXUSR
                if status.st_uid == account.pw_uid
                else stat.S_IXGRP
                if status.st_gid == account.pw_gid
                else stat.S_IXOTH
            )
            if not status.st_mode & bit:
                yield parent


def _enter_namespace() -> None:
    """Enter, in a child, a user namespace in which the user is not called root; rights do not change."""
    if _LIBC.unshare(_CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_INSIDE} 0 1")
    Path("/proc/self/gid_map").write_text(f"{_INSIDE} 0 1")


def _namespaces_work() -> bool:
    try:
        subprocess.run(["/bin/true"], preexec_fn=_enter_namespace, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return True
