"""What Spark and the formats' own readers need for a warehouse in Azure Data Lake Storage. Where
no key is entered, they use the identity that the environment or the machine has. Opens nothing
until it is asked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import urlsplit

from replicators.connectors import limits
from replicators.connectors.params import param
from replicators.connectors.stores import Codes, code_of, endpoint_fault
from replicators.targets.lakehouse.stores import python_io
from replicators.targets.lakehouse.stores.kind import Store

if TYPE_CHECKING:
    from azure.storage.blob import BlobServiceClient
    from pyarrow.fs import FileSystem

SCHEMES = ("abfss", "abfs")
FIELDS = ("adls_key", "adls_sas", "adls_endpoint")
JARS = ("hadoop-azure-3",)
"""Hadoop's file system of Azure. Spark has what it needs."""
SECRET = "REPLICATOR_STORE_SECRET"  # noqa: S105 - the name of a variable
"""The variable of the JVM's environment that has the key or the token."""
_BY_SECRET, _WORKLOAD, _MANAGED = "environment", "workload_identity", "managed_identity"
_PACKAGE = "org.apache.hadoop.fs.azurebfs"
_URL = re.compile(r"abfss?://[a-z0-9-]{3,63}@[a-z0-9]{3,24}\.dfs\.[a-z0-9.-]+(/.*)?")
_SECONDS = 20.0
"""How long a request that fails for no lasting reason is tried again."""
_SAS = re.compile(r"(?=.*\bsig=)[!-~]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_CODES: Codes = (
    (r"NO_?SUCH_?BUCKET|ContainerNotFound|FilesystemNotFound|specified container does not exist",
     "target:bucket-missing"),
    (r"AuthenticationFailed|failed to authenticate|InvalidAuthenticationInfo|NoAuthentication"
     r"|CredentialUnavailable|ClientAuthenticationError|AADSTS|status=401",
     "target:adls-key"),
    (r"Authorization\w+|InsufficientAccountPermissions|status=403", "target:adls-rights"),
)  # fmt: skip


class HasContainer(Protocol):
    """Params with the fields of a container."""

    @property
    def warehouse(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def adls_key(self) -> str: ...
    @property
    def adls_sas(self) -> str: ...
    @property
    def adls_endpoint(self) -> str: ...


def key(group: str) -> Any:
    """The field of the account's key."""
    return param(
        "Storage account key",
        group=group,
        help="Empty, also without a SAS token: the identity that the environment of web and "
        "workers names (AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_CLIENT_SECRET), or the machine's",
        default="",
        secret=True,
        note="for a container of Azure",
    )


def sas(group: str) -> Any:
    """The field of a token."""
    return param(
        "SAS token",
        group=group,
        help="In place of the account's key. It needs the rights to read, add, create, write, "
        "delete and list in the container. It is never renewed",
        default="",
        secret=True,
        note="for a container of Azure",
    )


def endpoint(group: str) -> Any:
    """The field of the service's address."""
    return param(
        "Azure endpoint",
        group=group,
        help="Only for an emulator such as Azurite: http://host:10000. Empty: the server that the "
        "warehouse names",
        default="",
        note="for a container of Azure",
        addresses=True,
        is_movable=True,
        secrets_go="enter it in Storage account key",
        check=endpoint_fault,
    )


def faults(params: HasContainer) -> dict[str, str]:
    """What is wrong with the fields together."""
    found = {}
    if not _URL.fullmatch(params.warehouse):
        found["warehouse"] = (
            "must look like abfss://container@account.dfs.core.windows.net/warehouse"
        )
    if params.format == "delta":
        found["format"] = "must be iceberg for a warehouse in abfss://"
    if params.adls_key and not _BASE64.fullmatch(params.adls_key):
        found["adls_key"] = "must be the account's key, as Azure shows it"
    if params.adls_sas and not _SAS.fullmatch(params.adls_sas):
        found["adls_sas"] = "must be a SAS token, which has sig="
    elif params.adls_sas and params.adls_key:
        found["adls_sas"] = "must be empty where a storage account key is entered"
    if params.adls_endpoint.startswith("https://"):
        found["adls_endpoint"] = "must begin with http://: only an emulator has one"
    return found


def of(params: HasContainer) -> Adls:
    """The container that the warehouse and the fields name."""
    return Adls(
        urlsplit(params.warehouse).hostname or "",
        params.adls_endpoint.rstrip("/"),
        params.adls_key,
        params.adls_sas,
    )


@dataclass(frozen=True, slots=True)
class Adls(Store):
    """A container of Azure, and what each reader is told of it."""

    is_tried: ClassVar[bool] = True
    jars: ClassVar[tuple[str, ...]] = JARS

    host: str = ""
    emulator: str = ""
    key: str = field(default="", repr=False)
    sas: str = field(default="", repr=False)

    @property
    def account(self) -> str:
        """The storage account's name."""
        return self.host.partition(".")[0]

    @property
    def blobs(self) -> str:
        """The address of the account's blobs. Clouds of some countries have other names."""
        own = f"{self.emulator}/{self.account}" if self.emulator else ""
        return own or f"https://{self._blob_host}"

    @property
    def _blob_host(self) -> str:
        return self.host.replace(".dfs.", ".blob.", 1)

    def system(self, url: str) -> FileSystem:  # noqa: ARG002 - an account has one
        """See `Store`."""
        from pyarrow.fs import PyFileSystem

        from replicators.targets.lakehouse.stores.azure_files import AzureFiles

        return PyFileSystem(AzureFiles(partial(_client, self)))

    def spark_conf(self) -> dict[str, str]:
        """See `Store`. The secret is a variable of the JVM's environment, which Hadoop puts in."""
        secure = "" if self.emulator else "Secure"
        found = {
            "fs.abfss.impl": f"{_PACKAGE}.{secure}AzureBlobFileSystem",
            **self._signed_in(),
        }
        if self.emulator:  # Azurite has the services of blobs alone
            found |= {
                "fs.azure.abfs.endpoint": urlsplit(self.emulator).netloc,
                "fs.azure.always.use.https": "false",
                "fs.azure.fns.account.service.type": "BLOB",
                "fs.azure.account.hns.enabled": "false",
            }
        return {f"spark.hadoop.{name}": value for name, value in found.items()}

    def _signed_in(self) -> dict[str, str]:
        auth, secret = f"fs.azure.account.auth.type.{self.host}", f"${{env.{SECRET}}}"
        if self.key:
            keys = {f"fs.azure.account.key.{h}": secret for h in (self.host, self._blob_host)}
            return {auth: "SharedKey", **keys}
        if self.sas:
            return {auth: "SAS", f"fs.azure.sas.fixed.token.{self.host}": secret}
        return {auth: "OAuth", **_identity(os.environ)}

    def driver_environment(self) -> dict[str, str]:
        """See `Store`."""
        secret = self.key or self.sas
        return {SECRET: secret} if secret else {}

    def iceberg_properties(self) -> dict[str, str]:
        """pyiceberg asks this store for the file system."""
        return python_io.properties("adls", asdict(self))

    def code(self, text: str) -> str:
        """See `Store`."""
        return code_of(text, _CODES)


def _client(store: Adls) -> BlobServiceClient:
    """Azure's client of the account's blobs."""
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
    from azure.storage.blob import BlobServiceClient, ExponentialRetry

    credential: Any
    if store.key:
        credential = AzureNamedKeyCredential(store.account, store.key)
    elif store.sas:
        credential = AzureSasCredential(store.sas)
    else:
        credential = _machine()
    seconds = limits.left(_SECONDS)
    return BlobServiceClient(
        store.blobs,
        credential=credential,
        retry_policy=ExponentialRetry(initial_backoff=1, retry_total=3, random_jitter_range=1),
        connection_timeout=seconds,
        read_timeout=seconds,
    )


def _machine() -> Any:
    """The identity that `_identity` names for Spark, and no other: a certificate, or what somebody
    signed in with by hand, would be known here and not there."""
    from azure.identity import DefaultAzureCredential

    kinds = (_BY_SECRET, _WORKLOAD, _MANAGED, "cli", "powershell", "developer_cli",
             "shared_token_cache", "visual_studio_code", "broker")  # fmt: skip
    kind = _kind(os.environ)
    found = DefaultAzureCredential(**{f"exclude_{k}_credential": k != kind for k in kinds})
    found.get_token("https://storage.azure.com/.default")  # the client would ask again and again
    return found


def _kind(around: Mapping[str, str]) -> str:
    """Which identity the environment names, as Azure's own library calls it."""
    if around.get("AZURE_CLIENT_ID") and around.get("AZURE_TENANT_ID"):
        if around.get("AZURE_CLIENT_SECRET"):
            return _BY_SECRET
        if around.get("AZURE_FEDERATED_TOKEN_FILE"):
            return _WORKLOAD
    return _MANAGED


def _identity(around: Mapping[str, str]) -> dict[str, str]:
    """The identity that the environment names, as Azure's own libraries read it; otherwise the
    machine's."""
    oauth, provider = "fs.azure.account.oauth2", "fs.azure.account.oauth.provider.type"
    tenant, client = around.get("AZURE_TENANT_ID", ""), around.get("AZURE_CLIENT_ID", "")
    authority = around.get("AZURE_AUTHORITY_HOST") or "login.microsoftonline.com"
    if "://" not in authority:
        authority = f"https://{authority}"
    kind = _kind(around)
    own = {f"{oauth}.client.id": client} if client else {}
    if kind == _BY_SECRET:
        return {
            provider: f"{_PACKAGE}.oauth2.ClientCredsTokenProvider",
            f"{oauth}.client.endpoint": f"{authority.rstrip('/')}/{tenant}/oauth2/v2.0/token",
            f"{oauth}.client.secret": "${env.AZURE_CLIENT_SECRET}",
            **own,
        }
    if kind == _WORKLOAD:
        return {
            provider: f"{_PACKAGE}.oauth2.WorkloadIdentityTokenProvider",
            f"{oauth}.msi.tenant": tenant,
            f"{oauth}.token.file": around["AZURE_FEDERATED_TOKEN_FILE"],
            **own,
        }
    return {provider: f"{_PACKAGE}.oauth2.MsiTokenProvider", **own}


def from_json(text: str) -> Adls:
    """The store that `iceberg_properties` wrote."""
    return Adls(**json.loads(text))
