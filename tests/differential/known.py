"""The differences that are known by name: what `docs/explanation/differences.md` explains, as patterns of their texts."""

import re
from typing import NamedTuple


class Known(NamedTuple):
    """A difference: ``pattern`` is matched with ``version method line``, ``where`` (if any) searched in what the call changed."""

    name: str
    pattern: str
    where: str = ""
    is_recorded: bool = True
    """The recorded calls show it."""

    def fits(self, found):
        return bool(re.fullmatch(self.pattern, found.text)) and bool(re.search(self.where, found.where))


# The first that fits names a difference.
KNOWN = [
    Known("hive-breaks", r"\S+ \S+ refused → (ok|\w+Exception)"),
    Known("hive-trips-over-null", r"\S+ \S+ MetaException → (ok|\w+)", r"=None|=\{\}|=\[\]"),
    Known("incomplete-statistics", r"\S+ \S+ ok → (refused|MetaException)", r"Stats=\{|statsDesc=\{"),
    Known("write-id-list-is-read", r"\S+ \S+ ok → (MetaException|InvalidInputException)", r"validWriteIdList="),
    Known("location-is-checked", r"\S+ \S+ .*", r"(location|[lL]ocationUri)=", is_recorded=False),
    Known("empty-catalog", r"\S+ \S+ .*", r"(catName|catalogName|catalog|cat_name)=''|engine=''"),
    Known("catalog-in-a-name", r"\S+ \S+ .*", r"='@(c2|hive|nope)#"),
    Known("names-are-trimmed", r"\S+ \S+ .*", r"=' [^']* '|=\[' "),
    Known("catalog-of-a-request", r"\S+ (get_database|drop_database|drop_table)_req NoSuchObjectException → ok"),
    Known("catalog-name-in-any-case", r"\S+ alter_catalog InvalidOperationException → ok", is_recorded=False),
    Known("statistics-as-sent", r"\S+ get_\S*(statistics|aggr)\S* answer\..*(lowValue|highValue|bitVectors|histogram|Stats): .*"),
    Known("column-of-a-default-or-check", r"\S+ \S+ answer.*(default|check)Constraints\[\]\.column_name: null → .*", is_recorded=False),
    Known("constraint-without-a-name", r'\S+ \S+ answer.*Constraints\[\]\.\w+_name: .*', is_recorded=False),
    Known("position-in-a-key", r"\S+ \S+ answer.*\.key_seq: 0 → .*", is_recorded=False),
    Known("column-asked-for-twice", r"\S+ get_aggr_stats_for answer\..*", r"colNames=\['id', 'id'\]", is_recorded=False),
    Known("foreign-keys-of-nobody", r"\S+ get_foreign_keys ok → MetaException", r"request=\{\}", is_recorded=False),
    Known("constraint-on-a-missing-column", r"\S+ create_table_with_constraints (ok|MetaException) → InvalidObjectException"),
    Known("constraint-of-another-table", r"\S+ create_table_with_constraints InvalidObjectException → ok", is_recorded=False),
    Known("claims-of-compactions", r"\S+ (mark_\w+|set_hadoop_jobid|update_compactor_state|find_next_compact2?) .*"),
    Known("partition-of-a-compaction", r"\S+ compact2? ok → refused", r"partitionname="),
    Known("fields-of-compactions", r"\S+ show_compact answer.*"),
    Known("heartbeats-of-locks", r"\S+ show_locks answer.*heartbeatCount: null → 0"),
    Known("empty-partition-name", r"\S+ \S+ MetaException → ok", r"partNames=\[''\]", is_recorded=False),
    Known("ids-of-transactions", r"\S+ (get_open_txns|get_open_txns_req|get_lock_materialization_rebuild|seed_txn_id|compact2?) .*"),
    Known("settings-are-checked", r"\S+ setMetaConf ok → MetaException"),
    Known("names-are-required", r"\S+ (get_max_allocated_table_write_id|remove_compaction_metrics_data) ok → MetaException"),
    Known("indexes-are-gone", r"2\.3\.10 \S*index\S* .*"),
    Known("id-of-a-metastore", r"\S+ get_metastore_db_uuid MetaException → ok"),
    # Not yet: tables and partitions.
    Known("version", r"\S+ getVersion answer: .*"),
    Known("dry-run", r"\S+ translate_table_dryrun answer.*"),
    Known("tables-stay-managed", r"\S+ \S+ answer\S*(EXTERNAL|external\.table\.purge|tableType): .*"),
    Known("basic-statistics", r"\S+ \S+ answer\S*parameters\.(numFiles|numFilesErasureCoded|totalSize|COLUMN_STATS_ACCURATE): .*"),
    Known("parameters-of-a-serde", r"\S+ \S+ answer\S*serdeInfo\.parameters\.a: .*"),
    Known("objects-by-name-in-2-3", r"2\.3\.10 get_table_objects_by_name answer: .*"),
    Known("partition-of-another-catalog", r"\S+ rename_partition\S* ok → MetaException"),
    Known("write-id-that-is-absent", r"\S+ \S+ answer\S*writeId: (null → -1|-1 → \d+)"),
    Known("echo-of-a-partition", r"\S+ (add|append|exchange)_partition\S* answer\S*(dbName|tableName|skewed\w*|storedAs\w+|bucketCols|parameters|createTime|lastAccessTime|isStatsCompliant): .*"),
    Known("names-as-sent", r'\S+ \S+ answer\S*\.(dbName|tableName): "(\{D\}|T)" → .*', is_recorded=False),
    Known("classes-of-a-serde", r"\S+ \S+ answer\S*serdeInfo\.(description|\w+Class|serdeType): null → .*"),
    Known("table-of-altered-partitions", r"\S+ (alter|rename)_partition\S* InvalidOperationException → MetaException", is_recorded=False),
    Known("path-from-nothing", r"\S+ (alter|rename|add)_partition\S* MetaException → ok"),
    Known("catalog-that-is-required", r"\S+ \S+ MetaException → ok", r"catName=None|catName=''", is_recorded=False),
    Known("partitions-to-drop", r"\S+ drop_partition\S* .*"),
    Known("partition-specs", r"\S+ get_partitions_(spec_by_expr|with_specs|pspec) .*"),
    Known("partition-values", r"\S+ get_partition_values .*", is_recorded=False),
    Known("partial-values", r"\S+ get_part\S*_ps\S* .*", is_recorded=False),
    Known("expression-of-nothing", r"\S+ get_\w+(_expr|_names_req) MetaException → \w+", is_recorded=False),
    Known("columns-left-out", r"\S+ \S+ answer\S*\.cols: \[\] → null", r"skipColumnSchemaForPartition", is_recorded=False),
    Known("none-at-most", r"\S+ \S+ answer\S*: .*", r"max_parts=0|maxParts=0", is_recorded=False),
    Known("dynamic-partitions", r"\S+ add_dynamic_partitions \w+ → refused", is_recorded=False),
    Known("empty-names-of-partitions", r"\S+ get_partition\w* NoSuchObjectException → MetaException", is_recorded=False),
]


def judged(found):
    """Return the differences that nobody knows, and the names of those that occurred."""
    unknown, names = [], set()
    for difference in found:
        name = next((known.name for known in KNOWN if known.fits(difference)), None)
        if name is None:
            unknown.append(difference)
        else:
            names.add(name)
    return unknown, names
