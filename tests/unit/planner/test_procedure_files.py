"""A procedure of CALL is found by its name alone."""

from importlib import import_module
from pathlib import Path

import pytest

from metastore.planner.procedures import registry

FRAME = {"__init__", "declaration", "registry"}


def test_every_file_is_a_procedure():
    files = {path.stem for path in Path(registry.__file__).parent.glob("*.py")}

    assert files - FRAME == set(registry.PROCEDURES)


@pytest.mark.parametrize("name", registry.PROCEDURES)
def test_a_procedure_is_in_the_file_of_its_name(name):
    assert registry.PROCEDURES[name] is import_module(f"metastore.planner.procedures.{name}").PROCEDURE
