"""Sessions with PostgreSQL: the settings that correctness rests on, and their way into a session.

Rule: settings that an answer depends on are sent by us when a session begins, never taken from the server, the
database, the role or the URL. They are in the start-up packet: that wins over ALTER DATABASE and ALTER ROLE, and costs
no round trip. `check` asks once, when a process starts, whether PostgreSQL has taken them: a pooler in between may have
dropped it (ADR 0041).
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import psycopg2
from psycopg2.extensions import connection, parse_dsn

from metastore.db import network
from metastore.errors import InvalidInputError, UnavailableError

DEFAULT_SCHEMA = "public"

_PROBE_S = 5.0
_POOLED = (
    "Something between the metastore and PostgreSQL (a pooler like PgBouncer with pool_mode=transaction) gives "
    "each transaction another backend, but the metastore keeps prepared statements, advisory locks and LISTEN "
    "in its sessions"
)
_INSTEAD = "Give the address of PostgreSQL itself: the metastore pools its connections (metastore.database.pool.size)."

CORRECTNESS = {
    # A statement that waited for a row or an advisory lock must see the changes of the holder.
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "synchronous_commit": "on",  # A commit that need not wait for the disk says so itself (ADR 3).
    "row_security": "off",  # An error is raised where a policy would hide rows.
    "standard_conforming_strings": "on",  # A backslash in a literal is a backslash.
    "array_nulls": "on",
    "transform_null_equals": "off",  # PostgreSQL must read what arrays.py writes.
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",  # This is the style that psycopg2 reads.
    "client_encoding": "UTF8",
    # We close idle sessions ourselves; an open transaction of a frozen process must not block others for ever.
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "600000",
}
"""The settings of each of our sessions; times in milliseconds."""

_NETWORK = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""Settings by which PostgreSQL notices a lost client with row locks.

They are unchecked: 0 on a socket that is not TCP.
"""

PLANNING = {
    "jit": "off",  # Compiling a statement of a millisecond takes a hundred.
    "plan_cache_mode": "force_generic_plan",  # A prepared statement is planned once, not once and five times more.
    "enable_seqscan": "off",  # A plan made while a table is empty is still right when it is large.
    "enable_bitmapscan": "off",  # An index in order saves the sort behind it.
}
"""Settings for plans of the pool's sessions: each of our statements reaches its rows through an index (ADR 0012)."""

_NOT_OURS = {
    # Only a superuser sets this. Without triggers no waiter hears of a released lock, and foreign keys are not checked.
    "session_replication_role": "origin",
    # A standby cannot write, even if the session asks for it.
    "transaction_read_only": "off",
}
_IN_FORCE = "SELECT lower(name), setting FROM pg_settings WHERE lower(name) = ANY (%s)"


def search_path(schema: str) -> str:
    """Return the setting that leads to our tables, and to no others of the same name."""
    return '"' + schema.replace('"', '""') + '"'


def parameters(url: str, application: str, settings: Mapping[str, str], *, schema: str | None = None) -> dict[str, Any]:
    """Return the arguments of psycopg2.connect for a session with these settings on top of `CORRECTNESS`.

    ``options`` of the URL come first, so that ours win. Without a ``schema`` the role's own search path decides.

    Raises: InvalidInputError.
    """
    ours = {**CORRECTNESS, **_NETWORK, **settings, **({} if schema is None else {"search_path": search_path(schema)})}
    try:
        parsed = parse_dsn(url)
    except psycopg2.Error:  # The error's text contains the password.
        raise InvalidInputError(
            "The URL of the database cannot be read. It looks like "
            "postgresql://user@host:5432/name, options of libpq behind a question mark."
        ) from None
    options = [parsed.get("options", ""), *(f"-c {name}={_escaped(value)}" for name, value in ours.items())]
    return {**network.SILENCE, **parsed, "options": " ".join(filter(None, options)), "application_name": application}


def require_own(url: str) -> None:
    """Require that a session keeps its backend: a pooler in transaction mode gives each transaction any of its own.

    While one session holds a backend, another that was there before must still have its own.

    Raises: InvalidInputError, UnavailableError.
    """
    seconds, ask = _PROBE_S, "SELECT pg_backend_pid()"
    with closing(connect(url)) as first, closing(connect(url)) as second:
        try:
            [(before,)] = network.ask(first, ask, seconds=seconds)
            [(held,)] = network.ask(second, f"BEGIN; {ask}", seconds=seconds)
            [(after,)] = network.ask(first, ask, seconds=seconds)
        except (psycopg2.Error, TimeoutError) as error:
            raise UnavailableError(
                f"The metastore's database does not answer: {error}. A pooler with a single backend "
                "for two sessions looks the same."
            ) from error
    if before != after or before == held:
        raise InvalidInputError(f"{_POOLED}. {_INSTEAD}")


def connect(url: str) -> connection:
    """Open a session for a question at the start.

    Raises: UnavailableError, InvalidInputError (a pooler is in between).
    """
    try:
        return network.connect(parameters(url, "metastore start", {}), _PROBE_S)
    except UnavailableError as error:
        if "unsupported startup parameter" in str(error):
            raise InvalidInputError(
                f"Something between the metastore and PostgreSQL (a pooler like PgBouncer) refuses the settings with "
                f"which a session begins, and correctness rests on them: {str(error.__cause__).strip()}. {_INSTEAD}"
            ) from error
        raise


def check(sql: Any, settings: Mapping[str, str], schema: str) -> None:
    """Raise InvalidInputError if sessions do not have our settings.

    ``sql``: runs a query with parameters, in such a session.

    The error names each setting with its value and the value that it must have.
    """
    wanted = {**CORRECTNESS, **settings, **_NOT_OURS, "search_path": search_path(schema)}
    in_force = dict(sql(_IN_FORCE, [list(wanted)]))
    wrong = [
        f"{name} is {in_force.get(name, 'unknown')!r} and must be {value!r}"
        for name, value in wanted.items()
        if in_force.get(name) != value and "." not in name
    ]
    if wrong:
        raise InvalidInputError(
            f"Sessions of the metastore in its database do not have the settings that correctness rests on: "
            f"{'; '.join(wrong)}. The metastore asks for them when a session begins, so something in between drops "
            "that: connect to the primary PostgreSQL itself, or through a pooler that pools sessions and passes "
            "start-up options on, and start the metastore without PGTZ, PGDATESTYLE and PGCLIENTENCODING. "
            "session_replication_role stands in an ALTER ROLE, an ALTER DATABASE or postgresql.conf."
        )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
