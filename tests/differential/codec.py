"""Calls and answers of the Thrift interface as plain data, by the facts of `tests/support/wire/union.json`.

A struct is a dict of the fields that are set: no default value is filled in, so "absent" and "default" stay apart. Enums
are numbers, binary values are text in Latin-1, maps with other keys than texts are lists of pairs.
"""

import re
from functools import cache

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from tests.support.thrift_server import facts

FACTS = facts()
SCALARS = {"bool": (TType.BOOL, "Bool"), "byte": (TType.BYTE, "Byte"), "i16": (TType.I16, "I16"), "i32": (TType.I32, "I32"),
           "i64": (TType.I64, "I64"), "double": (TType.DOUBLE, "Double"), "string": (TType.STRING, "String"), "binary": (TType.STRING, "Binary")}
_INNER = re.compile(r"(list|set|map)<(.*)>")


@cache
def kind_of(declared):
    """Return ("list", element), ("map", key, value), ("struct", name), ("enum", name) or ("scalar", name)."""
    if match := _INNER.fullmatch(declared):
        if match[1] != "map":
            return match[1], match[2]
        depth = 0
        for at, letter in enumerate(match[2]):
            depth += (letter == "<") - (letter == ">")
            if letter == "," and not depth:
                return "map", match[2][:at], match[2][at + 1:].strip()
    if declared in SCALARS:
        return "scalar", declared
    return ("enum" if declared in FACTS["enums"] else "struct"), declared


def ttype(declared):
    kind = kind_of(declared)
    return {"list": TType.LIST, "set": TType.SET, "map": TType.MAP, "struct": TType.STRUCT, "enum": TType.I32}.get(kind[0]) or SCALARS[declared][0]


def fields_of(name):
    return FACTS["structs"][name]["fields"]


def write(out, declared, value):
    """Write one value of this type."""
    kind = kind_of(declared)
    match kind[0]:
        case "struct":
            write_struct(out, fields_of(kind[1]), value)
        case "list" | "set":
            getattr(out, f"write{kind[0].title()}Begin")(ttype(kind[1]), len(value))
            for item in value:
                write(out, kind[1], item)
        case "map":
            pairs = value.items() if isinstance(value, dict) else value
            out.writeMapBegin(ttype(kind[1]), ttype(kind[2]), len(value))
            for key, item in pairs:
                write(out, kind[1], key)
                write(out, kind[2], item)
        case "enum":
            out.writeI32(value)
        case _ if kind[1] == "binary":
            out.writeBinary(value.encode("latin-1"))
        case _:
            getattr(out, f"write{SCALARS[kind[1]][1]}")(value)


def write_struct(out, fields, values):
    for field in fields:
        if values.get(field["name"]) is not None:
            out.writeFieldBegin(field["name"], ttype(field["type"]), field["id"])
            write(out, field["type"], values[field["name"]])
    out.writeFieldStop()


def read(source, declared):
    """Read one value of this type."""
    kind = kind_of(declared)
    match kind[0]:
        case "struct":
            return read_struct(source, fields_of(kind[1]))
        case "list" | "set":
            _, size = source.readListBegin()
            return [read(source, kind[1]) for _ in range(size)]
        case "map":
            _, _, size = source.readMapBegin()
            pairs = [[read(source, kind[1]), read(source, kind[2])] for _ in range(size)]
            return dict(pairs) if kind[1] == "string" else sorted(pairs)
        case "enum":
            return source.readI32()
        case _ if kind[1] == "binary":
            return source.readBinary().decode("latin-1")
        case _:
            return getattr(source, f"read{SCALARS[kind[1]][1]}")()


def read_struct(source, fields):
    by_id, found = {field["id"]: field for field in fields}, {}
    while True:
        _, kind, number = source.readFieldBegin()
        if kind == TType.STOP:
            return found
        field = by_id.get(number)
        if field is None or ttype(field["type"]) != kind:  # another version's, as every reader does
            source.skip(kind)
        else:
            found[field["name"]] = read(source, field["type"])


def results_of(method):
    facts = FACTS["methods"][method]
    returned = [] if facts["returns"] == "void" else [{"id": 0, "name": "success", "type": facts["returns"]}]
    return returned + facts["throws"]


class Connection:
    """A connection to one server, made anew when the server has closed it."""

    def __init__(self, host, port):
        self._at, self._transport = (host, port), None

    def close(self):
        if self._transport:
            self._transport.close()
            self._transport = None

    def call(self, method, arguments):
        """Return ("ok", value), ("error", exception's name, its fields), ("refused", why) or ("unknown",)."""
        was_open = self._transport is not None
        try:
            if not was_open:
                sock = TSocket(*self._at)
                sock.setTimeout(15_000)
                self._transport = TBufferedTransport(sock)
                self._transport.open()
                self._call(TBinaryProtocol(self._transport), "set_ugi", {"user_name": "ann", "group_names": ["ann"]})
            return self._call(TBinaryProtocol(self._transport), method, arguments)
        except (TTransportException, EOFError, OSError, TProtocolException) as error:
            self.close()
            if "timed out" in str(error):
                return "refused", "no answer in time"
            if was_open:  # a server of Hive's closes a connection after some errors, which is seen at the next call
                return self.call(method, arguments)
            return "refused", "connection closed"

    def _call(self, protocol, method, arguments):
        facts = FACTS["methods"][method]
        protocol.writeMessageBegin(method, TMessageType.ONEWAY if facts["oneway"] else TMessageType.CALL, 1)
        write_struct(protocol, facts["args"], arguments)
        protocol.writeMessageEnd()
        protocol.trans.flush()
        if facts["oneway"]:
            return "ok", None
        _, kind, _ = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            return ("unknown",) if error.type == TApplicationException.UNKNOWN_METHOD else ("refused", str(error.message))
        results = results_of(method)
        found = read_struct(protocol, results)
        for field in results:
            if field["id"] and field["name"] in found:
                return "error", field["type"], found[field["name"]]
        if facts["returns"] != "void" and "success" not in found:
            return "refused", "no result"
        return "ok", found.get("success")
