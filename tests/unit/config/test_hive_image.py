"""The variables of Apache's Hive image."""

import pytest

from metastore.cli.options import settings_of
from metastore.config import hive_image
from metastore.errors import InvalidInputError

IN = {"METASTORE_IMAGE": "true", "SERVICE_NAME": "metastore"}
URL = "-Djavax.jdo.option.ConnectionURL"
OPTIONS = (f"-Djavax.jdo.option.ConnectionDriverName=org.postgresql.Driver {URL}='jdbc:postgresql://postgres:5432/metastore_db?ssl=false' "
           "-Djavax.jdo.option.ConnectionUserName=hive -Djavax.jdo.option.ConnectionPassword='pass word' -Xmx1G -Dhive.txn.timeout=7s")


@pytest.fixture
def started(monkeypatch):
    """Return a function that gives the settings of a process with these variables."""
    def with_variables(variables, files=(), assignments=()):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        return settings_of(files, assignments)
    return with_variables


def test_what_starts_apaches_image_starts_ours(started, tmp_path):
    (tmp_path / "hive-site.xml").write_text(
        "<configuration><property><name>hive.metastore.port</name><value>1</value></property>"
        "<property><name>hive.max.open.txns</name><value>5</value></property></configuration>")
    settings = started({**IN, "DB_DRIVER": "postgres", "SERVICE_OPTS": OPTIONS, "HIVE_CUSTOM_CONF_DIR": str(tmp_path), "IS_RESUME": "true",
                        "METASTORE_PORT": "9099", "SCHEMA_COMMAND": "initOrUpgradeSchema", "VERBOSE": "true",
                        "HADOOP_CLIENT_OPTS": "-Dhive.txn.timeout=9s -Dhive.exec.parallel=true -Dfs.s3a.endpoint=http://m:1 -XX:+UseG1GC"})

    assert settings.database.full_url == "postgresql://hive:pass%20word@postgres:5432/metastore_db"
    assert (settings.server.host, settings.server.port) == ("0.0.0.0", 9099)
    assert settings.txns.timeout.total_seconds() == 7
    assert settings.txns.max_open_txns == 5
    assert settings.lookup("hive.exec.parallel") == "true"
    assert settings.stores.keys == {"fs.s3a.endpoint": "http://m:1"}
    assert settings.origins["metastore.database.password"] == "SERVICE_OPTS"


def test_our_own_variables_and_the_command_line_win(started):
    settings = started({**IN, "SERVICE_OPTS": "-Dhive.txn.timeout=7s -Dhive.metastore.port=1", "METASTORE_CONF_HIVE_METASTORE_PORT": "2",
                        "METASTORE_CONF_HIVE_METASTORE_THRIFT_BIND_HOST": "127.0.0.1"}, assignments=("hive.txn.timeout=8s",))
    assert (settings.server.host, settings.server.port, settings.txns.timeout.total_seconds()) == ("127.0.0.1", 2, 8)


@pytest.mark.parametrize("variables", [
    {"SERVICE_NAME": "metastore", "SERVICE_OPTS": "-Dhive.txn.timeout=7s", "DB_DRIVER": "mysql"},
    {"METASTORE_IMAGE": "true", "SERVICE_OPTS": "-Dhive.txn.timeout=7s", "METASTORE_PORT": "1"}])
def test_elsewhere_such_names_mean_nothing(started, variables):
    settings = started(variables)
    assert (settings.server.host, settings.server.port, settings.txns.timeout.total_seconds()) == ("127.0.0.1", 9083, 300)


@pytest.mark.parametrize(("variables", "said"), [
    ({"SERVICE_NAME": "hiveserver2"}, "SERVICE_NAME = 'hiveserver2': this image is a metastore only. Run hiveserver2 from Apache's image"),
    ({"DB_DRIVER": "mysql"}, "DB_DRIVER = 'mysql' cannot be honoured: PostgreSQL is the only database .*in-front-of-an-existing-metastore.md"),
    ({"DB_DRIVER": "derby"}, "leave both out for an embedded PostgreSQL"),
    ({"SCHEMA_COMMAND": "validate"}, "each start brings the schema up to date"),
    ({"SERVICE_OPTS": f"{URL}=jdbc:mysql://m/db"}, "SERVICE_OPTS.* is not valid: .*PostgreSQL is the only database.*importing from one comes in a later"),
    ({"SERVICE_OPTS": f"{URL}='jdbc"}, "SERVICE_OPTS cannot be read: No closing quotation"),
])
def test_what_cannot_be_honoured_stops_the_start(started, variables, said):
    with pytest.raises(InvalidInputError, match=said):
        started({**IN, **variables})


def test_a_service_of_kubernetes_named_metastore_is_no_port(started):
    assert started({**IN, "METASTORE_PORT": "tcp://10.0.0.1:9083"}).server.port == 9083


def test_a_directory_that_is_not_mounted_is_not_missed():
    assert hive_image.files({**IN, "HIVE_CUSTOM_CONF_DIR": "/hive_custom_conf"}) == ()
