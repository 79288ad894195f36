"""The connector's own client of the planner, in a JVM without Spark: what it does with TLS, lost answers and moved planners."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from tests.support.spark_sessions import connector

_SOURCE = Path(__file__).with_name("PlannerCaller.java")
_JARS = Path(pyspark.__file__).parent / "jars" / "*"


class RefusedError(Exception):
    """The client threw; ``condition`` is the class of its exception, the text its sentence."""

    def __init__(self, condition: str, sentence: str) -> None:
        super().__init__(f"{condition}: {sentence}")
        self.condition = condition


class JavaCaller:
    """Calls of one JVM, which remembers its connections. ``settings``: of Hadoop's configuration."""

    def __init__(self, java: subprocess.Popen[str]) -> None:
        self._java = java

    def __call__(self, name: str, settings: Mapping[str, str], planner: str = "", **arguments: Any) -> Any:
        """Call the planner and return its answer. Raises: RefusedError."""
        java = self._java
        assert java.stdin
        assert java.stdout
        java.stdin.write(json.dumps({"call": name, "settings": settings, "planner": planner, "arguments": arguments}) + "\n")
        java.stdin.flush()
        told = json.loads(java.stdout.readline())
        if "error" in told:
            raise RefusedError(told["error"], told["message"])
        return told["answer"]


def is_there() -> bool:
    """Whether it can be started here."""
    return bool(shutil.which("java") and connector())


@contextmanager
def java_caller(noise: Path) -> Iterator[JavaCaller]:
    """``noise``: a file for what Hive's classes log."""
    with noise.open("w") as log:
        java = subprocess.Popen(
            ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{connector()}:{_JARS}", str(_SOURCE)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8")
        try:
            yield JavaCaller(java)
        finally:
            assert java.stdin
            assert java.stdout
            java.stdin.close()
            java.wait(60)
            java.stdout.close()
