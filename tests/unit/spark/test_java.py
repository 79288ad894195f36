"""The Java classes by themselves: compiled without a warning, and run without a Spark session (``java/*Tests.java``)."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

from metastore.catalog.rules import storage_classes
from metastore.spark.jvm import compiled, jars
from tests.support.acid import shared_vectors
from tests.unit.spark.hash_cases import cases

TESTS = sorted(Path(__file__).with_name("java").glob("*.java"))
NAMES = [name for path in TESTS for name in re.findall(r"public void (\w+)\(\)", path.read_text("utf-8"))]
SPARK = Path(pyspark.__file__).parent
CLASS_PATH = str(SPARK / "jars" / "*")
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
OPENED = [f"--add-opens=java.base/{one}=ALL-UNNAMED" for one in ("java.lang", "java.net", "java.nio", "sun.nio.ch")]


def _java(program: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(program, path=f"{home}/bin") if home else shutil.which(program)
    if found is None:
        pytest.skip(f"there is no {program}")
    return found


@pytest.mark.spark
def test_java(tmp_path: Path) -> None:
    """All in one: a compiler and a Java virtual machine take longer to start than the tests run."""
    jar = jars.connector_jar(SPARK, are_warnings_errors=True)
    built = subprocess.run(
        [_java("javac"), *(f"-J{one}" for one in QUICK), "-proc:none", "--release", "17", "-Xlint:all,-path", "-Werror",
         "-d", tmp_path / "classes", "-cp", f"{jar}:{CLASS_PATH}", *TESTS], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "hashes.json").write_text(json.dumps(list(cases())), "utf-8")
    shutil.copy(shared_vectors.PATH, tmp_path / "files")
    ran = subprocess.run(
        [_java("java"), *QUICK, *OPENED, "-cp", f"{tmp_path / 'classes'}:{jar}:{CLASS_PATH}", f"{compiled.PACKAGE}.files.Tests",
         tmp_path / "files"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    ended = dict(json.loads(line) for line in ran.stdout.splitlines() if line.startswith("["))
    assert ended == dict.fromkeys(NAMES), "\n".join(filter(None, ended.values()))


def test_java_lists_the_classes_that_the_metastore_does() -> None:
    """Both refuse what is on neither list: a definition may have been stored by another metastore."""
    text = (jars.HERE / "connector" / "common" / "transactionmetastore" / "spark" / "files" / "SerdeTable.java").read_text("utf-8")
    prefixes = dict(re.findall(r'(\w+) = "(org[\w.]+\.)"', text))
    listed = text[text.index("OF_TEXT = {"):text.index("public final String text")]
    names = {prefixes.get(prefix, "") + name for prefix, name in re.findall(r'(?:(\w+) \+ )?"(\w[\w.]+)"', listed)}
    assert names == {name for one in storage_classes.FORMATS for group in one for name in group}


def test_a_jar_has_the_newest_sources_that_fit_its_spark() -> None:
    def folders(version: str) -> dict[str, str]:
        return {path.name: path.relative_to(jars.HERE).parts[1] for path in jars.sources(version)}

    assert folders("3.5.9") == {}
    chosen = {version: (folders(version)["AcidCatalog.java"], folders(version)["ResolvedName.java"], folders(version)["AcidTable.java"])
              for version in ("4.0.5", "4.1.4", "4.2.0", "4.10.1")}
    assert chosen == {"4.0.5": ("spark-4.0", "spark-4.0", "common"), "4.1.4": ("spark-4.0", "spark-4.1", "common"),
                      "4.2.0": ("spark-4.2", "spark-4.1", "common"), "4.10.1": ("spark-4.2", "spark-4.1", "common")}
    assert [jars.has_catalog(version) for version in ("3.5.9", "4.0.0", "4.10.1")] == [False, True, True]


@pytest.mark.parametrize(("version", "jar"), [("4.1.0", "spark-4.1.jar"), ("4.3.1-SNAPSHOT", "spark-4.3.jar")])
def test_a_jar_is_for_a_minor_version(version: str, jar: str) -> None:
    assert jars.jar_for(version).name == jar
