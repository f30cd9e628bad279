"""What Spark and the formats' own readers are told of the place of a warehouse."""

from __future__ import annotations

import os
import pickle
import pwd
import stat
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.core.credentials import AzureSasCredential
from azure.core.pipeline.transport import HttpTransport, RequestsTransportResponse
from azure.storage.blob import BlobServiceClient, ExponentialRetry
from pyarrow import fs
from pyiceberg.io import load_file_io

from replicators.connectors.params import InvalidParams, parse
from replicators.connectors.storage import Storage, looked
from replicators.connectors.target import SnapshotPlace
from replicators.targets.lakehouse import catalog, conf
from replicators.targets.lakehouse.errors import translate
from replicators.targets.lakehouse.params import LakehouseParams, places
from replicators.targets.lakehouse.stores import Store, adls, blocks, hdfs_files, one_name
from replicators.targets.lakehouse.stores.adls import Adls
from replicators.targets.lakehouse.stores.azure_files import AzureFiles
from replicators.targets.lakehouse.stores.gcs import Gcs
from replicators.targets.lakehouse.stores.hdfs import Hdfs
from replicators.targets.lakehouse.stores.renewed import Renewed
from tests.google_tokens import Tokens, google_tokens, key

DELTA = {"format": "delta"}
GOOGLE = {"warehouse": "gs://bucket/lake", "catalog_uri": "sqlite:////c.db"}
ENDPOINT = "http://127.0.0.1:4443"
HOST = "account.dfs.core.windows.net"
AZURE = {"warehouse": f"abfss://lake@{HOST}/w", "catalog_uri": "sqlite:////c.db"}
HADOOP = {"warehouse": "hdfs://namenode:8020/lake", "catalog_uri": "sqlite:////c.db"}
WEB = {"hdfs_web": "http://namenode:9870"}
ACCOUNT_KEY = "c2VjcmV0LXdvcmQ="
SAS = "sv=2024-11-04&sp=racwdl&sig=c2VjcmV0LXdvcmQ%3D"
AUTH = f"spark.hadoop.fs.azure.account.auth.type.{HOST}"
OAUTH = "spark.hadoop.fs.azure.account.oauth"
KEY = key()


def params(**values: str) -> LakehouseParams:
    found: LakehouseParams = parse(LakehouseParams, values)
    return found


def secrets_in(settings: dict[str, str]) -> bool:
    return any("PRIVATE KEY" in value for value in settings.values())


def test_a_warehouse_has_one_name_for_all_readers() -> None:
    assert one_name("s3a://b/w") == one_name("s3n://b/w") == "s3://b/w"
    assert one_name("gcs://b/w") == "gs://b/w"
    assert one_name("/data/gs") == "/data/gs"
    assert (
        params(**{**GOOGLE, "warehouse": "gcs://bucket/lake/"}).warehouse_url == "gs://bucket/lake"
    )


def test_a_folder_needs_nothing() -> None:
    store = params(warehouse="/data/lake", **DELTA).store
    assert store == Store()
    assert not (store.jars or store.spark_conf() or store.iceberg_properties())
    assert not (store.delta_options() or store.driver_environment() or store.is_tried)


OF_S3 = {"warehouse": "s3a://bucket/lake", "catalog_uri": "sqlite:////c.db"}
OF_KEYS = {"s3_access_key": "AKIA", "s3_secret_key": "the-s3cret"}
S3_CATALOGS = {
    "jdbc": {},
    "rest": {"catalog": "rest", "catalog_uri": "https://catalog.example"},
    "glue": {"catalog": "glue", "catalog_uri": "", "catalog_region": "eu-west-1"},
    "hive": {"catalog": "hive", "catalog_uri": "thrift://metastore:9083"},
}


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment says nothing of S3."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)


def of_catalog(given: LakehouseParams) -> dict[str, str]:
    """The settings of Spark's catalog."""
    prefix = f"spark.sql.catalog.{given.catalog_name}."
    found = conf.spark_conf(given).items()
    return {k.removeprefix(prefix): v for k, v in found if k.startswith(prefix)}


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("kind", S3_CATALOGS)
def test_iceberg_reaches_a_bucket_itself_in_every_catalog(kind: str, tmp_path: Path) -> None:
    """Guards the settings of `S3FileIO`, with the keys in a file that they only name."""
    more = {"s3_endpoint": "http://minio:9000", "s3_region": "eu-central-1"}
    given = params(**{**OF_S3, **OF_KEYS, **more, **S3_CATALOGS[kind]})
    found = of_catalog(given)
    assert found["io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert found["s3.endpoint"] == "http://minio:9000"
    assert found["s3.path-style-access"] == "true"
    assert found["client.region"] == ("eu-west-1" if kind == "glue" else "eu-central-1")
    assert found["client.credentials-provider"].endswith(".ProfileCredentialsProvider")
    assert not any("s3cret" in value or "AKIA" in value for value in found.values())
    written = Path(conf.driver_properties(given, str(tmp_path))["aws.sharedCredentialsFile"])
    assert "the-s3cret" in written.read_text()
    assert "kms-2" in conf.jars(given)
    assert conf.spark_conf(given)["spark.hadoop.fs.s3.impl"], "add_files lists by Hadoop"


@pytest.mark.usefixtures("nowhere")
def test_what_no_field_says_of_a_bucket_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards that the identity is always named: a catalog may send keys that nobody asked for. And
    a region that is not known, which Amazon says."""
    found = of_catalog(params(**OF_S3))
    assert found["client.credentials-provider"].endswith(".DefaultCredentialsProvider")
    assert found["client.region"] and found["s3.cross-region-access-enabled"] == "true"
    assert not found.keys() & {"s3.endpoint", "s3.path-style-access"}
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://moto:5000")
    found = of_catalog(params(**OF_S3))
    assert (found["client.region"], found["s3.endpoint"]) == ("eu-north-1", "http://moto:5000")
    assert "s3.cross-region-access-enabled" not in found


@pytest.mark.parametrize(
    "more", [GOOGLE, {**OF_S3, **DELTA, "catalog_uri": ""}, {**OF_S3, "warehouse": "/w"}]
)
def test_other_stores_and_delta_go_through_hadoop(more: dict[str, str]) -> None:
    assert not any("S3FileIO" in value for value in conf.spark_conf(params(**more)).values())
    assert "kms-2" not in conf.jars(params(**more))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("NoSuchBucketException: The specified bucket does not exist (Service: S3, Status Code: "
         "404, Request ID: x)", "unreachable"),
        ("S3Exception: null (Service: S3, Status Code: 403, Request ID: x)", "not-writable"),
        ("S3Exception: The request signature we calculated does not match (Service: S3, Status "
         "Code: 403, Request ID: x)", "not-writable"),
        ("ForbiddenException: x\nCaused by: S3Exception: y (Service: S3, Status Code: 403)",
         "not-writable"),
        ("SdkClientException: Unable to load credentials from any of them", "not-writable"),
        ("S3Exception: Slow down (Service: S3, Status Code: 503, Request ID: x)", "unreachable"),
        ("SdkClientException: Unable to execute HTTP request: Read timed out", "unreachable"),
        ("CommitFailedException: Metadata location has changed", "conflict"),
        ("When reading information for key 'k' in bucket 'b': AWS Error UNKNOWN (HTTP status 403) "
         "during HeadObject operation: No response body.", "not-writable"),
        ("AWS Error ACCESS_DENIED during GetObject operation: Access Denied", "not-writable"),
        ("AWS Error INVALID_ACCESS_KEY_ID during HeadObject operation", "not-writable"),
        ("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7", "unreachable"),
        ("[Errno 2] Path does not exist 'b/k'", "unreachable"),
    ],
)  # fmt: skip
def test_what_the_sdk_says_within_iceberg_has_a_code(said: str, code: str) -> None:
    """Guards a run's errors: some of these texts mean the catalog's server elsewhere."""
    found = translate(RuntimeError(said), None, params(**OF_S3).store)
    assert found.code == f"target:{code}"


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("values", "is_read"),
    [
        ({**OF_S3, "s3_region": "eu-west-1"}, True),
        ({**OF_S3, "s3_endpoint": "http://minio:9000"}, True),
        (OF_S3, False),
        ({**OF_S3, "s3_region": "eu-west-1", "catalog": "glue", "catalog_uri": ""}, False),
        (GOOGLE, False),
    ],
)
def test_a_tables_state_is_read_without_spark_where_its_bucket_is_known(
    values: dict[str, str], is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the token that each merge looks for: three statements of Spark take longer than small
    merges. pyiceberg does not look for a bucket's region."""
    monkeypatch.setattr(catalog, "has_tables", lambda _: True)
    reader = catalog.Reader(params(**values)).opened()
    assert (reader is not None) == is_read
    if reader is not None:
        reader.close()


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({**GOOGLE, "gcs_key": "secret"}, "gcs_key"),
        ({**GOOGLE, **DELTA}, "format"),
        ({**GOOGLE, "gcs_key": key("https://evil.example/token")}, "gcs_key"),
        ({**GOOGLE, "gcs_key": KEY, "gcs_endpoint": ENDPOINT}, "gcs_key"),
        ({**GOOGLE, "gcs_endpoint": "storage.example"}, "gcs_endpoint"),
        ({**GOOGLE, "gcs_endpoint": "https://me@storage.example"}, "gcs_endpoint"),
        ({**GOOGLE, "s3_region": "eu-central-1"}, "s3_region"),
        ({"warehouse": "s3://bucket/lake", **DELTA, "gcs_key": KEY}, "gcs_key"),
        ({"warehouse": "/data/lake", **DELTA, "gcs_endpoint": ENDPOINT}, "gcs_endpoint"),
    ],
)
def test_a_fault_in_the_fields_of_a_bucket_of_google_is_named(
    values: dict[str, str], faulty: str
) -> None:
    """Guards the fields: a key is sent only to Google, and none is ignored in silence."""
    with pytest.raises(InvalidParams) as caught:
        params(**values)
    assert list(caught.value.errors) == [faulty]


def test_sparks_settings_for_google_have_no_key(tmp_path: Path) -> None:
    """Guards the way of the key: a private file, which a Java property names and a setting refers
    to. Spark shows settings on its pages."""
    given = params(**GOOGLE, gcs_key=KEY)
    settings = conf.spark_conf(given)
    assert settings["spark.hadoop.fs.gs.auth.type"] == "SERVICE_ACCOUNT_JSON_KEYFILE"
    assert settings["spark.hadoop.parquet.hadoop.vectored.io.enabled"] == "false"
    named = settings["spark.hadoop.fs.gs.auth.service.account.json.keyfile"]
    properties = conf.driver_properties(given, str(tmp_path))
    ((name, path),) = properties.items()
    assert named == f"${{{name}}}"
    assert Path(path).read_text() == KEY
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert not secrets_in(settings) and not secrets_in(properties)
    assert "PRIVATE" not in repr(given) and "PRIVATE" not in repr(given.store)
    assert "gcs-connector-3" in conf.jars(given)
    assert "gcs-connector-3" not in conf.jars(params(warehouse="s3://bucket/lake", **DELTA))


def test_without_a_key_the_machine_signs_in_and_at_an_emulator_nobody(tmp_path: Path) -> None:
    auth = "spark.hadoop.fs.gs.auth.type"
    own = params(**GOOGLE)
    assert conf.spark_conf(own)[auth] == "APPLICATION_DEFAULT"
    private = params(**GOOGLE, gcs_endpoint="https://storage-x.p.googleapis.com")
    assert conf.spark_conf(private)[auth] == "APPLICATION_DEFAULT"
    emulated = params(**GOOGLE, gcs_endpoint=ENDPOINT)
    assert conf.spark_conf(emulated)[auth] == "UNAUTHENTICATED"
    assert conf.spark_conf(emulated)["spark.hadoop.fs.gs.storage.root.url"] == f"{ENDPOINT}/"
    assert conf.driver_properties(emulated, str(tmp_path)) == {}
    assert [(p.value, p.port) for p in places(emulated)][0] == ("127.0.0.1", 4443)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Status(UNAVAILABLE: Could not create a OAuth2 access token to authenticate", "gcs-key"),
        ("Status(UNAUTHENTICATED: Permanent error", "gcs-key"),
        ("Status(PERMISSION_DENIED: Permanent error", "gcs-rights"),
        ("FileNotFoundError: NO_SUCH_BUCKET", "bucket-missing"),
        ("Status(UNAVAILABLE: Retry policy exhausted: Connection refused", "unreachable"),
    ],
)
def test_an_answer_of_google_has_a_code(said: str, code: str) -> None:
    assert Gcs().code(said) == f"target:{code}"


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({**AZURE, "warehouse": "abfss://lake/w"}, "warehouse"),
        ({**AZURE, "warehouse": "abfss://lake@account.blob.core.windows.net/w"}, "warehouse"),
        ({**AZURE, "warehouse": "abfs://l@account.dfs.core.windows.net/w"}, "warehouse"),
        ({**AZURE, **DELTA}, "format"),
        ({**AZURE, "adls_key": "no key"}, "adls_key"),
        ({**AZURE, "adls_sas": "no token"}, "adls_sas"),
        ({**AZURE, "adls_sas": SAS, "adls_key": ACCOUNT_KEY}, "adls_sas"),
        ({**AZURE, "adls_endpoint": "https://account.example"}, "adls_endpoint"),
        ({**AZURE, "gcs_key": KEY}, "gcs_key"),
        ({**GOOGLE, "adls_key": ACCOUNT_KEY}, "adls_key"),
    ],
)
def test_a_fault_in_the_fields_of_a_container_of_azure_is_named(
    values: dict[str, str], faulty: str
) -> None:
    with pytest.raises(InvalidParams) as caught:
        params(**values)
    assert list(caught.value.errors) == [faulty]


def test_sparks_settings_for_azure_have_no_key(tmp_path: Path) -> None:
    """Guards the way of the key: a variable of the JVM's environment, which a setting refers to."""
    given = params(**{**AZURE, "warehouse": f"abfs://lake@{HOST}/w"}, adls_key=ACCOUNT_KEY)
    assert given.warehouse_url == f"abfss://lake@{HOST}/w"
    settings = conf.spark_conf(given)
    assert settings[AUTH] == "SharedKey"
    ((name, secret),) = conf.driver_environment(given).items()
    assert secret == ACCOUNT_KEY
    assert settings[f"spark.hadoop.fs.azure.account.key.{HOST}"] == f"${{env.{name}}}"
    assert settings["spark.hadoop.fs.abfss.impl"].endswith(".SecureAzureBlobFileSystem")
    assert not any(ACCOUNT_KEY in value for value in settings.values())
    assert conf.driver_properties(given, str(tmp_path)) == {}
    assert ACCOUNT_KEY not in repr(given) and ACCOUNT_KEY not in repr(given.store)
    assert "hadoop-azure-3" in conf.jars(given)
    assert "hadoop-azure-3" not in conf.jars(params(**GOOGLE))
    assert [p.value for p in places(given)] == [HOST, "/c.db"]


def test_a_sas_token_signs_in_in_place_of_the_key() -> None:
    """Guards the token's way. Azure shows it with a question mark before it."""
    given = params(**AZURE, adls_sas=f"?{SAS}")
    settings = conf.spark_conf(given)
    assert given.adls_sas == SAS
    assert settings[AUTH] == "SAS"
    ((name, secret),) = conf.driver_environment(given).items()
    assert secret == SAS
    assert settings[f"spark.hadoop.fs.azure.sas.fixed.token.{HOST}"] == f"${{env.{name}}}"
    assert not any("sig=" in text for text in (*settings.values(), repr(given), repr(given.store)))


@pytest.mark.parametrize(
    ("around", "provider", "more"),
    [
        ({}, "MsiTokenProvider", {}),
        ({"AZURE_CLIENT_ID": "me"}, "MsiTokenProvider", {"2.client.id": "me"}),
        (
            {"AZURE_CLIENT_ID": "me", "AZURE_TENANT_ID": "t", "AZURE_CLIENT_SECRET": "word"},
            "ClientCredsTokenProvider",
            {
                "2.client.id": "me",
                "2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/v2.0/token",
                "2.client.secret": "${env.AZURE_CLIENT_SECRET}",
            },
        ),
        (
            {
                "AZURE_CLIENT_ID": "me",
                "AZURE_TENANT_ID": "t",
                "AZURE_CLIENT_SECRET": "word",
                "AZURE_AUTHORITY_HOST": "login.example/",
            },
            "ClientCredsTokenProvider",
            {
                "2.client.id": "me",
                "2.client.endpoint": "https://login.example/t/oauth2/v2.0/token",
                "2.client.secret": "${env.AZURE_CLIENT_SECRET}",
            },
        ),
        (
            {"AZURE_CLIENT_ID": "me", "AZURE_TENANT_ID": "t", "AZURE_FEDERATED_TOKEN_FILE": "/f"},
            "WorkloadIdentityTokenProvider",
            {"2.client.id": "me", "2.msi.tenant": "t", "2.token.file": "/f"},
        ),
    ],
)
def test_without_a_key_the_identity_of_the_environment_signs_in_to_azure(
    monkeypatch: pytest.MonkeyPatch, around: dict[str, str], provider: str, more: dict[str, str]
) -> None:
    """Guards the settings of Spark. Azure's own libraries read the environment by themselves."""
    for name in ("CLIENT_ID", "TENANT_ID", "CLIENT_SECRET", "FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)
    for name, value in around.items():
        monkeypatch.setenv(name, value)
    settings = conf.spark_conf(params(**AZURE))
    assert settings[AUTH] == "OAuth"
    found = {n.removeprefix(OAUTH): v for n, v in settings.items() if n.startswith(OAUTH)}
    assert found.pop(".provider.type").endswith(f".{provider}")
    assert found == more


@pytest.mark.parametrize(
    ("around", "asked"),
    [
        ({}, ["ManagedIdentityCredential"]),
        ({"AZURE_CLIENT_CERTIFICATE_PATH": "/c"}, ["ManagedIdentityCredential"]),
        ({"AZURE_USERNAME": "u", "AZURE_PASSWORD": "p"}, ["ManagedIdentityCredential"]),
        ({"AZURE_CLIENT_SECRET": "word"}, ["EnvironmentCredential"]),
        ({"AZURE_FEDERATED_TOKEN_FILE": "/f"}, ["WorkloadIdentityCredential"]),
    ],
)
def test_this_program_signs_in_to_azure_only_as_spark_can(
    monkeypatch: pytest.MonkeyPatch, around: dict[str, str], asked: list[str]
) -> None:
    """Guards the preflight: an identity that Spark can't have must not make it green."""
    from azure.identity import DefaultAzureCredential

    for name in [n for n in os.environ if n.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    for name, value in {"AZURE_CLIENT_ID": "me", "AZURE_TENANT_ID": "t", **around}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(DefaultAzureCredential, "get_token", lambda *_, **__: None)
    assert [type(c).__name__ for c in adls._machine().credentials] == asked


class _Answers(HttpTransport[Any, Any]):
    """A server of Azure that gives these answers: a status and Azure's code."""

    def __init__(self, *answers: tuple[int, str]) -> None:
        self.answers = list(answers)

    def send(self, request: Any, **_: Any) -> Any:
        status, code = self.answers.pop(0)
        answer = requests.Response()
        answer.status_code, answer._content = status, b""
        answer.headers["x-ms-error-code"] = code
        return RequestsTransportResponse(request, answer)

    def open(self) -> None: ...
    def close(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_a_delete_in_azure_whose_answer_was_lost_is_done() -> None:
    """Guards loads: the client asks again, and hears that there is no such file."""

    def deleted(*answers: tuple[int, str]) -> None:
        server = _Answers(*answers)
        made = BlobServiceClient(
            "https://account.blob.core.windows.net",
            credential=AzureSasCredential(SAS),
            transport=server,
            retry_policy=ExponentialRetry(0, 0, random_jitter_range=0),
        )
        fs.PyFileSystem(AzureFiles(lambda: made)).delete_file("lake/f")
        assert not server.answers

    deleted((503, "ServerBusy"), (404, "BlobNotFound"))
    with pytest.raises(FileNotFoundError, match="ContainerNotFound"):
        deleted((404, "ContainerNotFound"))
    with pytest.raises(OSError, match="AuthorizationFailure"):
        deleted((403, "AuthorizationFailure"))


def test_an_emulator_of_azure_is_asked_without_encryption() -> None:
    """Guards what Azurite needs: it has the services of blobs alone."""
    given = params(**AZURE, adls_endpoint="http://127.0.0.1:10000", adls_key=ACCOUNT_KEY)
    settings = conf.spark_conf(given)
    assert settings["spark.hadoop.fs.azure.abfs.endpoint"] == "127.0.0.1:10000"
    assert settings["spark.hadoop.fs.azure.fns.account.service.type"] == "BLOB"
    assert settings["spark.hadoop.fs.abfss.impl"].endswith("azurebfs.AzureBlobFileSystem")
    assert given.store.blobs == "http://127.0.0.1:10000/account"
    assert params(**AZURE).store.blobs == "https://account.blob.core.windows.net"
    assert [(p.value, p.port) for p in places(given)][:2] == [
        (HOST, 0),
        ("127.0.0.1", 10000),
    ]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("[AuthenticationFailed] status=403", "adls-key"),
        ("ClientAuthenticationError: DefaultAzureCredential failed", "adls-key"),
        ("[AuthorizationPermissionMismatch] status=403", "adls-rights"),
        ("[ContainerNotFound] status=404", "bucket-missing"),
        ("ServiceRequestError: Failed to establish a new connection", "unreachable"),
    ],
)
def test_an_answer_of_azure_has_a_code(said: str, code: str) -> None:
    assert Adls(HOST).code(said) == f"target:{code}"


@pytest.mark.parametrize(
    ("values", "faulty"),
    [
        ({"hdfs_user": "me"}, "hdfs_user"),
        ({**WEB, "hdfs_user": "me&op=DELETE"}, "hdfs_user"),
        ({**WEB, "warehouse": "hdfs:///lake"}, "warehouse"),
        ({"hdfs_web": "namenode:9870"}, "hdfs_web"),
        ({**WEB, "warehouse": "/data"}, "hdfs_web"),
    ],
)
def test_a_fault_in_the_fields_of_hdfs_is_named(values: dict[str, str], faulty: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        params(**{**HADOOP, **values})
    assert list(caught.value.errors) == [faulty]


def test_spark_gets_the_user_of_hdfs_by_its_environment() -> None:
    """Guards who owns the files: Hadoop's client reads the user from there."""
    given = params(**HADOOP, **WEB, hdfs_user="lakes")
    assert conf.driver_environment(given) == {"HADOOP_USER_NAME": "lakes"}
    assert not (given.store.jars or given.store.spark_conf())
    assert [(p.value, p.port) for p in places(given)][:2] == [("namenode", 0), ("namenode", 9870)]
    assert conf.driver_environment(params(**HADOOP, **WEB)) == {}
    assert params(**HADOOP).store == Store()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("[AccessControlException] status=403", "hdfs-rights"),
        ("[HTTP] status=401", "hdfs-login"),
        ("[HTTP] status=404", "hdfs-unknown"),
        ("no WebHDFS answers", "hdfs-unknown"),
        ("[StandbyException] status=403", "unreachable"),
    ],
)
def test_an_answer_of_hdfs_has_a_code(said: str, code: str) -> None:
    assert Hdfs().code(said) == f"target:{code}"


def test_without_a_user_webhdfs_has_the_one_that_sparks_client_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards the owner of the files: this program's and Spark's must be one. In a container the
    process may have no name."""

    def taken(user: str = "") -> str:
        return hdfs_files.WebHdfs("http://namenode:9870", user)._user["user.name"]

    monkeypatch.setenv("LOGNAME", "somebody")
    monkeypatch.setenv("HADOOP_USER_NAME", "lakes")
    assert (taken("entered"), taken()) == ("entered", "lakes")
    monkeypatch.delenv("HADOOP_USER_NAME")
    assert taken() == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    found = looked(Hdfs("http://127.0.0.1:9"), "hdfs://cluster/lake")
    assert found is not None and found.code == "target:hdfs-user"


def test_an_error_of_webhdfs_has_no_path() -> None:
    """Guards logs and messages: an error of `requests` has the whole address."""
    web = hdfs_files.WebHdfs("http://127.0.0.1:9", "lakes")
    web._session = requests.Session()  # does not try again
    with pytest.raises(OSError, match="ConnectionError") as caught:
        web.ask("GET", "LISTSTATUS", "/".join(("", "lake", "people")))
    text = "".join(traceback.format_exception(caught.value))
    assert "lake/people" not in text and "user.name=" not in text
    assert Hdfs().code(str(caught.value)) == "target:unreachable"


def test_a_folder_of_hdfs_that_vanishes_while_it_is_listed_is_left_out() -> None:
    """Guards lists: what lies beside a folder that somebody removes is still there."""
    listed = {"/lake": ("gone", "kept"), "/lake/kept": ()}

    class Web(hdfs_files.WebHdfs):
        def ask(self, method: str, op: str, path: str, **values: Any) -> Any:
            if path not in listed:
                raise FileNotFoundError("[FileNotFoundException] status=404")
            found = [
                {"pathSuffix": name, "type": "DIRECTORY", "modificationTime": 0, "length": 0}
                for name in listed[path]
            ]
            return {"FileStatuses": {"FileStatus": found}}

    system = fs.PyFileSystem(hdfs_files.HdfsFiles(lambda: Web("http://h", "lakes")))
    for allowed in (True, False):
        asked = fs.FileSelector("c/lake", recursive=True, allow_not_found=allowed)
        assert [i.path for i in system.get_file_info(asked)] == ["c/lake/gone", "c/lake/kept"]
    missing = fs.FileSelector("c/no", recursive=True, allow_not_found=True)
    assert system.get_file_info(missing) == []
    with pytest.raises(FileNotFoundError):
        system.get_file_info(fs.FileSelector("c/no", recursive=True))


def test_what_a_datanode_refuses_does_not_become_a_files_bytes() -> None:
    """Guards reads and writes by ranges: a short answer, and an error in the midst of a file."""
    short = blocks.reader(lambda start, length: b"x" * (length - 1), 10)
    with pytest.raises(OSError, match="10 bytes were asked for, and 9 came"):
        short.read()
    sent: list[Any] = []

    def send(number: int, data: bytes) -> None:
        sent.append(number)
        raise OSError("refused")

    writer = blocks.Writer(send, sent.append)
    with pytest.raises(OSError, match="refused"):
        writer.write(b"x" * (9 << 20))
    writer.close()
    assert sent == [0], "a file that lacks a block is not ended"
    empty: list[int] = []
    blocks.Writer(send, empty.append).close()
    assert empty == [0]


def test_pyiceberg_reads_azure_by_the_stores_own_file_system() -> None:
    """Guards the path: pyiceberg itself takes the server's name for a part of the container's."""
    own = Adls(HOST, "http://127.0.0.1:10000", ACCOUNT_KEY).iceberg_properties()
    found: Any = load_file_io(own, f"abfss://lake@{HOST}/v1.json")
    assert isinstance(found.fs_by_scheme("abfss", f"lake@{HOST}"), fs.PyFileSystem)
    assert found.parse_location(f"abfss://lake@{HOST}/a/b")[2] == "lake/a/b"


def test_pyiceberg_reads_by_the_stores_own_file_system() -> None:
    """Guards the fields on their way through pyiceberg's properties."""
    found: Any = load_file_io(Gcs(ENDPOINT).iceberg_properties(), "gs://bucket/lake/v1.json")
    assert isinstance(found.fs_by_scheme("gs", "bucket"), fs.GcsFileSystem)
    signed: Any = load_file_io(Gcs("", KEY).iceberg_properties(), "gs://bucket/lake/v1.json")
    assert isinstance(signed.fs_by_scheme("gs", "bucket"), fs.PyFileSystem)
    assert signed.parse_location("gs://bucket/a/b") == ("gs", "bucket", "bucket/a/b")
    assert signed.parse_location("/data/a")[2] == "/data/a"


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    with google_tokens() as made:
        yield made


def test_a_key_that_google_does_not_know_is_told(tokens: Tokens) -> None:
    """Guards the code of a refused key. It is told at once, and the key is in no text."""
    tokens.answer = (400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
    store = Gcs("", key(tokens.url))
    found = looked(store, "gs://bucket/lake")
    assert found is not None
    assert found.code == "target:gcs-key"
    assert "PRIVATE" not in str(found)
    assert tokens.asked == 1


def test_a_token_is_asked_for_once_and_again_before_it_ends(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards copies that last longer than a token. Tasks take the file system along."""
    tokens.answer = (200, {"access_token": "t", "expires_in": 3600, "token_type": "Bearer"})
    store = Gcs(ENDPOINT, key(tokens.url))
    system = pickle.loads(pickle.dumps(store.system("gs://bucket/lake")))  # noqa: S301 - its own
    handler: Any = system.handler
    first = handler._now
    assert isinstance(first, fs.GcsFileSystem)
    assert handler._now is first and tokens.asked == 1
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3400)
    assert handler._now is not first and tokens.asked == 2


def test_all_that_a_target_does_passes_through_a_renewed_file_system(tmp_path: Path) -> None:
    """Guards the handler: what `Storage` asks for reaches the file system below it."""
    local = fs.LocalFileSystem()

    class Local(Store):
        def system(self, url: str) -> fs.FileSystem:
            return fs.PyFileSystem(Renewed(lambda: (local, time.time() + 3600)))

    (tmp_path / "lake").mkdir()
    storage = Storage(Local())
    url = f"gs://{tmp_path}/lake"
    storage.make_folder(f"{url}/a")
    (tmp_path / "lake/a/x").write_bytes(b"1")
    (tmp_path / "lake/a/y").write_bytes(b"2")
    storage.keep_only(f"{url}/a", {"x"})
    assert [p.name for p in (tmp_path / "lake/a").iterdir()] == ["x"]
    assert "a" in storage.folders(url) and storage.has_folder(f"{url}/a")
    storage.remove_folder(f"{url}/a")
    assert not storage.has_folder(f"{url}/a")


def test_a_path_of_a_portion_names_the_container_and_not_its_server() -> None:
    import pyarrow as pa

    place = SnapshotPlace("gs://b/f", pa.schema([]), system=fs.LocalFileSystem())
    assert place.opened("gs://b/f/1.parquet") == "b/f/1.parquet"
    assert place.opened("abfss://c@a.dfs.core.windows.net/f/1.parquet") == "c/f/1.parquet"
