"""Whose turn it is: benefit as time that was waited already, people first, shares."""

from datetime import timedelta

import pytest

from metastore.compaction.queue.rules.turns import (
    BY_PEOPLE,
    DOUBLING,
    LONGEST,
    OPENING,
    Benefit,
    full_pools,
    head_start,
    is_by_person,
    over_share,
)

MB = 1024 * 1024
NONE = timedelta(0)


def test_what_is_saved_for_each_byte_that_is_rewritten():
    assert Benefit(11, 11 * OPENING).per_byte == pytest.approx(11 / 12)
    assert Benefit(11, 0, opens=3).per_byte == 44  # small deltas: the opening is all that they cost
    assert Benefit(0, MB).per_byte == 0


def test_twice_the_benefit_is_worth_so_much_waiting():
    once, twice = head_start(Benefit(4, 0)), head_start(Benefit(8, 0))

    assert twice - once == DOUBLING
    assert head_start(Benefit(4, 0, opens=1)) == twice  # as often read


def test_no_benefit_is_worth_more_than_the_longest():
    assert head_start(Benefit(10**9, 0, opens=10**6)) == LONGEST
    assert head_start(Benefit(1, 10**15)) == head_start(Benefit(0, 0)) == head_start(None) == NONE


def test_nothing_starves():
    """Whatever comes later than the longest head start comes after."""
    assert LONGEST < BY_PEOPLE
    worst, best = NONE, LONGEST
    assert worst <= best < BY_PEOPLE  # so a request that has waited for BY_PEOPLE is before all that come


@pytest.mark.parametrize(("initiator", "expected"), [
    (None, True), ("", True), ("beeline-host-manual", True), ("server-1", False), ("manual-1", False)])
def test_who_is_a_person(initiator, expected):
    assert is_by_person(initiator) is expected


@pytest.mark.parametrize(("working", "share", "expected"), [
    ("", 0.5, ""), ("a", 0.5, "a"), ("ab", 0.5, "ab"), ("abc", 0.5, ""), ("aabc", 0.5, "a"), ("aab", 1.0, ""),
    ("aaaaaaa", 0.5, "a"), ("aaabbcc", 0.5, ""), ("a", 0.0, "a")])
def test_over_its_share_with_one_more(working, share, expected):
    assert over_share(working, share) == list(expected)


@pytest.mark.parametrize(("working", "full"), [
    ({}, ["off"]), ({"etl": 1}, ["off"]), ({"etl": 2, "": 9}, ["etl", "off"]), ({"etl": 3}, ["etl", "off"])])
def test_a_pool_with_as_many_as_its_limit_is_full(working, full):
    assert full_pools(working, {"etl": 2, "off": 0}) == full
