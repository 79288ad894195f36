"""Passwords of Hadoop's credential files. The file is one that Hadoop's own tool made (`hadoop credential create`, Hadoop 3.5)."""

from base64 import b64decode

import pytest

from metastore.cli.options import settings_of
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.errors import InvalidInputError
from metastore.tls import credential_files, jceks

MADE_BY_HADOOP = b64decode(
    "zs7OzgAAAAIAAAACAAAAAwARZnMuczNhLnNlY3JldC5rZXkAAAGiJJgnC6ztAAVzcgAzY29tLnN1bi5jcnlwdG8ucHJvdmlkZXIuU2VhbGVkT2JqZWN0Rm9yS2V5UHJvdGVjdG9yzVfK"
    "Wecwu1MCAAB4cgAZamF2YXguY3J5cHRvLlNlYWxlZE9iamVjdD42PabDt1RwAgAEWwANZW5jb2RlZFBhcmFtc3QAAltCWwAQZW5jcnlwdGVkQ29udGVudHEAfgACTAAJcGFyYW1zQWxn"
    "dAASTGphdmEvbGFuZy9TdHJpbmc7TAAHc2VhbEFsZ3EAfgADeHB1cgACW0Ks8xf4BghU4AIAAHhwAAAAETAPBAj5z16NMO/LfgIDAw1AdXEAfgAFAAAAiAZpmHWtuU2vvX9rv7csWSau"
    "C42GRE7NJ/3kYv3damFXaXKa3sbnwD+Phzdy1vA0oakoPjmIlI1bkPJKfItaGynfWatu6i7lb0LCrN1am29DWkGk/Pa7BCixevyoGSEd+iXDoFpsz6cjODjkQm4KnEZiszZ04FTY75Hs"
    "zCS7wSnzgsevzbcRpGl0ABZQQkVXaXRoTUQ1QW5kVHJpcGxlREVTdAAWUEJFV2l0aE1ENUFuZFRyaXBsZURFUwAAAAMAI2phdmF4Lmpkby5vcHRpb24uY29ubmVjdGlvbnBhc3N3b3Jk"
    "AAABoiSYILKs7QAFc3IAM2NvbS5zdW4uY3J5cHRvLnByb3ZpZGVyLlNlYWxlZE9iamVjdEZvcktleVByb3RlY3Rvcs1XylnnMLtTAgAAeHIAGWphdmF4LmNyeXB0by5TZWFsZWRPYmpl"
    "Y3Q+Nj2mw7dUcAIABFsADWVuY29kZWRQYXJhbXN0AAJbQlsAEGVuY3J5cHRlZENvbnRlbnRxAH4AAkwACXBhcmFtc0FsZ3QAEkxqYXZhL2xhbmcvU3RyaW5nO0wAB3NlYWxBbGdxAH4A"
    "A3hwdXIAAltCrPMX+AYIVOACAAB4cAAAABEwDwQIW8AGhiwvrc8CAwMNQHVxAH4ABQAAAIiyo1vdhgtuQ60gBp5EgDy/pdL15iM0V2FN4IWHPyGXS46NNUkDRrC5suV7dUl2UCjKDuc1"
    "jf/Z3mA++mGBBsM4UjFisOAy520Q/DwfMo0Ps2jUcVAfsiekieDjsYVTbiAm4LND2WOqLY5Z0zCkE7F+9qW+Svaqz2gLKlEXNVhHplH/qiQtL+2YdAAWUEJFV2l0aE1ENUFuZFRyaXBs"
    "ZURFU3QAFlBCRVdpdGhNRDVBbmRUcmlwbGVERVMcvsu3lPWJEJ/SIRtGN+McyEy3LA==")
PATH = "hadoop.security.credential.provider.path"
SECRETS = {"javax.jdo.option.connectionpassword": "hüsh pass", "fs.s3a.secret.key": "sec/ret+1"}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.jceks"
    path.write_bytes(MADE_BY_HADOOP)
    return path


def read(keys, **environ):
    given = SettingsSource("core-site.xml", keys, foreign=True)
    return build([given, *credential_files.sources([given], environ)])


def test_what_hadoop_wrote_is_read():
    assert {alias: sealed.text() for alias, sealed in jceks.read(MADE_BY_HADOOP, "none").items()} == SECRETS


@pytest.mark.parametrize("cut", range(0, len(MADE_BY_HADOOP), 37))
def test_what_is_cut_short_or_changed_is_refused(cut):
    changed = bytearray(MADE_BY_HADOOP)
    changed[cut] ^= 1
    for data in (MADE_BY_HADOOP[:cut], bytes(changed)):
        with pytest.raises(ValueError, match="not a JCEKS store|password is wrong"):
            jceks.read(data, "none")


@pytest.mark.parametrize("form", ["jceks://file{}", "localjceks://file{}", "localjceks://file{}, localjceks://file{}"])
def test_it_wins_over_the_text_of_a_key(file, form):
    settings = read({PATH: form.replace("{}", str(file)), "fs.s3a.access.key": "AK", "fs.s3a.secret.key": "clear",
                     "javax.jdo.option.ConnectionPassword": "clear"})

    assert settings.stores.options("s3a://b") == {"key": "AK", "secret": "sec/ret+1"}
    assert settings.database.password == "hüsh pass"
    assert all("sec/ret" not in row.value and "hüsh" not in row.value for row in settings.shown())
    assert {row.source for row in settings.shown() if row.key == "fs.s3a.secret.key"} == {f"localjceks://file{file}", f"jceks://file{file}"} & {
        row.source for row in settings.shown()}


@pytest.mark.parametrize("form", ["--set", "yaml"])
def test_any_source_may_name_it(file, tmp_path, form):
    (tmp_path / "m.yaml").write_text(f"{PATH}: 'jceks://file{file}'\n" if form == "yaml" else "")
    settings = settings_of((tmp_path / "m.yaml",), (f"{PATH}=jceks://file{file}",) if form == "--set" else ())
    assert settings.database.password == "hüsh pass"


def test_s3a_has_files_of_its_own_also_for_a_bucket(file):
    keys = {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "clear"}
    everywhere = read({**keys, "fs.s3a.security.credential.provider.path": f"jceks://file{file}"})
    assert everywhere.stores.options("s3a://b")["secret"] == "sec/ret+1"
    assert everywhere.database.password == ""
    bucket = read({**keys, "fs.s3a.bucket.my.b.security.credential.provider.path": f"jceks://file{file}"})
    assert [bucket.stores.options(f"s3a://{name}")["secret"] for name in ("my.b", "other")] == ["sec/ret+1", "clear"]


def test_the_password_of_the_file(file, tmp_path):
    (tmp_path / "password").write_text("none\n")
    keys = {PATH: f"jceks://file{file}"}
    named = {"hadoop.security.credstore.java-keystore-provider.password-file": f"file://{tmp_path / 'password'}"}
    assert read(keys, HADOOP_CREDSTORE_PASSWORD="none").database.password == "hüsh pass"
    assert read({**keys, **named}).database.password == "hüsh pass"
    with pytest.raises(InvalidInputError, match=rf"{PATH} = jceks://file.* cannot be read: the password is wrong.* HADOOP_CREDSTORE_PASSWORD"):
        read({**keys, **named}, HADOOP_CREDSTORE_PASSWORD="other")


@pytest.mark.parametrize(("path", "said"), [
    ("jceks://hdfs@nn:8020/a.jceks", "copy the file to this machine and write localjceks://file/PATH"), ("user:///", "copy the file"),
    ("jceks://file/no/such.jceks", "No such file"), ("localjceks://file/dev/null", "it is not a JCEKS store")])
def test_what_cannot_be_read_stops_the_start(path, said):
    with pytest.raises(InvalidInputError, match=said) as refused:
        read({PATH: path})
    assert f"{PATH} = {path} cannot be read" in str(refused.value)
