from metastore.db.leader import Leadership


def test_one_leader_at_a_time_per_role(database_url):
    first, second = Leadership(database_url), Leadership(database_url)

    assert first.is_leader("reaper")
    assert first.is_leader("reaper")
    assert not second.is_leader("reaper")
    assert second.is_leader("initiator")
    assert not first.is_leader("initiator")
    assert second._session is not None
    first.release()
    assert second.is_leader("reaper")
    assert not first.is_leader("reaper")
    assert first._session is None
    second.release()


def test_a_leader_whose_connection_broke_learns_it_and_another_takes_over(database, database_url):
    first, second = Leadership(database_url), Leadership(database_url)
    assert first.is_leader("loops")
    database.once("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'metastore leader' "
                  "AND datname = current_database()")

    assert second.is_leader("loops")
    assert not first.is_leader("loops")
    second.release()
    assert first.is_leader("loops")
    first.release()


def test_without_a_database_nobody_leads():
    assert not Leadership("postgresql://u@127.0.0.1:1/x").is_leader("loops")
