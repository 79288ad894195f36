"""Every rare method is declared beside its rule, and costs nothing before it is called."""

import subprocess
import sys

import pytest

from metastore.thrift_server.handlers.rare import METHODS, declared
from metastore.thrift_server.wire.interface import METHODS as INTERFACE


@pytest.mark.parametrize("concept", METHODS)
def test_a_concept_declares_the_methods_that_are_listed(concept):
    assert sorted(declared(concept)) == sorted(METHODS[concept])
    assert declared(concept).keys() <= INTERFACE.keys()


def test_no_concept_is_loaded_with_the_server():
    code = "import sys, metastore.app.handlers; print([name for name in sys.modules if name.startswith('metastore.catalog.rare.rules.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['metastore.catalog.rare.rules.objects']"
