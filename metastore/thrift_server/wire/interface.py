"""The methods of the interface."""

from collections.abc import Mapping
from typing import Any

from metastore.thrift_gen.fb303 import FacebookService
from metastore.thrift_gen.hive_metastore import ThriftHiveMetastore
from metastore.thrift_gen.operators import MetastoreOperators

METHODS: Mapping[str, Any] = {
    name: module for module in (FacebookService, ThriftHiveMetastore, MetastoreOperators) for name in module.METHODS
}
"""Generated module by method name: Hive's interface and, on the same port, our own calls for operators."""
