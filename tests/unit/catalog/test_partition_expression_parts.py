"""Serialized expressions beyond those of kryo_vectors.json: what is unknown is only ever the part that it is."""

import pytest

from metastore.catalog.rules.partition_expression import parse_expression
from metastore.catalog.rules.partition_filter import parse_filter
from metastore.catalog.rules.partition_predicate import EVERYTHING, And, Or, Predicate, Unknown, keeps
from metastore.catalog.rules.partition_syntax import PartitionKey
from metastore.partition_names import DEFAULT_PARTITION
from tests.support.kryo import NEW, NULL, Column, Constant, Function, Raw, Tree, characters, kryo_4, kryo_5, text_field

KEYS = [PartitionKey("dt", "string"), PartitionKey("hr", "int"), PartitionKey("ts", "timestamp"), PartitionKey("d", "date")]
DT, HR = Column("dt"), Column("hr")
COMPARE, RESULT, IN, BETWEEN = b"\0" * 5, b"\0", b"\0" * 2, b"\0" * 4
TIMESTAMP, DATE = (f"org.apache.hadoop.hive.common.type.{name}" for name in ("Timestamp", "Date"))
STRUCT_TYPE = "org.apache.hadoop.hive.serde2.typeinfo.StructTypeInfo"
LEAP_DAY = b"\xe4\x0f\x02\x1d"  # 2020-02-29


def equal(left: Tree, right: Tree) -> Function:
    return Function("GenericUDFOPEqual", (left, right), COMPARE)


def both(*children: Tree) -> Function:
    return Function("GenericUDFOPAnd", children, RESULT)


def negated(*children: Tree) -> Function:
    return Function("GenericUDFOPNot", children, RESULT)


def like(name: str, *children: Tree) -> Function:
    return Function("GenericUDFBridge", children, b"\0" + text_field("org.apache.UDF") + text_field(name))


def meaning(data: bytes) -> Predicate:
    return parse_expression(data, KEYS, DEFAULT_PARTITION)


@pytest.mark.parametrize("write", [kryo_4, kryo_5])
@pytest.mark.parametrize(("tree", "text"), [
    (equal(DT, Constant("ab")), "dt = 'ab'"),
    (both(equal(DT, Constant("ab")), Constant(value=True)), "dt = 'ab'"),
    (negated(both(equal(DT, Constant("ab")), equal(HR, Constant(5)))), "dt != 'ab' or hr != 5"),
    (negated(Function("GenericUDFIn", (HR, Constant(1), Constant(2)), IN)), "hr not in (1, 2)"),
    (like("LIKE", DT, Constant("a%")), "dt like 'a%'"),
], ids=["equal", "and true", "not and", "not in", "like"])
def test_a_tree_means_what_the_filter_means(write, tree, text):
    assert meaning(write(tree)) == parse_filter(text, KEYS)


def test_constants_alone_keep_everything_or_nothing():
    assert meaning(kryo_4(both(Constant(value=True), Constant(value=True)))) == EVERYTHING
    assert meaning(kryo_4(both(Constant(value=False), Constant(value=True)))) == Or(())


@pytest.mark.parametrize("write", [kryo_4, kryo_5])
@pytest.mark.parametrize(("part", "reason"), [
    (Constant("true"), "not a function"),
    (DT, "not a function"),
    (Function("", (DT,)), "not a function"),
    (Function("GenericUDFToDate", (DT,)), "GenericUDFToDate"),
    (negated(), "NOT"),
    (negated(like("like", DT, Constant("a%"))), "not dt like"),
    (negated(Function("GenericUDFToDate", (DT,))), "GenericUDFToDate"),
    (Function("GenericUDFOPNull", (DT, HR), RESULT), "NULL"),
    (Function("GenericUDFIn", (DT,), IN), "IN"),
    (Function("GenericUDFIn", (Function("GenericUDFStruct", (DT, HR)), Constant("ab")), IN), "IN"),
    (Function("GenericUDFIn", (equal(DT, HR), Constant("ab")), IN), "IN"),
    (Function("GenericUDFBetween", (DT, Constant("a"), Constant("b")), BETWEEN), "BETWEEN"),
    (Function("GenericUDFBetween", (Constant("no"), DT, Constant("a"), Constant("b")), BETWEEN), "BETWEEN"),
    (like("UDFYear", DT), "UDFYear"),
    (like("like", DT), "like"),
    (Function("GenericUDFOPEqual", (DT,), COMPARE), "GenericUDFOPEqual"),
    (equal(DT, HR), "constant"),
    (equal(Constant("ab"), Constant("cd")), "not a column"),
    (equal(DT, Constant(None)), "constant"),
    (equal(Column("other"), Constant(1)), "Specified key <other> is not a partitioning key for the table"),
])
def test_a_part_that_is_not_evaluated_leaves_the_rest(write, part, reason):
    assert meaning(write(both(part, equal(HR, Constant(5))))) == And((Unknown(reason), parse_filter("hr = 5", KEYS)))


def test_a_null_among_the_values_of_a_struct_is_unknown():
    tree = Function("GenericUDFIn", (Function("GenericUDFStruct", (HR, HR)), Constant([5, None])), IN)
    assert meaning(kryo_5(tree)) == And((parse_filter("hr = 5", KEYS), Unknown("constant")))


@pytest.mark.parametrize(("clock", "text"), [
    (b"\xf5", "10:00:00"), (b"\x0a\xe1", "10:30:00"), (b"\x0a\x1e\xf8", "10:30:07"), (b"\xff", "00:00:00"),
    (b"\x0a\x1e\x07\xc0\x84\x3d", "10:30:07.001"),
])
def test_a_time_of_day_ends_where_the_rest_is_zero(clock, text):
    moment = Constant(Raw(TIMESTAMP, NEW + LEAP_DAY + clock))
    assert meaning(kryo_5(equal(Column("ts"), moment))) == parse_filter(f"ts = TIMESTAMP '2020-02-29 {text}'", KEYS)


def test_a_time_finer_than_a_microsecond_is_unknown():
    moment = Constant(Raw(TIMESTAMP, NEW + LEAP_DAY + b"\x0a\x1e\x07\xc1\x84\x3d"))  # 1,000,001 ns
    assert meaning(kryo_5(equal(Column("ts"), moment))) == Unknown("constant")


def test_null_is_what_the_type_cannot_hold_to_an_engine():
    is_null, is_value = (Function(f"GenericUDFOP{name}", (HR,), RESULT) for name in ("Null", "NotNull"))
    answers = {value: [keeps(meaning(kryo_4(each)), ["x", value, "", ""]) for each in (is_null, is_value)]
               for value in ("7", DEFAULT_PARTITION, "seven", "99999999999")}
    assert answers == {"7": [False, True], DEFAULT_PARTITION: [True, False], "seven": [None, None], "99999999999": [None, None]}


@pytest.mark.parametrize("kind", [TIMESTAMP, DATE])
def test_a_date_or_time_without_a_value_is_unknown(kind):
    assert meaning(kryo_5(equal(DT, Constant(Raw(kind, NULL))))) == Unknown("constant")


@pytest.mark.parametrize(("data", "reason"), [
    (kryo_4(both(Function("GenericUDFOPAnd", b"\3" + text_field("ab"), RESULT))), "has something else in place of a list"),
    (kryo_4(both(equal(Column("a" * 1_000_002), Constant(1)))), "has an endless text"),
    (kryo_4(Function("GenericUDFBetween", (DT, DT, DT, DT), b"\5\0\0\0")), "was already evaluated"),
    (kryo_5(Function("GenericUDFOPAnd", (DT,), RESULT, Raw(STRUCT_TYPE, NULL))), "shares a list of names"),
    (kryo_4(both(Constant(Raw("java.util.HashMap")))), "has a HashMap, which is not read here"),
    (kryo_4(Function("GenericUDFOPAnd", (Constant(Raw("x.DecimalTypeInfo", b"")),), b"")), "is damaged at byte"),
], ids=["no list", "endless text", "evaluated", "shared names", "unknown class", "damaged"])
def test_bytes_that_are_not_read_say_why(data, reason):
    answer = meaning(data)
    assert isinstance(answer, Unknown)
    assert f"The partition expression {reason}" in answer.reason


def test_nesting_is_limited():
    def nested(depth: int) -> bytes:
        tree = equal(DT, Constant("ab"))
        for _ in range(depth):
            tree = negated(tree)
        return kryo_4(tree)

    assert meaning(nested(96)) == parse_filter("dt = 'ab'", KEYS)
    assert meaning(nested(100)) == Unknown("The partition expression is nested deeper than 100")


def test_the_writer_writes_texts_as_hive_does():
    assert characters("dt") == b"d\xf4"
    assert characters("n") == b"\x82n"
