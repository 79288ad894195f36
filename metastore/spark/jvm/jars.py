"""Jars of our Java classes: built with the wheel, one per Spark version; in a checkout at their first use.

Rule: a jar is for the minor version of the Spark that it was compiled for. Its sources are those of ``connector`` that
all versions share, and of each version-specific file the one in the newest folder that is not newer than the Spark.
Only the standard library is imported here, since ``setup.py`` loads this file by itself.
"""

import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

HERE = Path(__file__).parent
COMMON = "common"
COMPILED_FOR = "transactionmetastore/spark/compiled-for"
"""The jar's entry with the version of its Spark, so that a Spark of another version reports a wrong jar."""

_NO_WARNINGS, _NO_WARNING_PASSES = (
    ("-nowarn",),
    ("-Xlint:all,-path", "-Werror"),
)  # path: Spark's jars refer to jars that are not there


class NoJarError(Exception):
    """There is no jar, and none can be built; the text gives the reason."""


def jar_name(version: str) -> str:
    """Return the name of the jar for a version of Spark."""
    return f"spark-{'.'.join(version.split('.')[:2])}.jar"


def jar_for(version: str) -> Path:
    """Return the path of the wheel's jar for this version of Spark, if there is any."""
    return HERE / jar_name(version)


def connector_jar(spark: Path, *, are_warnings_errors: bool = False) -> Path:
    """Return the jar for the Spark in the directory ``spark``: the wheel's jar, or one that is compiled now and kept.

    Raises: NoJarError.
    """
    version = spark_version(spark)
    installed = jar_for(version)
    if installed.exists():
        return installed
    kept = _kept(version) / installed.name
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as directory:
            made = write_jar(spark, Path(directory), are_warnings_errors=are_warnings_errors)
            made.replace(kept)  # atomic, since another process may build the same jar
    return kept


def write_jar(spark: Path, directory: Path, *, are_warnings_errors: bool) -> Path:
    """Compile all classes for a Spark into a jar in ``directory``.

    Raises: NoJarError.
    """
    version = spark_version(spark)
    compiler = shutil.which("javac", path=_compilers())
    if compiler is None:
        raise NoJarError("there is no Java compiler (javac)")
    jar = directory / jar_name(version)
    with tempfile.TemporaryDirectory() as classes:
        arguments = [
            *("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none", "--release", "17"),
            *(_NO_WARNING_PASSES if are_warnings_errors else _NO_WARNINGS),
            *("-d", classes, "-cp", str(spark / "jars" / "*")),
            *map(str, sources(version)),
        ]
        done = subprocess.run([compiler, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            raise NoJarError(done.stderr.strip())
        Path(classes, COMPILED_FOR).write_text(jar_name(version), "utf-8")
        with ZipFile(jar, "w") as out:
            for path in sorted(one for one in Path(classes).rglob("*") if one.is_file()):
                entry = ZipInfo(path.relative_to(classes).as_posix())  # no time: equal sources make equal jars
                out.writestr(entry, path.read_bytes(), ZIP_DEFLATED)
    return jar


def sources(version: str) -> list[Path]:
    """Return the Java files for a version of Spark."""
    fitting = [folder for since, folder in _of_versions() if since <= _number(version)]
    folders = [HERE / "connector" / COMMON, *fitting] if fitting else []
    newest = {path.relative_to(folder): path for folder in folders for path in folder.rglob("*.java")}
    return sorted(newest.values())


def has_catalog(version: str) -> bool:
    """Return True if a jar for this version of Spark has the catalog; older ones would need another connector."""
    return _number(version) >= _of_versions()[0][0]


def spark_version(spark: Path) -> str:
    """Return the version of the Spark in a directory.

    Raises: NoJarError.
    """
    core = next((spark / "jars").glob("spark-core_*.jar"), None)
    if core is None:
        raise NoJarError(f"there is no Spark in {spark}")
    return core.stem.rpartition("-")[2]


def _of_versions() -> list[tuple[tuple[int, ...], Path]]:
    """Return the folders of version-specific sources, each with its first Spark version; the oldest first."""
    folders = (HERE / "connector").glob("spark-*")
    return sorted((_number(folder.name.removeprefix("spark-")), folder) for folder in folders)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _kept(version: str) -> Path:
    """Return a folder for the jar of exactly these sources."""
    digest = sha256(version.encode())
    for path in sources(version):
        digest.update(path.read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "transaction-metastore" / "jars" / digest.hexdigest()[:16]


def _compilers() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin" if home else None
