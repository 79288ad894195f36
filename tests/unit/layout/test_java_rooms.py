"""The packages of the connector: which looks at which, and who knows what is inside Spark."""

import re
from functools import cache

import pytest

from metastore.spark.jvm import jars

OURS = "transactionmetastore.spark"
VERSIONS = ("4.0", "4.1", "4.2", "4.3")
ROOMS = ("extension", "catalog", "procedure", "write", "read", "stream", "txn", "table", "plain", "planner", "files", "internals")
"""From those that use others to those that are used."""

NAMED_BY_USERS = {"catalog.AcidExtensions"}
"""Stands where spark.sql.extensions of every user has it, and is a subclass of extension.SessionRules, nothing else."""

INSIDE_SPARK = re.compile(r"\borg\.apache\.spark\.sql\.(?:catalyst|execution|classic|hive)\.[\w.]*[A-Z]\w*\$?")
PUBLIC = re.compile(r"org\.apache\.spark\.sql\.catalyst\.(?:InternalRow|expressions\.SpecializedGetters|util\.(?:ArrayData|MapData)|analysis\.\w+Exception)")
"""What Spark's interfaces of catalogs, tables, scans and writes have in their signatures."""

LEFT = {
    "files.AcidOrcFormat": 13, "files.AcidOrcReader": 4, "files.AcidOrcWriter": 3, "files.ColumnTallies": 1, "files.EventFile": 3,
    "files.InPlaceUploads": 3, "files.ListedFiles": 5, "files.MergedEvents": 3, "files.MergedReader": 2,
    "files.OrcBatches": 2, "files.SerdeFormat": 3, "files.SerdeReader": 7, "files.SerdeWriter": 3, "read.AcidScan": 2,
    "read.ReadsEnd": 2}
"""Classes outside of ``extension`` and ``internals`` that know something inside Spark: how many things. Only ever fewer.

Those of ``files`` are formats, which Spark has no public interface for.
"""


def code(text: str) -> str:
    """Without comments and texts."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.DOTALL)


@cache
def classes(version: str) -> dict[str, str]:
    """Return the code of each class, by its name behind our package's, as ``write.AcidWrite``."""
    found = {}
    for path in jars.sources(version):
        text = code(path.read_text("utf-8"))
        package = re.match(r"\s*package ([\w.]+);", text)[1].removeprefix(OURS).removeprefix(".")
        found[f"{package}.{path.stem}"] = text
    return found


def room(name: str) -> str:
    return name.rpartition(".")[0]


def used(text: str) -> set[str]:
    """Return the classes of ours that a class imports, or names with their packages."""
    return {f"{package}.{name}" for package, name in re.findall(rf"\b{re.escape(OURS)}\.(?:([a-z]\w*)\.)?([A-Z]\w*)", text)}


@pytest.mark.parametrize("version", VERSIONS)
def test_no_package_looks_up(version):
    found = classes(version)
    assert {room(name) for name in found} == set(ROOMS)
    up = {name: sorted(other for other in used(text) if ROOMS.index(room(other)) < ROOMS.index(room(name)))
          for name, text in found.items() if name not in NAMED_BY_USERS}
    assert {name: others for name, others in up.items() if others} == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_class_that_is_named_is_there(version):
    found = classes(version)
    assert {name: used(text) - set(found) for name, text in found.items() if used(text) - set(found)} == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_class_lies_in_the_folder_of_its_package(version):
    for path in jars.sources(version):
        package = re.search(r"^package ([\w.]+);", path.read_text("utf-8"), re.MULTILINE)[1]
        assert path.parent.as_posix().endswith("/" + package.replace(".", "/")), path


def test_no_class_imports_what_it_does_not_use():
    for version in VERSIONS:
        for name, text in classes(version).items():
            body = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
            imported = re.findall(r"^import (?:static )?[\w.]*?\.?(\w+\$?);$", text, re.MULTILINE)
            assert [one for one in imported if not re.search(rf"(?<!\w){re.escape(one)}(?!\w)", body)] == [], name


def test_only_two_packages_know_what_is_inside_spark():
    inside = {}
    for version in VERSIONS:
        for name, text in classes(version).items():
            if room(name) in {"extension", "internals"}:
                continue
            if known := {one for one in INSIDE_SPARK.findall(text) if not PUBLIC.fullmatch(one)}:
                inside[name] = max(inside.get(name, 0), len(known))
    assert inside == LEFT


def test_a_class_of_one_version_is_where_versions_differ():
    """Allow in a version's folder only knowledge of its inside, or a class that implements more of its interfaces."""
    of_versions = {path.relative_to(jars.HERE / "connector").as_posix() for path in (jars.HERE / "connector").glob("spark-*/**/*.java")}
    elsewhere = {path for path in of_versions if "/internals/" not in path}
    assert {path.split("/", 1)[1].removeprefix("transactionmetastore/spark/") for path in elsewhere} == {
        "catalog/AcidCatalog.java", "catalog/AcidChangelog.java", "catalog/ConstrainedCatalog.java", "catalog/EvolvingTable.java",
        "extension/ChangedTable.java"}
