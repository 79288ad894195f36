"""Reads of partitions, in the positional form of 2.3 and 3.x and in the requests of 4.x.

``max_parts``: negative is unlimited, 0 is none, except for get_partition_names, where 2.3 answers all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from metastore.catalog.model import Table
from metastore.catalog.rules.partitions import Partition, require_allowed_characters
from metastore.catalog.service.partition_lists import Selection
from metastore.catalog.service.partition_reads import PartitionReads
from metastore.errors import InvalidRequestError, NoSuchObjectError
from metastore.ids import TableName
from metastore.partition_names import parse_name
from metastore.thrift_gen.hive_metastore import ttypes
from metastore.thrift_server.convert.partitions import (
    WHOLE,
    Shape,
    encode_partition,
    encode_partitions,
    grouped,
    is_grouped,
    shape_of,
    specification,
    table_of,
)
from metastore.thrift_server.convert.projection import projected_partition
from metastore.thrift_server.dispatch.call import Call, immediate
from metastore.thrift_server.responses.partition_wire import PartitionEncoder
from metastore.thrift_server.responses.streamed import InPieces, itself, texts

Values = list[str] | None
Partitions = list[ttypes.Partition] | InPieces
Specifications = list[ttypes.PartitionSpec] | InPieces
R = TypeVar("R")


class PartitionReadHandlers:
    """The calls get_partition*, get_part_specs_by_filter, get_num_partitions_by_filter and partition_name_*."""

    def __init__(self, partitions: PartitionReads, *, in_pieces: bool = False) -> None:
        """Prepare the handlers. ``partitions``: does the work.

        ``in_pieces``: lists are sent as PostgreSQL keeps them, in pieces.
        """
        self._partitions, self._in_pieces = partitions, in_pieces

    def get_partition(self, _call: Call, db_name: str, tbl_name: str, part_vals: Values) -> ttypes.Partition:
        """Return the partition with these values."""
        name = table_of(db_name, tbl_name)
        return encode_partition(name, self._partitions.get_partition(name, part_vals))

    def get_partition_req(self, _call: Call, req: ttypes.GetPartitionRequest) -> ttypes.GetPartitionResponse:
        """Answer as ``get_partition``."""
        name = table_of(req.dbName, req.tblName, req.catName)
        return ttypes.GetPartitionResponse(encode_partition(name, self._partitions.get_partition(name, req.partVals)))

    def get_partition_with_auth(
        self, call: Call, db_name: str, tbl_name: str, part_vals: Values, _user_name: str, _group_names: list[str]
    ) -> ttypes.Partition:
        """Answer as ``get_partition``; no privileges are kept per partition."""
        return self.get_partition(call, db_name, tbl_name, part_vals)

    def get_partition_by_name(self, _call: Call, db_name: str, tbl_name: str, part_name: str) -> ttypes.Partition:
        """Return the partition with this name."""
        name = table_of(db_name, tbl_name)
        return encode_partition(name, self._partitions.get_partition_by_name(name, part_name))

    def get_partitions(self, _call: Call, db_name: str, tbl_name: str, max_parts: int) -> Partitions:
        """Return the first partitions by name."""
        return self._listed(table_of(db_name, tbl_name), max_parts, WHOLE, itself)

    def get_partitions_req(self, _call: Call, req: ttypes.PartitionsRequest) -> ttypes.PartitionsResponse:
        """Answer as ``get_partitions``."""
        name = table_of(req.dbName, req.tblName, req.catName)
        return self._listed(name, req.maxParts, shape_of(req), ttypes.PartitionsResponse)

    def get_partitions_with_auth(
        self, _call: Call, db_name: str, tbl_name: str, max_parts: int, _user_name: str, _group_names: list[str]
    ) -> Partitions:
        """Return the first partitions by name, of a table that exists; no privileges are kept per partition."""
        return self._list(self._partitions.get_partitions(table_of(db_name, tbl_name), max_parts))

    def get_partitions_pspec(self, _call: Call, db_name: str, tbl_name: str, max_parts: int) -> Specifications:
        """Answer as ``get_partitions``, as a specification."""
        return self._specification(self._partitions.get_partitions(table_of(db_name, tbl_name), max_parts))

    def get_partition_names(self, _call: Call, db_name: str, tbl_name: str, max_parts: int) -> InPieces:
        """Return the first names; 0 asks for all."""
        return texts(self._partitions.get_partition_names(table_of(db_name, tbl_name), max_parts or -1))

    def fetch_partition_names_req(self, _call: Call, req: ttypes.PartitionsRequest) -> InPieces:
        """Return the first names."""
        name = table_of(req.dbName, req.tblName, req.catName)
        return texts(self._partitions.get_partition_names(name, req.maxParts))

    def get_partition_names_req(self, _call: Call, req: ttypes.PartitionsByExprRequest) -> InPieces:
        """Return the names of partitions that an expression keeps; all without an expression."""
        name = table_of(req.dbName, req.tblName, req.catName)
        return texts(self._partitions.get_partition_names_by_expr(name, req.expr or b"", req.maxParts))

    def get_partition_names_ps(
        self, _call: Call, db_name: str, tbl_name: str, part_vals: Values, max_parts: int
    ) -> InPieces:
        """Return the names of partitions whose first values are these."""
        return texts(self._partitions.get_partition_names_ps(table_of(db_name, tbl_name), part_vals, max_parts))

    def get_partition_names_ps_req(self, _call: Call, req: ttypes.GetPartitionNamesPsRequest) -> InPieces:
        """Answer as ``get_partition_names_ps``."""
        name = table_of(req.dbName, req.tblName, req.catName)
        names = self._partitions.get_partition_names_ps(name, req.partValues, req.maxParts)
        return texts(names, ttypes.GetPartitionNamesPsResponse)

    def get_partitions_ps(
        self, _call: Call, db_name: str, tbl_name: str, part_vals: Values, max_parts: int
    ) -> Partitions:
        """Return partitions whose first values are these."""
        return self._list(self._partitions.get_partitions_ps(table_of(db_name, tbl_name), part_vals, max_parts))

    def get_partitions_ps_with_auth(
        self,
        call: Call,
        db_name: str,
        tbl_name: str,
        part_vals: Values,
        max_parts: int,
        _user_name: str,
        _group_names: list[str],
    ) -> Partitions:
        """Answer as ``get_partitions_ps``; no privileges are kept per partition."""
        return self.get_partitions_ps(call, db_name, tbl_name, part_vals, max_parts)

    def get_partitions_ps_with_auth_req(
        self, _call: Call, req: ttypes.GetPartitionsPsWithAuthRequest
    ) -> ttypes.GetPartitionsPsWithAuthResponse:
        """Answer as ``get_partitions_ps``; by names if there are any, all if there are neither names nor values."""
        name = table_of(req.dbName, req.tblName, req.catName)
        selected = self._by_names_or_values(name, req.partNames, req.partVals, req.maxParts)
        return self._answer(selected, shape_of(req), ttypes.GetPartitionsPsWithAuthResponse)

    def get_partitions_by_names(self, _call: Call, db_name: str, tbl_name: str, names: Values) -> Partitions:
        """Return the named partitions that exist."""
        return self._list(self._by_names(table_of(db_name, tbl_name), names))

    def get_partitions_by_names_req(
        self, _call: Call, req: ttypes.GetPartitionsByNamesRequest
    ) -> ttypes.GetPartitionsByNamesResult:
        """Answer as ``get_partitions_by_names``."""
        selected = self._by_names(table_of(req.db_name, req.tbl_name), req.names)
        return self._answer(selected, shape_of(req), ttypes.GetPartitionsByNamesResult)

    def get_partitions_by_filter(
        self,
        _call: Call,
        db_name: str,
        tbl_name: str,
        filter: str | None,  # noqa: A002 - the IDL's name
        max_parts: int,
    ) -> Partitions:
        """Return partitions that a filter string keeps."""
        return self._list(self._partitions.get_partitions_by_filter(table_of(db_name, tbl_name), filter, max_parts))

    def get_partitions_by_filter_req(self, _call: Call, req: ttypes.GetPartitionsByFilterRequest) -> Partitions:
        """Answer as ``get_partitions_by_filter``."""
        name = table_of(req.dbName, req.tblName, req.catName)
        selected = self._partitions.get_partitions_by_filter(name, req.filter, req.maxParts)
        return self._list(selected, shape_of(req))

    def get_part_specs_by_filter(
        self,
        _call: Call,
        db_name: str,
        tbl_name: str,
        filter: str | None,  # noqa: A002 - the IDL's name
        max_parts: int,
    ) -> Specifications:
        """Answer as ``get_partitions_by_filter``, as a specification."""
        selected = self._partitions.get_partitions_by_filter(table_of(db_name, tbl_name), filter, max_parts)
        return self._specification(selected)

    def get_num_partitions_by_filter(self, _call: Call, db_name: str, tbl_name: str, filter: str | None) -> int:  # noqa: A002
        """Count the partitions that a filter string keeps."""
        return self._partitions.get_num_partitions_by_filter(table_of(db_name, tbl_name), filter)

    def get_partitions_by_expr(self, _call: Call, req: ttypes.PartitionsByExprRequest) -> ttypes.PartitionsByExprResult:
        """Return partitions that a serialized expression keeps or may keep."""
        selected = self._by_expr(req)
        return self._answer(
            selected, shape_of(req), lambda partitions: ttypes.PartitionsByExprResult(partitions, selected.unknown)
        )

    def get_partitions_spec_by_expr(
        self, _call: Call, req: ttypes.PartitionsByExprRequest
    ) -> ttypes.PartitionsSpecByExprResult:
        """Answer as ``get_partitions_by_expr``, as a specification."""
        selected = self._by_expr(req)
        return self._specs(selected, lambda specs: ttypes.PartitionsSpecByExprResult(specs, selected.unknown))

    def get_partitions_with_specs(
        self, _call: Call, request: ttypes.GetPartitionsRequest
    ) -> ttypes.GetPartitionsResponse:
        """Return partitions by names, by first values or by filter strings, cut down to some fields.

        Hive 4's MSCK REPAIR calls this.
        """
        name = table_of(request.dbName, request.tblName, request.catName)
        selected = self._by_spec(name, request.filterSpec)
        partitions = self._partitions.lists.partitions(selected)
        return ttypes.GetPartitionsResponse(_projected_specs(selected.table, partitions, request.projectionSpec))

    def get_partition_values(
        self, _call: Call, request: ttypes.PartitionValuesRequest
    ) -> ttypes.PartitionValuesResponse:
        """Return the values of some keys, in the request's order."""
        if not request.partitionKeys:
            raise InvalidRequestError("Partition keys must be given")
        rows = self._partitions.get_partition_values(
            table_of(request.dbName, request.tblName, request.catName),
            [key.name for key in request.partitionKeys],
            [key.name for key in request.partitionOrder or ()],
            request.filter,
            distinct=bool(request.applyDistinct),
            ascending=bool(request.ascending),
            limit=request.maxParts,
        )
        return ttypes.PartitionValuesResponse([ttypes.PartitionValuesRow(row) for row in rows])

    @immediate
    def partition_name_to_vals(self, _call: Call, part_name: str | None) -> list[str]:
        """Return the values in a name; segments that are not ``key=value`` are ignored."""
        return [value for _, value in _parsed(part_name)]

    @immediate
    def partition_name_to_spec(self, _call: Call, part_name: str | None) -> dict[str, str]:
        """Return the keys and values in a name."""
        return dict(_parsed(part_name))

    def partition_name_has_valid_characters(self, _call: Call, part_vals: Values, throw_exception: bool) -> bool:
        """Return True if the configured pattern allows the values."""
        try:
            require_allowed_characters(part_vals or (), self._partitions.settings.partition_name_whitelist)
        except InvalidRequestError:
            if throw_exception:
                raise
            return False
        return True

    def _by_names(self, name: TableName, names: Values) -> Selection:
        if names is None:
            raise InvalidRequestError("Partition names must be given")
        return self._partitions.get_partitions_by_names(name, names)

    def _by_names_or_values(self, name: TableName, names: Values, values: Values, most: int) -> Selection:
        """Select by names if there are any, else by first values, else all."""
        if names is not None:
            return self._partitions.get_partitions_by_names(name, names)
        if values is not None:
            return self._partitions.get_partitions_ps(name, values, most)
        return self._partitions.get_partitions(name, most)

    def _by_spec(self, name: TableName, spec: ttypes.GetPartitionsFilterSpec | None) -> Selection:
        """Select all partitions without a mode. Several filter strings must all hold."""
        if spec is None or spec.filterMode is None:
            return self._partitions.get_partitions(name)
        if not spec.filters:
            raise InvalidRequestError(f"Filters of the partitions of {name} must be given beside their mode")
        match spec.filterMode:
            case ttypes.PartitionFilterMode.BY_NAMES:
                return self._partitions.get_partitions_by_names(name, spec.filters)
            case ttypes.PartitionFilterMode.BY_VALUES:
                return self._partitions.get_partitions_ps(name, spec.filters)
            case _:
                text = " AND ".join(f"({condition})" for condition in spec.filters)
                return self._partitions.get_partitions_by_filter(name, text)

    def _by_expr(self, req: ttypes.PartitionsByExprRequest) -> Selection:
        name = table_of(req.dbName, req.tblName, req.catName)
        return self._partitions.get_partitions_by_expr(name, req.expr or b"", req.maxParts)

    def _listed(self, name: TableName, most: int, shape: Shape, whole: Callable[[list[Any]], R]) -> R | InPieces:
        """Return the table's first partitions; none without the table, as Hive 4 answers these calls."""
        try:
            selected = self._partitions.get_partitions(name, most)
        except NoSuchObjectError:
            if "" in name:
                raise
            return whole([])
        return self._answer(selected, shape, whole)

    def _list(self, selected: Selection, shape: Shape = WHOLE) -> Partitions:
        return self._answer(selected, shape, itself)

    def _answer(self, selected: Selection, shape: Shape, whole: Callable[[list[Any]], R]) -> R | InPieces:
        """Return the selected partitions. ``whole``: builds the method's result from their list."""
        table = selected.table.name
        if not self._in_pieces or shape.include or shape.exclude:
            return whole(encode_partitions(table, self._partitions.lists.partitions(selected), shape))
        pieces = self._partitions.lists.pieces(selected)
        return InPieces(whole, ttypes.Partition, pieces.count, pieces.of(PartitionEncoder(table, shape.columns).ended))

    def _specification(self, selected: Selection) -> Specifications:
        return self._specs(selected, itself)

    def _specs(self, selected: Selection, whole: Callable[[list[Any]], R]) -> R | InPieces:
        """Return the selected partitions as specifications. ``whole``: builds the method's result from their list."""
        table = selected.table
        if is_grouped(table):
            return whole(grouped(table, encode_partitions(table.name, self._partitions.lists.partitions(selected))))
        return self._answer(selected, WHOLE, lambda partitions: whole(specification(table, partitions)))


def _projected_specs(
    table: Table, partitions: list[Partition], fields: ttypes.GetProjectionsSpec | None
) -> list[ttypes.PartitionSpec]:
    shape = Shape(include=fields.includeParamKeyPattern, exclude=fields.excludeParamKeyPattern) if fields else WHOLE
    encoded = encode_partitions(table.name, partitions, shape)
    if fields and fields.fieldList:
        encoded = [projected_partition(each, fields.fieldList) for each in encoded]
    return grouped(table, encoded)


def _parsed(name: str | None) -> list[tuple[str, str]]:
    if name is None:
        raise InvalidRequestError("The partition's name must be given")
    return parse_name(name)
