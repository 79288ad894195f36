"""Counts of a query's work on an ACID table besides reading rows: equal on a busy and on a quiet machine."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import get_ident
from typing import Any

from py4j import clientserver, java_gateway
from pyspark import SparkContext
from pyspark.sql import SparkSession

from metastore.client import MetastoreClient
from metastore.files import Files

HEAD = (
    "| | metastore calls | files opened by the driver | calls into the JVM | rules run | Spark jobs | tasks | "
    "settings copied |\n|---|--:|--:|--:|--:|--:|--:|--:|"
)
_HISTOGRAM = """
public class Histogram {
    public String told() throws Exception {
        return (String) java.lang.management.ManagementFactory.getPlatformMBeanServer().invoke(
            new javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram",
            new Object[] {new String[] {"-all"}}, new String[] {String[].class.getName()});
    }
}
"""
_COLUMNS = ("metastore", "opened", "jvm", "rules", "jobs", "tasks", "copies")
_OF_THE_CALLER = {"metastore", "jvm"}  # other threads end the transactions of frames that are no longer used


def count(spark: SparkSession, action: Callable[[], object]) -> Counter[str]:
    """Count the work of ``action``. Copies of settings are those not yet garbage collected: a lower bound."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - counters of Spark's own
    rules = spark._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor  # noqa: SLF001
    spark._jvm.java.lang.System.gc()  # noqa: SLF001
    dag = context.dagScheduler()
    jobs, stage, rule, copies = dag.nextJobId(), dag.nextStageId(), rules.getCurrentMetrics().numRuns(), _copies(spark)
    with _counted() as counts:
        action()
    counts.update(
        copies=_copies(spark) - copies, rules=rules.getCurrentMetrics().numRuns() - rule, jobs=dag.nextJobId() - jobs
    )
    context.listenerBus().waitUntilEmpty()
    counts.update(
        tasks=sum(
            context.statusStore().lastStageAttempt(stage_id).numCompleteTasks()
            for stage_id in range(stage, dag.nextStageId())
        )
    )
    return counts


def row(title: str, counter: Counter[str]) -> str:
    """Return a line of the table."""
    return f"| {title} | {' | '.join(str(counter[column]) for column in _COLUMNS)} |"


@contextmanager
def _counted() -> Iterator[Counter[str]]:
    counts: Counter[str] = Counter()
    gateways = [
        gateway for gateway in (java_gateway.GatewayClient, clientserver.JavaClient) if "send_command" in vars(gateway)
    ]
    watched = [
        (MetastoreClient, "_call", "metastore"),
        (Files, "open", "opened"),
        (Files, "read", "opened"),
        *((gateway, "send_command", "jvm") for gateway in gateways),
    ]
    originals = [(kind, name, vars(kind)[name]) for kind, name, _ in watched]
    for kind, name, what in watched:
        setattr(kind, name, _counting(vars(kind)[name], counts, what))
    try:
        yield counts
    finally:
        for kind, name, original in originals:
            setattr(kind, name, original)


def _counting(original: Callable[..., Any], counter: Counter[str], what: str) -> Callable[..., Any]:
    caller = get_ident()

    @wraps(original)
    def method(self: Any, first: Any, *rest: Any, **options: Any) -> Any:
        elsewhere = what in _OF_THE_CALLER and get_ident() != caller
        forgets = what == "jvm" and first.startswith("m\n")  # the release of an unused object
        if not elsewhere and not forgets:
            counter[what] += 1
        return original(self, first, *rest, **options)

    return method


def _copies(spark: SparkSession) -> int:
    """Return the number of objects with all of Hadoop's settings, unused ones included."""
    histogram = _histogram(spark.sparkContext).told()
    return sum(
        int(line.split()[1])
        for line in histogram.splitlines()
        if line.split()[3:4] == ["org.apache.hadoop.mapred.JobConf"]
    )


@cache
def _histogram(context: SparkContext) -> Any:
    """Return the JVM's histogram, made once: PySpark takes two classes with one name for the same."""
    jvm, new_array = context._jvm, context._gateway.new_array  # noqa: SLF001
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_HISTOGRAM)
    kind = compiler.getClassLoader().loadClass("Histogram").getConstructor(new_array(jvm.java.lang.Class, 0))
    return kind.newInstance(new_array(jvm.java.lang.Object, 0))
