"""Every method with each of its structs empty, every field absent, every enum unknown: an answer that its declaration knows.

What nobody foresaw comes back as "Internal error processing ...", with a traceback in the log: that is what must not be.
"""

import re

from thrift.Thrift import TType

from metastore.thrift_gen.enums import ENUM_FIELDS
from metastore.thrift_server.wire.codec import CODECS
from metastore.thrift_server.wire.protocol import BinaryProtocol
from tests.support.thrift_server import Peer, message

SENTENCE = "Internal error processing"
UNDECLARED = re.compile(r"Invalid method name|Required (field|argument) '\w+'.* is unset!|\w+ of LockComponent is \d+: use one of ")
"""Answers that no method declares: full structs are cut at some depth, and lack what is required below it; ``lock`` declares
nothing for a wrong request."""
UNKNOWN = 9999
"""A number that no enum has."""
DEEPEST = 4
ABSENT_WITHIN = 3
"""Levels of structs whose fields are left out one by one."""
_PLAIN = {TType.BOOL: True, TType.BYTE: 1, TType.I16: 1, TType.I32: 1, TType.I64: 1, TType.DOUBLE: 1.0}


def value_of(ttype, arguments, depth, empty):
    """Return a value of this type with everything set, or with structs that have nothing set."""
    if ttype == TType.STRING:
        return b"a" if arguments == "BINARY" else "a"
    if ttype == TType.STRUCT:
        return struct_of(arguments[0], depth, empty)
    if ttype in {TType.LIST, TType.SET}:
        item = value_of(arguments[0], arguments[1], depth, empty)
        items = [] if item is None else [item]
        return set(items) if ttype == TType.SET else tuple(items) if arguments[2] else items
    if ttype == TType.MAP:
        key, item = value_of(arguments[0], arguments[1], depth, empty), value_of(arguments[2], arguments[3], depth, empty)
        return {} if key is None or item is None else {key: item}
    return _PLAIN[ttype]


def struct_of(cls, depth, empty):
    """None where structs contain themselves too deeply."""
    if depth == 0:
        return None
    made = cls()
    for entry in filter(None, cls.thrift_spec):
        setattr(made, entry[2], None if empty else value_of(entry[1], entry[3], depth - 1, empty))
    return made


def places(value, level):
    """Each (struct, field) that is set, within some levels."""
    if level == 0:
        return
    if hasattr(value, "thrift_spec"):
        for entry in filter(None, value.thrift_spec):
            if getattr(value, entry[2]) is not None:
                yield value, entry[2]
                yield from places(getattr(value, entry[2]), level - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from places(item, level)


def variants(method):
    """Yield (name, arguments) for each variant of a method's arguments."""
    codec = CODECS[method]
    cls = codec.arguments_class
    yield "nothing at all", cls()
    hollow = cls()
    for entry in filter(None, cls.thrift_spec):
        setattr(hollow, entry[2], value_of(entry[1], entry[3], 1, empty=True))
    yield "empty structs", hollow
    full = struct_of(cls, DEEPEST, empty=False)
    yield "everything", full
    for struct, field in list(places(full, ABSENT_WITHIN)):
        kept = getattr(struct, field)
        setattr(struct, field, None)
        yield f"without {type(struct).__name__}.{field}", full
        if field in dict(ENUM_FIELDS.get(type(struct).__name__, ())):
            setattr(struct, field, [UNKNOWN] if isinstance(kept, list) else UNKNOWN)
            yield f"{type(struct).__name__}.{field} = {UNKNOWN}", full
        setattr(struct, field, kept)


def test_every_method_with_fields_absent(server):
    methods = [name for name in sorted(CODECS) if not CODECS[name].oneway]  # the unhandled are unknown, and say so
    found = []
    host, port = server.thrift_uri.removeprefix("thrift://").rsplit(":", 1)
    with Peer((host, int(port))) as peer:
        for method in methods:
            codec = CODECS[method]
            for what, arguments in variants(method):
                kind, _, body = peer.call(message(method, BinaryProtocol()._encode(arguments, codec.arguments)))
                declared = codec.exceptions and str(UNKNOWN) in what  # what is refused is refused by an exception of the method
                if kind == 3 and (SENTENCE in body.message or (declared and not UNDECLARED.match(body.message))):
                    found.append(f"{method} {what}: {body.message}")
    assert found == []
