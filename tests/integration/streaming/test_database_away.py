"""What a user of a stream is told while the server has no database: a sentence, whichever call meets it."""

import pytest

from metastore.client import MetastoreClient
from metastore.errors import MetaError
from metastore.streaming import connect
from tests.support.acid.creating import create_database, create_table
from tests.support.away import SENTENCE, without_database

KEYS = {"day": "string"}


@pytest.fixture
def table(client):
    create_database(client)
    create_table(client, "t", {"id": "bigint"}, keys=KEYS)


@pytest.mark.parametrize("lost", ["get_table_req", "get_all_table_constraints", "allocate_table_write_ids", "get_partition",
                                  "add_partitions_req"])
def test_a_stream_tells_it_in_a_sentence(client, table, lost):
    def write():
        with connect("d.t", client=given) as connection, connection.transaction():
            connection.write([{"id": 1, "day": "a"}])

    with without_database(client, lost) as server, MetastoreClient(server.uri) as given:
        with pytest.raises(MetaError, match=SENTENCE):
            write()
        assert lost in server.calls
