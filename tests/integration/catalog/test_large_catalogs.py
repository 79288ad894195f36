"""No call that asks for a part of the catalog reads more because the whole is larger: pages, as PostgreSQL counts them."""



from benchmarks.counted_calls import World
from benchmarks.large_catalog import PARTS, costs, fill
from metastore.client import MetastoreClient
from tests.support.tapped_database import *  # noqa: F403

MORE = 45
"""Pages that taller indexes and a few more pages of the same rows may cost; hundreds hold the whole. Who else has a place is looked
for in each of the directories around it."""


def test_no_call_grows_with_what_it_does_not_ask_for(server, tap, direct_url, tmp_path):
    with MetastoreClient(server.thrift_uri) as client:
        world = World(client)
        world.fill(tmp_path, many=0)
        fill(direct_url, tables=(0, 20), partitions=(0, 100))
        before = costs(world, tap, direct_url)
        fill(direct_url, tables=(20, 2000), partitions=(100, 3000))
        after = costs(world, tap, direct_url)

    assert before.keys() == PARTS.keys()
    assert {name: (before[name].pages, cost.pages) for name, cost in after.items()
            if cost.pages > before[name].pages + MORE} == {}
