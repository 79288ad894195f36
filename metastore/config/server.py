"""Settings of the server's ports and of its log."""

from dataclasses import dataclass
from datetime import timedelta

from metastore.config import values
from metastore.config.keys import key
from metastore.config.values import choice, duration, integer

_S = duration("s")
_MS = duration("ms")
_POSITIVE = integer(1)


# A row of the table of keys stays together.
# fmt: off


@dataclass(frozen=True)
class ServerSettings:
    """The Thrift server and the HTTP port."""

    host: str = key(values.TEXT, "hive.metastore.thrift.bind.host", "127.0.0.1",
                    "Address to listen on; other than loopback needs TLS with client certificates, or "
                    "metastore.server.allow.insecure. Hive: all.")
    port: int = key(integer(0, 65535), "hive.metastore.port", "9083", "Thrift port; 0: a free one.",
                    "hive.metastore.thrift.port")
    http_port: int = key(
        integer(0, 65535), "metastore.http.port", "9084",
        "Port of /metrics, /livez and /readyz; 0: a free one. Hive: no such key.")
    hive_version: str = key(
        values.TEXT, "metastore.server.hive.version", "4.2.0",
        "Answer of getVersion: the version of Hive for which its clients take this server. Hive: its own.")
    framed: bool = key(values.FLAG, "hive.metastore.thrift.framed.transport.enabled", "false", "Framed transport.")
    compact_protocol: bool = key(values.FLAG, "hive.metastore.thrift.compact.protocol.enabled", "false",
                                 "Compact protocol.")
    max_message_size: int = key(
        values.SIZE, "hive.metastore.server.max.message.size", "104857600", "Largest request in bytes.")
    max_message_objects: int = key(
        _POSITIVE, "metastore.server.max.message.objects", "1000000",
        "Most structs in one request, and most values in one of its lists or maps. Hive: no such key.")
    transfer_timeout: timedelta = key(
        _S, "metastore.server.transfer.timeout", "60s",
        "Close a connection on which half a request or half an answer does not move for so long, or that takes longer "
        "than this and a second for each 64 KB; 0: never. Hive: no such key.")
    max_buffered: int = key(
        values.SIZE, "metastore.server.max.buffered", "512mb",
        "Bytes of half requests and half answers over all connections, beyond which those go that have not moved for "
        "longest. Hive: no such key.")
    max_connections: int = key(
        _POSITIVE, "metastore.server.max.connections", "10000",
        "Connections above this are closed at once, with a line in the log. Hive: server.max.threads.")
    worker_threads: int = key(
        _POSITIVE, "metastore.server.worker.threads", "16",
        "Calls that are worked on at a time. Hive: server.max.threads.")
    idle_timeout: timedelta = key(
        _S, "metastore.server.idle.timeout", "0s",
        "Close a connection after this silence; 0: never. Hive: no such key.")
    tcp_keepalive: bool = key(values.FLAG, "hive.metastore.server.tcp.keepalive", "true", "TCP keep-alive.")
    drain_timeout: timedelta = key(
        _S, "metastore.server.drain.timeout", "20s",
        "How long a stopping server waits for the calls in flight. Hive: no such key.")
    slow_call: timedelta = key(
        _MS, "metastore.server.slow.call.threshold", "1000ms",
        "A call that takes longer is logged. Hive: no such key.")
    execute_setugi: bool = key(values.FLAG, "hive.metastore.execute.setugi", "true",
                               "set_ugi names the connection's user.")


@dataclass(frozen=True)
class LogSettings:
    """The log."""

    level: str = key(
        choice("debug", "info", "warning", "error"), "metastore.log.level", "info", "Least severity that is logged.")
    format: str = key(
        choice("auto", "json", "console"), "metastore.log.format", "auto",
        "auto: console on a terminal, json elsewhere.")
