"""What Thrift's own compiler makes for a server of ours: the processor of the whole interface."""

from thrift.Thrift import TApplicationException, TMessageType, TProcessor
from thrift.transport.TTransport import TTransportException

from metastore.thrift_server.wire.interface import METHODS


class Processor(TProcessor):
    """Calls a handler object, one message at a time."""

    def __init__(self, handler):
        self._handler = handler

    def process(self, iprot, oprot):
        name, _, seqid = iprot.readMessageBegin()
        module = METHODS[name]
        arguments = getattr(module, f"{name}_args")()
        arguments.read(iprot)
        iprot.readMessageEnd()
        values = [getattr(arguments, field) for field in arguments.__slots__]
        if module.METHODS[name][1] is None:
            getattr(self._handler, name)(*values)
            return
        kind, answer = TMessageType.REPLY, getattr(module, f"{name}_result")()
        entries = [entry for entry in answer.thrift_spec if entry]
        try:
            value = getattr(self._handler, name)(*values)
            if entries and entries[0][0] == 0:
                answer.success = value
        except TTransportException:
            raise
        except Exception as error:  # noqa: BLE001 - as the compiler's do
            declared = [entry[2] for entry in entries if entry[0] and isinstance(error, entry[3][0])]
            if declared:
                setattr(answer, declared[0], error)
            else:
                kind, answer = TMessageType.EXCEPTION, (
                    error if isinstance(error, TApplicationException)
                    else TApplicationException(TApplicationException.INTERNAL_ERROR, "Internal error"))
        oprot.writeMessageBegin(name, kind, seqid)
        answer.write(oprot)
        oprot.writeMessageEnd()
        oprot.trans.flush()
