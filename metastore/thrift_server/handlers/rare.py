"""RPCs of rare concepts: each is declared once, beside its rule in `metastore.catalog.rare.rules`.

Rule: nothing of a concept is loaded before one of its methods is called; so the names of methods are here, by concept.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from metastore.catalog.rare.rules.objects import Method
from metastore.catalog.rare.service import RareService
from metastore.thrift_server.convert.structs import answer_from_json, request_to_json
from metastore.thrift_server.dispatch.call import Call
from metastore.thrift_server.wire.codec import CODECS

METHODS = {
    "schemas": (
        "create_ischema", "alter_ischema", "get_ischema", "drop_ischema",
        "add_schema_version", "get_schema_version", "get_schema_latest_version", "get_schema_all_versions",
        "drop_schema_version", "get_schemas_by_cols", "map_schema_version_to_serde", "set_schema_version_state",
        "add_serde", "get_serde",
    ),
    "resource_plans": (
        "create_resource_plan", "get_resource_plan", "get_all_resource_plans", "get_active_resource_plan",
        "alter_resource_plan", "validate_resource_plan", "drop_resource_plan",
        "create_wm_trigger", "alter_wm_trigger", "drop_wm_trigger", "get_triggers_for_resourceplan",
        "create_wm_pool", "alter_wm_pool", "drop_wm_pool",
        "create_or_update_wm_mapping", "drop_wm_mapping", "create_or_drop_wm_trigger_to_pool_mapping",
    ),
    "scheduled_queries": (
        "get_scheduled_query", "scheduled_query_maintenance", "scheduled_query_poll", "scheduled_query_progress",
    ),
    "data_connectors": (
        "create_dataconnector_req", "get_dataconnector_req", "get_dataconnectors", "alter_dataconnector_req",
        "drop_dataconnector_req",
    ),
    "procedures": (
        "create_stored_procedure", "get_stored_procedure", "drop_stored_procedure", "get_all_stored_procedures",
        "add_package", "find_package", "drop_package", "get_all_packages",
    ),
    "runtime_statistics": ("add_runtime_stats", "get_runtime_stats"),
    "replication_metrics": ("add_replication_metrics", "get_replication_metrics"),
    "types": ("create_type", "get_type", "drop_type"),
    "partition_marks": ("markPartitionForEvent", "isPartitionMarkedForEvent"),
}  # fmt: skip
"""The methods of each concept; a concept is a module of rules with a table ``METHODS``."""


class RareHandlers:
    """The methods of all rare concepts. The loop below adds them: they differ in their declarations only."""

    def __init__(self, rare: RareService) -> None:
        """Prepare the handlers. ``rare``: does the work."""
        self._rare = rare


def declared(concept: str) -> dict[str, Method]:
    """Return the declarations of a concept's methods, by name."""
    methods: dict[str, Method] = import_module(f"metastore.catalog.rare.rules.{concept}").METHODS
    return methods


def _handler(concept: str, name: str) -> Callable[..., Any]:
    def run(self: RareHandlers, call: Call, *arguments: Any) -> Any:
        codec = CODECS[name]
        request = request_to_json(codec.arguments_class.thrift_spec, arguments)
        answer = self._rare.run(concept, declared(concept)[name], request, call.connection.user)
        return answer_from_json(codec.success[1], answer) if codec.success else None

    return run


for _concept, _names in METHODS.items():
    for _name in _names:
        setattr(RareHandlers, _name, _handler(_concept, _name))
