"""Errors about transactions that ended tell what became of them: who ended it, when and why.

Rule: that costs a look into the database only where a call failed, one for all failures of a batch, and never changes
the beginning of a text or the type of an error.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from metastore.errors import TxnEndedError
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.codec import CODECS
from metastore.thrift_server.handler import Handler

Tell = Callable[[Sequence[object]], None]


def telling(handlers: Mapping[str, Handler], tell: Tell) -> dict[str, Handler]:
    """The handlers, those of methods that can say "no such transaction" with ``tell`` looking at their errors."""
    return {name: _telling(handler, tell) if ttypes.NoSuchTxnException in CODECS[name].exceptions else handler
            for name, handler in handlers.items()}


def _telling(handler: Handler, tell: Tell) -> Handler:
    def run_one(*arguments: Any) -> Any:
        try:
            return handler.run(*arguments)
        except TxnEndedError as error:
            tell([error])
            raise

    def run_batch(calls: list[Any]) -> Any:
        results = handler.run(calls)
        ended = [one for one in results if isinstance(one, TxnEndedError)]
        if ended:
            tell(ended)
        return results

    return dataclasses.replace(handler, run=run_batch if handler.lane is not None else run_one)
