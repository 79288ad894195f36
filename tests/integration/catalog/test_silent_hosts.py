"""A location on a host that does not answer: its calls end with a sentence, and all others go on."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from metastore.client import MetastoreClient
from metastore.thrift_gen.hive_metastore import ttypes as T
from tests.support.silent_files import ANSWERS, silent_files

SILENT = "hdfs://10.255.255.1:8020"


@pytest.fixture
def silent():
    with silent_files() as found:
        yield found


@pytest.fixture
def calls():
    """Clients that each make one call at a time."""
    with ThreadPoolExecutor(64) as pool:
        yield pool


def create(server, name, location, keys=()):
    with MetastoreClient(server.thrift_uri) as client:
        client.create_table(T.Table(
            dbName="default", tableName=name, tableType="EXTERNAL_TABLE", parameters={"EXTERNAL": "TRUE"}, partitionKeys=[],
            sd=T.StorageDescriptor(cols=[T.FieldSchema("id", "int")], location=location, serdeInfo=T.SerDeInfo())))


def lock(client):
    component = T.LockComponent(T.LockType.EXCLUSIVE, T.LockLevel.TABLE, "default", "some")
    return client.lock(T.LockRequest(component=[component], user="u", hostname="h")).state


def test_hung_calls_do_not_take_the_places_of_others(server, silent, calls, client):
    hung = [calls.submit(create, server, f"t{n}", f"{SILENT}/{n}") for n in range(20)]
    for _ in range(16):  # as many as calls are worked on at a time
        assert silent.asked.acquire(timeout=60)
    with ThreadPoolExecutor(1) as other:
        try:
            assert other.submit(client.get_database, "default").result(60).name == "default"
            assert other.submit(lock, client).result(60) == T.LockState.ACQUIRED
            other.submit(create, server, "local", None).result(60)
        finally:
            silent.answer()
    for one in hung:
        one.result(60)
    assert len(client.get_all_tables("default")) == 21


class TestFewThreads:
    @pytest.fixture
    def server_settings(self):
        return {"metastore.files.threads": "8", "metastore.files.timeout": "600s"}

    def test_more_calls_than_may_wait_are_refused(self, server, silent, calls, client):
        """Half of the threads may hang at one host; the others are for other hosts."""
        hung = [calls.submit(create, server, f"t{n}", f"{SILENT}/{n}") for n in range(4)]
        for _ in hung:
            assert silent.asked.acquire(timeout=60)
        refused = [calls.submit(create, server, f"more{n}", f"{SILENT}/more") for n in range(20)]
        for one in refused:
            with pytest.raises(T.MetaException, match=r"too many calls wait for files, most of them for hdfs://10.255.255.1:8020"):
                one.result(60)
        create(server, "other", f"hdfs://{ANSWERS}/t")
        create(server, "local", None)
        silent.answer()
        for one in hung:
            one.result(60)
        create(server, "again", f"{SILENT}/again")
        assert not any(name.startswith("more") for name in client.get_all_tables("default"))


class TestShortTime:
    @pytest.fixture
    def server_settings(self):
        return {"metastore.files.timeout": "1s"}

    def test_a_call_ends_and_the_next_ones_are_refused_at_once(self, server, silent, client):
        with pytest.raises(T.MetaException, match=r"hdfs://10.255.255.1:8020 did not answer within 1 s"):
            create(server, "t", f"{SILENT}/t")
        server._file_pool._hosts[SILENT].silent_until += 60  # not a second, on a slow machine
        with pytest.raises(T.MetaException, match=r"hdfs://10.255.255.1:8020 does not answer; nothing was done"):
            create(server, "t", f"{SILENT}/t")
        create(server, "other", f"hdfs://{ANSWERS}/t")
        assert client.get_all_tables("default") == ["other"]

    def test_the_other_questions_of_calls_have_sentences_too(self, server, silent, client):
        create(server, "t", f"hdfs://{ANSWERS}/t")
        table = client.get_table("default", "t")
        table.sd.location = f"{SILENT}/t"
        client.alter_table("default", "t", table)
        table.tableType, table.parameters = "MANAGED_TABLE", {"transactional": "true"}
        table.sd.inputFormat, table.sd.outputFormat = (
            f"org.apache.hadoop.hive.ql.io.orc.Orc{kind}Format" for kind in ("Input", "Output"))
        with pytest.raises(T.MetaException, match=r"cannot be listed: .*hdfs://10.255.255.1:8020 did not answer"):
            client.alter_table("default", "t", table)


@pytest.mark.parametrize("location", ["http://10.255.255.1/x", "ftp://h/x", "github://a:b@c/x", "memory://x/y", "zip://x/y"])
def test_other_schemes_are_refused_before_anything_is_opened(server, client, location):
    with pytest.raises(T.MetaException, match=r"the scheme '\w+' is not one of metastore\.warehouse\.schemes"):
        create(server, "t", location)
    assert client.get_all_tables("default") == []
