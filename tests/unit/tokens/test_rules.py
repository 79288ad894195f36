"""Bytes of delegation tokens beside those that Hadoop's classes wrote, and who may act for whom."""

import base64
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.errors import AccessDeniedError, InvalidInputError
from metastore.tokens.rules import TokenIdentifier, decoded_token, encoded_token, password, require_proxy

# Written by Hive 2.3.10's DelegationTokenIdentifier, Java's HmacSHA1 with the key "k" and Token.encodeToUrlString, from PySpark's jars.
HADOOPS = TokenIdentifier("alice", "yarn", "trino", 1_700_000_000_000, 1_700_604_800_000, 300, 7)
PASSWORD = bytes.fromhex("497dcae0a16224e15065cc22f34b474c0d6692d4")
TEXT = "JAAFYWxpY2UEeWFybgV0cmlub4oBi8_laACKAYvz8ewAjgEsBxRJfcrgoWIk4VBlzCLzS0dMDWaS1BVISVZFX0RFTEVHQVRJT05fVE9LRU4A"
BYTES = bytes.fromhex("0005616c696365047961726e057472696e6f8a018bcfe568008a018bf3f1ec008e012c07")


def test_an_identifier_is_hadoops():
    assert HADOOPS.encoded() == BYTES
    assert TokenIdentifier.decoded(BYTES) == HADOOPS


@given(st.builds(TokenIdentifier, st.text(max_size=200), st.text(max_size=5), st.text(max_size=5), *[
    st.integers(-2**63, 2**63 - 1)] * 2, *[st.integers(-2**31, 2**31 - 1)] * 2))
def test_identifiers_and_tokens_come_back(identifier):
    try:
        data = identifier.encoded()
    except UnicodeEncodeError:
        return
    assert TokenIdentifier.decoded(data) == identifier
    assert decoded_token(encoded_token(data, b"secret")) == (data, b"secret")


@pytest.mark.parametrize(("data", "what"), [(BYTES + b"x", "damaged"), (b"\x01" + BYTES[1:], "unknown version"), (BYTES[:-1], "cut off")])
def test_identifiers_that_are_not_whole_are_refused(data, what):
    with pytest.raises(InvalidInputError, match=what):
        TokenIdentifier.decoded(data)


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data):
    with contextlib.suppress(InvalidInputError):
        assert TokenIdentifier.decoded(data).encoded() == data


@pytest.mark.parametrize("text", ["", "%%%", "AAAA", "/////w", "x" * 20_000, base64.urlsafe_b64encode(b"\x8f\xff" * 9).decode(), "é"])
def test_what_is_no_token_is_refused(text):
    with pytest.raises(InvalidInputError):
        TokenIdentifier.decoded(decoded_token(text)[0])


def test_a_password_needs_the_key():
    assert password(BYTES, b"k") == PASSWORD != password(BYTES, b"l")


def test_a_token_is_hadoops():
    assert encoded_token(BYTES, PASSWORD) == TEXT
    assert decoded_token(TEXT) == (BYTES, PASSWORD)


@pytest.mark.parametrize(("settings", "owner", "host", "refusal"), [
    ({"users": "alice", "hosts": "*"}, "alice", "10.0.0.1", None),
    ({"users": "*", "hosts": "10.0.0.0/8, 192.168.1.1"}, "bob", "10.9.9.9", None),
    ({"users": "*", "hosts": "10.0.0.0/8,nohost"}, "bob", "192.168.1.1", "hosts"),
    ({"users": "*"}, "bob", "10.0.0.1", "hosts"),
    ({"users": "alice", "hosts": "*"}, "bob", "10.0.0.1", "users"),
    ({"groups": "staff", "hosts": "h1"}, "carol", "h1", None),
    ({"groups": "admins", "hosts": "*"}, "carol", "h1", "groups"),
    ({"groups": "*", "hosts": "::1"}, "carol", "[::1]", None),
    ({}, "alice", "10.0.0.1", "users"),
])
def test_who_may_act_for_whom(settings, owner, host, refusal):
    keys = {f"hadoop.proxyuser.trino.{name}": value for name, value in settings.items()}
    groups = {"carol": {"staff"}}
    if refusal is None:
        require_proxy(keys, "trino", owner, host, lambda user: groups.get(user, ()))
    else:
        with pytest.raises(AccessDeniedError, match=f"hadoop.proxyuser.trino.{refusal}"):
            require_proxy(keys, "trino", owner, host, lambda user: groups.get(user, ()))
