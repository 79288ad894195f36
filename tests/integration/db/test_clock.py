from datetime import timedelta


def test_clock_moves(database, test_clock):
    with database.begin() as pg:
        before = pg.now
    test_clock.advance(timedelta(days=3))
    with database.begin() as pg:
        assert pg.now - before > timedelta(days=3)

