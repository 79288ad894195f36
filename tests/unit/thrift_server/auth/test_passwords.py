"""PLAIN: files of users, functions, pauses after failures."""

import time

import pytest
from click.testing import CliRunner

from metastore.cli.config import config
from metastore.config.identity import IdentitySettings
from metastore.errors import AccessDeniedError, InvalidInputError, UnavailableError
from metastore.thrift_server.auth.identity import IdentityProof
from metastore.thrift_server.auth.passwords import FailedLogins, check_of, hashed, of_file, plain_mechanism


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    path.write_text(f"# users\n\nann:{hashed('secret')}\n")
    return path


def login(check, response, failures=None):
    mechanism = plain_mechanism(check, failures or FailedLogins())("10.0.0.1")
    assert mechanism.step(response) == b""
    return mechanism.identity


def test_the_file_of_users(users):
    check = of_file(users)
    assert check("ann", "secret")
    assert not check("ann", "Secret")
    assert not check("bob", "secret")
    users.write_text(users.read_text() + f"bob:{hashed('other')}\n")
    assert check("bob", "other")


def test_right_wrong_and_unknown_take_the_same_time(users):
    check = of_file(users)

    def seconds(user, password):
        return min(_timed(check, user, password) for _ in range(5))

    right, wrong, unknown = seconds("ann", "secret"), seconds("ann", "x"), seconds("nobody", "x")
    assert max(right, wrong, unknown) < 3 * min(right, wrong, unknown)


def _timed(check, user, password):
    begun = time.process_time()
    check(user, password)
    return time.process_time() - begun


@pytest.mark.parametrize("line", ["ann", "ann:secret", ":scrypt$00$00", "ann:scrypt$00"])
def test_a_line_that_is_no_user_stops_the_start(tmp_path, line):
    (tmp_path / "users").write_text(f"{line}\n")
    with pytest.raises(InvalidInputError, match="line 1"):
        of_file(tmp_path / "users")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        of_file(tmp_path / "none")


def test_a_login(users):
    identity = login(of_file(users), b"\0ann\0secret")
    assert (identity.user, identity.proof) == ("ann", IdentityProof.PASSWORD)
    assert login(of_file(users), b"ann\0ann\0secret").user == "ann"


@pytest.mark.parametrize("response", [b"", b"ann\0secret", b"root\0ann\0secret", b"\0\0secret", b"\0ann\0", b"\xff\0a\0b", b"\0ann\0" + b"x" * 5000,
                                      b"\0ann\0wrong", b"\0bob\0secret", b"\0ann\0secret\0"])
def test_what_is_no_login(users, response):
    with pytest.raises(AccessDeniedError):
        login(of_file(users), response)


def test_after_some_failures_there_are_pauses():
    now = [0.0]
    failures, asked = FailedLogins(lambda: now[0]), []

    def check(user, password):
        asked.append(user)
        return password == "right"

    for _ in range(5):
        with pytest.raises(AccessDeniedError, match="do not fit"):
            login(check, b"\0ann\0wrong", failures)
    for response in (b"\0ann\0right", b"\0bob\0right"):  # the address is in its pause, too
        with pytest.raises(AccessDeniedError, match="Too many failed logins"):
            login(check, response, failures)
    assert len(asked) == 5
    now[0] += 1.5
    assert login(check, b"\0ann\0right", failures).user == "ann"
    for _ in range(4):
        with pytest.raises(AccessDeniedError, match="do not fit"):
            login(check, b"\0ann\0wrong", failures)


def test_names_of_failures_are_bounded():
    failures = FailedLogins()
    for number in range(20_010):
        failures.failed(f"user {number}")
    assert len(failures._failures) <= 10_001


def test_a_function_of_the_operator(monkeypatch):
    settings = IdentitySettings(authentication="custom", custom="tests.unit.thrift_server.auth.test_passwords:judge")
    check = check_of(settings, use_ssl=True)
    assert login(check, b"\0ann\0please").user == "ann"
    with pytest.raises(AccessDeniedError, match="the judge sleeps"):
        login(check, b"\0ann\0later")
    for name in ("nowhere:x", "time:nothing", "time"):
        with pytest.raises(InvalidInputError, match="module:function"):
            check_of(IdentitySettings(authentication="custom", custom=name), use_ssl=True)


def judge(_user, password):
    if password == "later":
        raise UnavailableError("the judge sleeps")
    return password == "please"


def test_passwords_want_tls(users):
    settings = IdentitySettings(authentication="config", users_file=str(users))
    with pytest.raises(InvalidInputError, match="hive.metastore.use.SSL"):
        check_of(settings, use_ssl=False)
    assert check_of(IdentitySettings(authentication="config", users_file=str(users), plain_in_the_clear=True), use_ssl=False)("ann", "secret")


def test_a_line_for_the_file(tmp_path):
    done = CliRunner().invoke(config, ["hash-password", "ann", "--password", "geheim"])
    assert done.exit_code == 0
    assert "geheim" not in done.output
    (tmp_path / "users").write_text(done.output)
    assert of_file(tmp_path / "users")("ann", "geheim")
