"""Hadoop's keys of object stores, as s3fs, gcsfs and adlfs want them."""

import pytest

from metastore import object_stores
from metastore.config import build
from metastore.config.settings import SettingsSource
from metastore.errors import ConfigValueSecurityError, InvalidInputError
from metastore.object_stores import ObjectStores, azure, google, s3
from metastore.object_stores.credentials import Keys, Role
from metastore.redaction import MASK, is_secret

S3A, AWS1, AWS2 = "org.apache.hadoop.fs.s3a.", "com.amazonaws.auth.", "software.amazon.awssdk.auth.credentials."
PAIR = {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "SK"}
CHAIN = "fs.s3a.aws.credentials.provider"
GIVEN = {"key": "AK", "secret": "SK"}


def of(keys, bucket="lake"):
    return s3.options({f"fs.s3a.{name}": text for name, text in keys.items()}, bucket)


@pytest.mark.parametrize(("keys", "options"), [
    ({}, {}),
    ({"endpoint": "http://minio:9000", "path.style.access": "true"},
     {"client_kwargs": {"endpoint_url": "http://minio:9000"}, "config_kwargs": {"s3": {"addressing_style": "path"}}}),
    ({"endpoint": "minio:9000"}, {"client_kwargs": {"endpoint_url": "https://minio:9000"}}),
    ({"endpoint": "minio:9000", "connection.ssl.enabled": "false"}, {"client_kwargs": {"endpoint_url": "http://minio:9000"}, "use_ssl": False}),
    ({"endpoint": "oss-cn-beijing.aliyuncs.com", "path.style.access": "false"},
     {"client_kwargs": {"endpoint_url": "https://oss-cn-beijing.aliyuncs.com"}, "config_kwargs": {"s3": {"addressing_style": "virtual"}}}),
    ({"endpoint": "s3.amazonaws.com"}, {}),
    ({"endpoint": "https://s3.eu-central-1.amazonaws.com/"}, {"client_kwargs": {"region_name": "eu-central-1"}}),
    ({"endpoint": "s3-us-west-2.amazonaws.com", "endpoint.region": "us-west-1"}, {"client_kwargs": {"region_name": "us-west-1"}}),
    ({"endpoint.region": "eu-west-3", "endpoint.fips": "true"},
     {"client_kwargs": {"region_name": "eu-west-3"}, "config_kwargs": {"use_fips_endpoint": True}}),
    ({"proxy.host": "px", "proxy.port": "3128", "proxy.username": "u", "proxy.password": "p@"},
     {"config_kwargs": {"proxies": {"http": "http://u:p%40@px:3128", "https": "http://u:p%40@px:3128"}}}),
    ({"requester.pays.enabled": "true", "acl.default": "BucketOwnerFullControl"},
     {"requester_pays": True, "s3_additional_kwargs": {"ACL": "bucket-owner-full-control"}}),
    ({"encryption.algorithm": "SSE-KMS", "encryption.key": "arn:k"},
     {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "arn:k"}}),
    ({"server-side-encryption-algorithm": "AES256"}, {"s3_additional_kwargs": {"ServerSideEncryption": "AES256"}}),
    ({"endpoint": "http://a:1", "bucket.lake.endpoint": "http://b:2", "bucket.my.lake.endpoint": "http://c:3"},
     {"client_kwargs": {"endpoint_url": "http://b:2"}}),
    ({"connection.maximum": "200", "fast.upload": "true", "impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}, {}),
], ids=str)
def test_where_a_store_is(keys, options):
    assert of(keys) == options


@pytest.mark.parametrize(("keys", "options"), [
    (PAIR, GIVEN),
    ({**PAIR, "fs.s3a.session.token": "T"}, {**GIVEN, "token": "T"}),
    ({**PAIR, "fs.s3a.session.token": "T", CHAIN: S3A + "SimpleAWSCredentialsProvider"}, GIVEN),
    ({**PAIR, CHAIN: S3A + "TemporaryAWSCredentialsProvider, " + S3A + "SimpleAWSCredentialsProvider"}, GIVEN),
    ({CHAIN: S3A + "SimpleAWSCredentialsProvider"}, {"session": ()}),
    ({CHAIN: S3A + "AnonymousAWSCredentialsProvider"}, {"anon": True}),
    ({CHAIN: S3A + "SimpleAWSCredentialsProvider\n " + AWS2 + "AnonymousCredentialsProvider"}, {"anon": True}),
    ({CHAIN: f"{S3A}AnonymousAWSCredentialsProvider,{AWS1}EnvironmentVariableCredentialsProvider"}, {"anon": True}),
    ({CHAIN: AWS1 + "DefaultAWSCredentialsProviderChain"}, {}),
    ({**PAIR, CHAIN: AWS2 + "DefaultCredentialsProvider"}, {}),
    ({**PAIR, CHAIN: f"{AWS1}EnvironmentVariableCredentialsProvider,{S3A}SimpleAWSCredentialsProvider,{S3A}auth.IAMInstanceCredentialsProvider"},
     {"session": ("env", Keys("AK", "SK"))}),
    ({CHAIN: f"{AWS1}WebIdentityTokenCredentialsProvider,{AWS1}InstanceProfileCredentialsProvider"},
     {"session": ("assume-role-with-web-identity", "iam-role")}),
    ({CHAIN: AWS2 + "ContainerCredentialsProvider"}, {"session": ("container-role",)}),
    ({CHAIN: AWS2 + "ProfileCredentialsProvider"}, {"session": ("shared-credentials-file", "config-file")}),
    ({**PAIR, CHAIN: S3A + "auth.AssumedRoleCredentialProvider", "fs.s3a.assumed.role.arn": "arn:r", "fs.s3a.assumed.role.session.duration": "1h",
      "fs.s3a.assumed.role.sts.endpoint": "sts.eu-west-1.amazonaws.com", "fs.s3a.assumed.role.sts.endpoint.region": "eu-west-1"},
     {"session": (Role("arn:r", (Keys("AK", "SK"),), "https://sts.eu-west-1.amazonaws.com", "eu-west-1", 3600,
                       (("RoleSessionName", "metastore"),)),)}),
    ({**PAIR, "fs.s3a.bucket.lake.access.key": "BK", "fs.s3a.bucket.lake.secret.key": "BS"}, {"key": "BK", "secret": "BS"}),
], ids=str)
def test_who_asks_it(keys, options):
    assert s3.options(keys, "lake") == options


@pytest.mark.parametrize(("keys", "said"), [
    ({CHAIN: "com.acme.VaultProvider"}, "fs.s3a.aws.credentials.provider names com.acme.VaultProvider, which has no equivalent here: expected one of Anon"),
    ({CHAIN: f"{AWS1}EnvironmentVariableCredentialsProvider,{S3A}AnonymousAWSCredentialsProvider"}, "name one of them alone"),
    ({CHAIN: S3A + "auth.AssumedRoleCredentialProvider"}, "fs.s3a.assumed.role.arn is not set"),
    ({"fs.s3a.encryption.algorithm": "SSE-C"}, "fs.s3a.encryption.algorithm = 'SSE-C' cannot be honoured, and is not ignored: expected AES256"),
    ({"fs.s3a.bucket.other.encryption.algorithm": "CSE-KMS"}, "'CSE-KMS' cannot be honoured"),
    ({"fs.s3a.bucket.my.dotted.bucket.encryption.algorithm": "CSE-KMS"}, "'CSE-KMS' cannot be honoured"),
    ({"fs.s3a.delegation.token.binding": "x.Y"}, "fs.s3a.delegation.token.binding cannot be honoured"),
    ({"fs.s3a.signing-algorithm": "S3SignerType"}, "signature version 4"),
    ({"fs.gs.auth.type": "USER_CREDENTIALS"}, "fs.gs.auth.type = 'USER_CREDENTIALS' has no equivalent here: expected one of APPLICATION_DEFAULT"),
    ({"fs.gs.auth.access.token.provider": "x.Y"}, "fs.gs.auth.access.token.provider cannot be honoured"),
    ({"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE"}, "fs.gs.auth.service.account.json.keyfile is not set"),
    ({"fs.azure.account.auth.type": "Custom"}, "fs.azure.account.auth.type = 'Custom' has no equivalent"),
    ({"fs.azure.account.keyprovider.a.dfs.core.windows.net": "org.apache.hadoop.fs.azure.ShellDecryptionKeyProvider"}, "expected SimpleKeyProvider"),
    ({"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth.provider.type": "x.UserPasswordTokenProvider"}, "names UserPasswordTokenProvider"),
], ids=str)
def test_what_has_no_equivalent_stops_the_start(keys, said):
    with pytest.raises(InvalidInputError) as refused:
        build([SettingsSource("core-site.xml", keys, foreign=True)])
    assert said in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(("keys", "options"), [
    ({}, {}),
    ({"fs.gs.project.id": "p", "google.cloud.auth.service.account.enable": "true", "google.cloud.auth.service.account.json.keyfile": "/k.json"},
     {"project": "p", "token": "/k.json"}),
    ({"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": "/k.json"}, {"token": "/k.json"}),
    ({"fs.gs.auth.type": "COMPUTE_ENGINE"}, {"token": "cloud"}), ({"fs.gs.auth.type": "UNAUTHENTICATED"}, {"token": "anon"}),
    ({"fs.gs.auth.service.account.enable": "false", "fs.gs.auth.null.enable": "true"}, {"token": "anon"}),
    ({"fs.gs.storage.root.url": "http://fake:4443/", "fs.gs.requester.pays.mode": "AUTO", "fs.gs.requester.pays.project.id": "q"},
     {"endpoint_url": "http://fake:4443", "requester_pays": "q"}),
    ({"fs.gs.auth.service.account.email": "e", "fs.gs.auth.service.account.private.key.id": "i", "fs.gs.auth.service.account.private.key": "a\\nb"},
     {"token": {"type": "service_account", "client_email": "e", "private_key_id": "i", "private_key": "a\nb",
                "token_uri": "https://oauth2.googleapis.com/token"}}),
], ids=str)
def test_google(keys, options):
    assert google.options(keys, "lake") == options


ACCOUNT = "acme.dfs.core.windows.net"
OAUTH = {"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth2.client.id": "c"}


@pytest.mark.parametrize(("keys", "options"), [
    ({}, {}),
    ({f"fs.azure.account.key.{ACCOUNT}": "K"}, {"account_key": "K"}),
    ({"fs.azure.account.key.acme.blob.core.windows.net": "K"}, {"account_key": "K"}),
    ({"fs.azure.account.key.other.dfs.core.windows.net": "K"}, {}),
    ({"fs.azure.sas.lake.acme.blob.core.windows.net": "sv=1"}, {"sas_token": "sv=1"}),
    ({f"fs.azure.account.auth.type.{ACCOUNT}": "SAS", f"fs.azure.sas.fixed.token.{ACCOUNT}": "sv=2"}, {"sas_token": "sv=2"}),
    ({**OAUTH, "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
      "fs.azure.account.oauth2.client.secret": "s", "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/t-1/oauth2/token"},
     {"tenant_id": "t-1", "client_id": "c", "client_secret": "s"}),
    ({**OAUTH, "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"},
     {"credential": ("ManagedIdentityCredential", (("client_id", "c"),))}),
    ({**OAUTH, "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.WorkloadIdentityTokenProvider",
      "fs.azure.account.oauth2.msi.tenant": "t", "fs.azure.account.oauth2.token.file": "/t"},
     {"credential": ("WorkloadIdentityCredential", (("client_id", "c"), ("tenant_id", "t"), ("token_file_path", "/t")))}),
], ids=str)
def test_azure(keys, options):
    assert azure.options(keys, f"lake@{ACCOUNT}") == options


def test_each_location_has_its_stores_options():
    stores = ObjectStores({"fs.s3a.endpoint": "http://m:1", f"fs.azure.account.key.{ACCOUNT}": "K", "fs.gs.project.id": "p"})
    assert stores.options("s3://lake/x") == stores.options("s3a://lake") == {"client_kwargs": {"endpoint_url": "http://m:1"}}
    assert stores.options(f"abfss://lake@{ACCOUNT}/x") == {"account_key": "K"}
    assert stores.options("gs://lake/x") == {"project": "p"}
    assert stores.options("hdfs://nn:8020/x") == stores.options("/x") == {}


def test_a_key_is_a_setting_in_every_source_and_no_secret_is_shown():
    secrets = {**PAIR, "fs.s3a.session.token": "hush", "fs.s3a.bucket.b.secret.key": "hush", f"fs.azure.account.key.{ACCOUNT}": "hush",
               "fs.azure.sas.lake.acme.blob.core.windows.net": "hush", "fs.azure.sas.fixed.token": "hush", "fs.s3a.proxy.password": "hush",
               "fs.azure.account.oauth2.client.secret": "hush", "fs.gs.auth.service.account.private.key": "hush", "fs.s3a.encryption.key": "hush"}
    settings = build([SettingsSource("--set", {**secrets, "fs.s3a.endpoint": "http://m:1", "fs.s3a.bucket.a.b.connection.maximum": "9"})])

    shown = {row.key: row for row in settings.shown()}
    for name in secrets:
        assert is_secret(name), name
        assert (shown[name].value, shown[name].source) == (MASK, "--set")
        with pytest.raises(ConfigValueSecurityError):
            settings.lookup(name)
    assert (shown["fs.s3a.endpoint"].value, shown["fs.s3a.endpoint"].effect) == ("http://m:1", "")
    assert shown["fs.s3a.bucket.a.b.connection.maximum"].effect.startswith("only in compaction jobs")
    assert settings.lookup("fs.s3a.endpoint") == "http://m:1"
    assert "hush" not in repr(settings.stores) + repr(Keys("AK", "hush", "hush"))


def test_jobs_get_what_was_read_from_credential_files_and_not_the_files():
    keys = {**PAIR, "fs.s3a.security.credential.provider.path": "x", "hadoop.security.credential.provider.path": "y"}
    assert ObjectStores(keys).of_jobs() == PAIR
    assert all(map(object_stores.is_key, keys))


@pytest.mark.parametrize(("location", "placed"), [("/user/hive/warehouse", "s3a://lake/user/hive/warehouse"), ("hdfs://n/w", "hdfs://n/w"), ("", "")])
def test_directories_without_a_scheme_are_on_hadoops_default_file_system(location, placed):
    for key in ("fs.defaultFS", "fs.default.name"):
        settings = build([SettingsSource("core-site.xml", {key: "s3a://lake/"}, foreign=True),
                          SettingsSource("hive-site.xml", {"hive.metastore.warehouse.dir": location, "metastore.warehouse.roots": location}, foreign=True)])
        assert settings.catalog.warehouse == placed
        assert settings.catalog.more_roots == ((placed,) if placed else ())
    local = build([SettingsSource("a", {"fs.defaultFS": "file:///", "hive.metastore.warehouse.dir": location or "/w"}, foreign=True)])
    assert local.catalog.warehouse in {"file:/user/hive/warehouse", "hdfs://n/w", "file:/w"}
