from metastore.db.leader import Leadership


def test_one_leader_at_a_time_per_role(database_url):
    first, second, other = (Leadership(database_url, role) for role in ("loops", "loops", "reports"))

    assert first.is_leader()
    assert first.is_leader()
    assert not second.is_leader()
    assert other.is_leader()
    first.release()
    assert second.is_leader()
    assert not first.is_leader()
    second.release()
    other.release()


def test_a_leader_whose_connection_broke_learns_it_and_another_takes_over(database, database_url):
    first, second = Leadership(database_url, "loops"), Leadership(database_url, "loops")
    assert first.is_leader()
    database.once("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'metastore leader' "
                  "AND datname = current_database()")

    assert second.is_leader()
    assert not first.is_leader()
    second.release()
    assert first.is_leader()
    first.release()


def test_without_a_database_nobody_leads():
    assert not Leadership("postgresql://u@127.0.0.1:1/x", "loops").is_leader()
