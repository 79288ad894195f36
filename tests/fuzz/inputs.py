"""What the fuzzer feeds: serialised expressions, filters, id lists, names, files; sound ones from a grammar, then damaged.

Each is made from its own dice, ``dice_of(seed, target, number)``, so that one input can be had again without the others.
"""

import json
import random

from tests.support.acid import nested_rows
from tests.support.kryo import Column, Constant, Function, kryo_4, kryo_5, text_field

KEYS = (("dt", "string"), ("hr", "int"), ("n", "bigint"), ("d", "date"), ("ts", "timestamp"), ("v", "varchar(10)"))
COMPARISONS = ("Equal", "NotEqual", "LessThan", "EqualOrLessThan", "GreaterThan", "EqualOrGreaterThan", "EqualNS")
TEXTS = (b"%" * 40 + b"b", b"(?i)" + b"%a" * 30, b"p='1' or " * 50 + b"p='2'", b"((((", b"\xff\xfe", b"../../etc", b"a\0b",
         b"1:2:3-9:5:", b"*" * 60, b"base_-1", b"delta_9999999999999999999_1", "٣".encode(), b"1-999999999999999999",
         b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3")
NUMBERS = (0, 1, 127, 128, 255, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, 1 << 64, 10**40)


def dice_of(seed, target, number):
    """Return the random generator of one input."""
    return random.Random(f"{seed}:{target}:{number}")


def damaged(dice, data, most=4):
    """Change, cut out, repeat or insert up to ``most`` pieces of the bytes; sometimes none."""
    data = bytearray(data)
    for _ in range(dice.randint(0, most)):
        at, size = dice.randint(0, len(data)), dice.randint(1, 1 << dice.randint(0, 6))
        match dice.randrange(6):
            case 0:
                data[at:at + 1] = bytes([dice.randrange(256)])
            case 1:
                data[at:at + 4] = dice.choice([b"\xff", b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\xff" * 9 + b"\x01"])
            case 2:
                del data[at:at + size]
            case 3:
                data[at:at] = data[max(0, at - size):at] * dice.randint(1, 5)
            case 4:
                data[at:at] = dice.choice(TEXTS)
            case 5:
                del data[at:]
    return bytes(data)


def damaged_text(dice, text, most=3):
    """Damage a text as ``damaged`` does bytes; the result may have any character."""
    return damaged(dice, text.encode(), most).decode("utf-8", "replace")


def expression(dice, depth=4):
    """Build a tree as Hive's clients send it, with columns and constants of any type."""
    column, constant = Column(dice.choice(KEYS)[0]), Constant(dice.choice([True, None, 5, 300, "ab", "2020-02-29", [1, None, 7]]))
    if depth and dice.random() < 0.5:
        children = tuple(expression(dice, depth - 1) for _ in range(dice.randint(1, 3)))
        return Function(f"GenericUDFOP{dice.choice(['And', 'Or', 'Not'])}", children, b"\0")
    match dice.randrange(5):
        case 0:
            return Function("GenericUDFIn", (column, Constant(1), Constant("a"), constant), b"\0\0")
        case 1:
            return Function("GenericUDFBetween", (Constant(value=False), column, Constant(1), constant), b"\0" * 4)
        case 2:
            pattern = Constant("%a_" * dice.randint(1, 30))
            return Function("GenericUDFBridge", (column, pattern), b"\0" + text_field("org.apache.UDF") + text_field("like"))
        case 3:
            return Function(f"GenericUDFOP{dice.choice(['Null', 'NotNull'])}", (column,), b"\0")
        case _:
            sides = [column, constant]
            dice.shuffle(sides)
            return Function(f"GenericUDFOP{dice.choice(COMPARISONS)}", tuple(sides), b"\0" * 5)


def serialised(dice):
    """Serialise an expression and mostly damage it; Kryo 4 cannot write lists as constants."""
    tree = expression(dice, dice.choice([0, 2, 4]))
    return damaged(dice, dice.choice([kryo_4, kryo_5])(tree))


def constant(dice):
    """Choose a constant of the filter language."""
    return dice.choice([str(dice.choice(NUMBERS)), f"-{dice.choice(NUMBERS)}", "'ab'", '"a\\"b"', "2020-02-29", "date '2020-02-30'",
                        "timestamp '2020-02-29 01:02:03.5'", "'" + "%a" * dice.randint(1, 40) + "'", "'ü'", "''"])


def filter_text(dice, keys=tuple(name for name, _ in KEYS), depth=4):
    """Build a filter over these keys."""
    key = dice.choice(keys)
    if depth and dice.random() < 0.5:
        word = dice.choice([" and ", " OR ", ") or ("])
        return f"({word.join(filter_text(dice, keys, depth - 1) for _ in range(dice.randint(1, 4)))})"
    match dice.randrange(5):
        case 0:
            return f"{key} {dice.choice(['', 'not '])}in ({', '.join(constant(dice) for _ in range(dice.randint(1, 20)))})"
        case 1:
            return f"{key} {dice.choice(['', 'not '])}between {constant(dice)} and {constant(dice)}"
        case 2:
            return f"(struct({key}, {dice.choice(keys)})) in (const struct({constant(dice)}, {constant(dice)}))"
        case 3:
            return f"{constant(dice)} {dice.choice(['=', '<', '>=', 'like'])} {key}"
        case _:
            return f"{key} {dice.choice(['=', '!=', '<>', '<', '<=', '>', '>=', 'like', '<=>'])} {constant(dice)}"


TABLE_KEYS = ("hive_filter_field_owner__", "hive_filter_field_last_access__", "hive_filter_field_tableName__",
              "hive_filter_field_params__team", "other")


def partition_filter(dice):
    return damaged_text(dice, filter_text(dice))


def table_filter(dice):
    return damaged_text(dice, filter_text(dice, TABLE_KEYS))


def _ids(dice):
    found = []
    for _ in range(dice.choice([0, 1, 5, 50])):
        low = dice.choice([dice.randint(1, 99), *NUMBERS])
        found.append(dice.choice([f"{low}", f"{low}-{low + dice.randint(-2, 20)}", f"{low}-{dice.choice(NUMBERS)}"]))
    return ",".join(found)


def txn_list(dice):
    """Build a text of ValidTxnList."""
    fields = [str(dice.choice([9, 100, *NUMBERS])), str(dice.choice([3, *NUMBERS])), _ids(dice), _ids(dice)]
    return damaged_text(dice, ":".join(fields[:dice.choice([2, 4, 4, 4])]), most=2)


def write_id_lists(dice):
    """Build a text of ValidTxnWriteIdList: the transaction, then the list of each table."""
    return "$".join([str(dice.choice(NUMBERS)), *(f"db.t{number}:{txn_list(dice)}" for number in range(dice.randint(0, 3)))])


def path(dice):
    """Build a path in the listing of an ACID directory, in a form of Hive's or close to one."""
    low, high, more = (dice.choice([1, 2, 3, 5, 9, -(2**63), *NUMBERS]) for _ in range(3))
    directory = dice.choice([f"base_{low:07d}", f"base_{low}_v{more:07d}", f"delta_{low:07d}_{high:07d}_{more:04d}",
                             f"delete_delta_{low}_{high}", f"delta_{low:07d}_{low:07d}", f"delta_{low}_{high}_v{more}",
                             f".acid_stage_{low}_x", "HIVE_UNION_SUBDIR_1", "_tmp", ""])
    name = dice.choice([f"bucket_{more:05d}", f"bucket_00000_{more}", "bucket_00000_flush_length", "000000_0", f"000000_0_copy_{more}",
                        "_orc_acid_version", "_metadata_acid", "part-0", "nested/bucket_00000", ".hidden", ""])
    whole = "/".join(part for part in (directory, name) if part) or "x"
    return (damaged_text(dice, whole, most=2) if dice.random() < 0.3 else whole).strip("/") or "x"


CLASS_NAMES = ("", "org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
               "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
               "org.apache.hadoop.mapred.lib.db.DBInputFormat", "a:b,c", "x" * 300, "\0", "é")
PARAMETERS = ("field.delim", "avro.schema.url", "avro.schema.literal", "fs.s3a.endpoint", "columns", "acid.raw", "skip.header.line.count",
              "skip.footer.line.count", "serialization.lib", "collection.delim", "", "é=\n")


def definition(dice):
    """Build a table's storage descriptor and parameters, as a client may send them."""
    def parameters():
        return {dice.choice(PARAMETERS): damaged_text(dice, dice.choice(["1", "http://h/x", "\t", "{}", "x" * 99]))
                for _ in range(dice.randint(0, 4))}
    sd = {"inputFormat": dice.choice(CLASS_NAMES), "outputFormat": dice.choice(CLASS_NAMES),
          "serdeInfo": dice.choice([None, {}, {"serializationLib": dice.choice(CLASS_NAMES), "parameters": dice.choice([None, parameters()])}])}
    kind = {"transactional": "true", "transactional_properties": "insert_only"}
    return {key: value for key, value in sd.items() if dice.random() < 0.9}, {**parameters(), **(kind if dice.random() < 0.9 else {})}


def sql_expression(dice, depth=3):
    """Build an expression of a CHECK, with calls that are allowed and calls that are not."""
    if depth and dice.random() < 0.7:
        inner = ", ".join(sql_expression(dice, depth - 1) for _ in range(dice.randint(0, 3)))
        name = dice.choice(["lower", "reflect", "`reflect`", "db.lower", "cast", "if", "java_method", "exists", '"f"', "MAP", "identifier"])
        return f"{name}{dice.choice(['', ' ', chr(10)])}({inner})"
    return dice.choice(["a", "'x'", "1.5e3", "`b`", "'it''s'", '"a"', "r'\\'", "a -> a > 1", "--", "/*", "x'00'", "::int", "USING 'x'"])


def check_expression(dice):
    return damaged_text(dice, sql_expression(dice))


def archive_script(dice):
    """Build the output of pg_restore for a backup that somebody has changed."""
    blocks = ["--\n-- PostgreSQL database dump\n--\n", "SET client_encoding = 'UTF8';\n", "\\restrict abc\n",
              "SELECT pg_catalog.set_config('search_path', '', false);\n", "COPY public.txns (id, state) FROM stdin;\n1\topen\n\\N\t\\.\n\\.\n",
              'COPY public."column" ("a""b", "column") FROM stdin;\n\\.\n', "SELECT pg_catalog.setval('public.s', 1, true);\n",
              "COPY public.txns (id) FROM PROGRAM 'sh';\n", "DO $$ BEGIN END $$;\n", "COPY public.txns (id) FROM stdin;\n" + "1\n" * 50]
    text = "".join(dice.choice(blocks) for _ in range(dice.randint(1, 12)))
    return damaged(dice, text.encode())


METADATA = (b'{"thisFileVersion": "0", "dataFormat": "compacted"}', b"[]", b"{", b"null", b'{"thisFileVersion": 1}', b"\xff\xfe", b"1e999",
            b"[" * 100_000)


def listing(dice):
    """Paths with sizes, and what a ``_metadata_acid`` file holds."""
    entries = [(path(dice), dice.choice([0, 8, 1 << 40]), dice.random() < 0.1) for _ in range(dice.randint(1, 12))]
    return entries, dice.choice(METADATA), txn_list(dice)


def nested(dice):
    """Columns of nested types, their rows, and where the pieces begin and end in which they are written."""
    kinds = nested_rows.columns(dice, dice.randint(1, 4))
    rows = nested_rows.rows(dice, kinds, dice.randint(1, 60))
    return kinds, rows, sorted(dice.randint(0, len(rows)) for _ in range(dice.randint(2, 4)))


FIELDS = ("table", "db", "txn", "txns", "write_ids", "own_write_id", "partitions", "filter", "named", "columns", "partition_keys", "buckets", "known",
          "changes", "op", "name", "type", "after", "to", "keys", "files", "path", "key", "bucket", "is_delete", "statement", "overwrite", "in_place",
          "operation", "kind", "reads", "writes", "is_past", "partition", "wait_s", "user", "host", "agent", "reopen", "as_of", "write_id", "timestamp_ms",
          "limit", "count", "statistics", "first", "last", "after_ms", "until_ms", "up_to", "skips_changes", "most", "batch", "query", "plan", "rows",
          "inserted", "deleted", "unwritten", "vouched", "said", "place", "properties", "comment", "location", "format", "row_format", "serde", "like",
          "to_db", "to_table", "names", "values", "if_exists", "purge", "cascade", "procedure", "arguments", "txn_ids", "mode", "pool", "catalog", "sql")
WORDS = ("d.t", "d", "t", "p", "id", "", "default", "=", "in", "<", "is null", "1", "all", "dynamic", "DEFAULT", "UPDATE", "INSERT", "orc", "int", "struct<a:int>",
         "array<" * 200, "set", "add_column", "drop_column", "change_type", "compact", "repair", "history", "restore", "analyze", "ADD", "9:9223372036854775807::",
         "d.t:9:9223372036854775807::", "d.t:5:4:4:", "ftp://x/y", "file:/x/../y", "a\0b", "ü" * 300, "p=1/q=2", "%", "[\"1\"]", "2020-02-29", "9" * 5000)


def value(dice, depth=4):
    """Any value of JSON, made of words that planners know."""
    match dice.randrange(8 if depth else 5):
        case 0:
            return dice.choice([None, True, False, 0, 1, -1, 1.5, 1e308, *NUMBERS])
        case 1 | 2 | 3 | 4:
            return damaged_text(dice, dice.choice(WORDS), 1) if dice.random() < 0.1 else dice.choice(WORDS)
        case 5 | 6:
            return [value(dice, depth - 1) for _ in range(dice.choice([0, 1, 2, 3, 40]))]
        case _:
            return {dice.choice(FIELDS): value(dice, depth - 1) for _ in range(dice.randint(0, 6))}


def planner_body(dice, names):
    """Build a call's name and body; some fields are valid, and several are not."""
    usual = {"table": "d.t", "db": "d", "txn": 5, "txns": "9:9223372036854775807::", "write_ids": "d.t:9:9223372036854775807::", "statement": 0,
             "kind": "DEFAULT", "procedure": dice.choice(["repair", "history", "restore", "compact"])}
    fields = {name: usual[name] for name in usual if dice.random() < 0.8}
    if dice.random() < 0.5:
        fields["table"] = dice.choice(["t", "d.t"])
    fields |= {dice.choice(FIELDS): value(dice) for _ in range(dice.randint(0, 8))}
    content = json.dumps(fields).encode()
    return dice.choice(names), damaged(dice, content) if dice.random() < 0.3 else content
