from metastore.thrift_server import methods_page
from metastore.thrift_server.wire.codec import CODECS
from tests.support.thrift_server import facts

VERSIONS = {"2.3.10": "2.3", "3.1.3": "3.1", "4.0.1": "4.0", "4.1.0": "4.1", "4.2.0": "4.2"}


def test_every_method_is_listed_once():
    listed = [entry.name for entry in (*methods_page.entries(), *methods_page.entries("operators.thrift"))]
    assert sorted(listed) == sorted(CODECS)


def test_our_own_methods_are_told_apart():
    own = [entry.name for entry in methods_page.entries("operators.thrift")]
    assert own
    assert not {entry.name for entry in methods_page.entries()} & set(own)
    listed = methods_page.page().partition("## Our own")[2]
    assert all(f"| `{name}` | built |" in listed for name in own)


def test_versions_are_those_of_the_facts():
    methods = facts()["methods"]
    for entry in methods_page.entries():
        since, until = (VERSIONS.get(methods[entry.name].get(key)) for key in ("since", "until"))
        if since == until:
            expected = f"{since} only"
        elif until:
            expected = f"until {until}" if since == "2.3" else f"{since} to {until}"
        else:
            expected = "all" if since == "2.3" else f"since {since}"
        assert entry.versions == expected, entry.name


def test_states_come_from_the_handlers():
    states = methods_page.states()
    assert states["getStatus"] == "built"
    assert states["add_index"].startswith("refused on purpose")
    assert states["shutdown"] == "heard, without effect"
    assert states["get_type"] == "built"
    assert "| `get_type` | all | 3 | built |" in methods_page.page()
