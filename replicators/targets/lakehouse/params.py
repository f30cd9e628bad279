"""The settings of a lakehouse target. Parsing only; nothing is opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote

from replicators.connectors.addresses import Place, Url, host_place
from replicators.connectors.locations import location_fault, location_places
from replicators.connectors.params import InvalidParams, param
from replicators.connectors.stores import (
    is_s3,
    s3_access_key,
    s3_endpoint,
    s3_region,
    s3_secret_key,
)
from replicators.connectors.view_fields import current_views, view_suffix
from replicators.targets.lakehouse import layout, rules, stores
from replicators.targets.lakehouse.glue import Glue
from replicators.targets.lakehouse.hive import Metastore, uri_fault
from replicators.targets.lakehouse.servers import CatalogServer, address_fault
from replicators.targets.lakehouse.stores import Store, adls, gcs, hdfs, lent, s3
from replicators.targets.lakehouse.stores.s3 import S3

JDBC, REST, GLUE, HIVE = "jdbc", "rest", "glue", "hive"
PATHS = "paths"
UNSIGNED = "none"
SERVICES = ("glue", "s3tables", "execute-api")
"""Services of Amazon for which requests to a REST catalog are signed."""
CATALOG_OPTIONS = (
    "sslmode", "sslrootcert", "connect_timeout", "application_name", "target_session_attrs",
    "channel_binding", "gssencmode",
)  # fmt: skip
"""Options that a catalog's address may have after `?`. Some others would name other hosts, files to
write, or classes to load."""


_KEYS_GO = (
    "the keys of S3, Google and Azure have fields of their own; those of other stores are read "
    "from this program's environment"
)
_WORD_GOES = "enter it in Catalog password"
_OF_REST = ("catalog_warehouse", "catalog_token", "catalog_token_uri", "catalog_scope")
_OF_TOKENS = ("catalog_token_uri", "catalog_scope")
_OF_LOGIN = ("catalog_user", "catalog_password")

_NO_VIEWS = {
    "iceberg": "can't be had with Glue, which holds no views of Iceberg",
    "delta": "can't be had where Delta's tables are folders only: choose hive in Catalog of Delta",
}
_CATALOG, _NAMES, _TABLES, _VERSIONS = "Catalog", "Names", "Tables", "Older versions"
_BUCKET = "Bucket of S3"
_GOOGLE = "Bucket of Google Cloud Storage"
_AZURE = "Container of Azure"
_HDFS = "HDFS"
_ICEBERG = {"format": ("iceberg",)}


@dataclass(frozen=True, slots=True)
class LakehouseParams:
    """The tables' format, the catalog that lists them, and the folder that holds them."""

    warehouse: str = param(
        "Warehouse",
        help="Folder that holds the tables, for example /data/warehouse, or a bucket: "
        "s3://bucket/warehouse, gs://bucket/warehouse or "
        "abfss://container@account.dfs.core.windows.net/warehouse, or in HDFS: "
        "hdfs://namenode:8020/warehouse",
        secrets_go=_KEYS_GO,
        check=location_fault,
    )
    format: str = param("Format", default="iceberg", choices=("iceberg", "delta"))
    catalog: str = param(
        "Catalog",
        group=_CATALOG,
        help="Where Iceberg's tables are listed: jdbc, a database (SQLite or PostgreSQL); rest, a "
        "server that speaks Iceberg's REST protocol; glue, AWS Glue's Data Catalog; hive, "
        "a Hive metastore",
        default=JDBC,
        choices=(JDBC, REST, GLUE, HIVE),
        addresses=True,
    )
    catalog_uri: str = param(
        "Catalog address",
        group=_CATALOG,
        help="The Iceberg catalog, without a password. jdbc: its database, for example "
        "sqlite:////data/catalog.db or postgresql://host/db. rest: the server's address before "
        "/v1, for example https://catalog.example/api/catalog. glue: empty, or the address of a "
        "server that stands for Glue. hive: thrift://host:9083",
        default="",
        note="needed for Iceberg, except with Glue",
        addresses=True,
        secrets_go=_WORD_GOES,
    )
    catalog_name: str = param(
        "Catalog name",
        group=_CATALOG,
        help="Name under which readers open the catalog",
        default="lakehouse",
    )
    catalog_user: str = param(
        "Catalog user",
        group=_CATALOG,
        help="rest: the OAuth2 client id, or the access key that requests are signed with",
        default="",
        addresses=True,
        secrets_go=_WORD_GOES,
    )
    catalog_password: str = param(
        "Catalog password",
        group=_CATALOG,
        help="rest: the OAuth2 client secret, or the secret key that requests are signed with",
        default="",
        secret=True,
    )
    namespace: str = param(
        "Namespace",
        group=_NAMES,
        help="Where the tables appear; empty: one namespace for each schema of the source. "
        "{schema} is the source's schema: raw_{schema}",
        default="",
        secrets_go=_WORD_GOES,
        check=rules.name_fault,
    )
    schema_namespaces: str = param(
        "Namespaces of schemas",
        group=_NAMES,
        help="Other names for schemas, where a namespace is made of each: public=shop; hr=people",
        default="",
        secrets_go=_WORD_GOES,
        check=rules.pairs_fault,
    )
    table_prefix: str = param(
        "Table prefix",
        group=_NAMES,
        help="Stands before each table's name. {schema} is the source's schema: {schema}_",
        default="",
        secrets_go=_WORD_GOES,
        check=rules.name_fault,
    )
    name_case: str = param(
        "Case of names",
        group=_NAMES,
        help="How namespaces and tables are written; columns keep their names",
        default=rules.KEEP,
        choices=tuple(rules.CASES),
    )
    comments: bool = param(
        "Copy comments",
        group=_TABLES,
        help="Comments of tables and columns, with a copy and with each change of its columns. "
        "What the source has no comment for keeps its own.",
        default=True,
    )
    table_properties: str = param(
        "Table properties",
        group=_TABLES,
        help="For each copy that begins from now on: write.parquet.compression-codec=gzip; "
        "owner.team=sales",
        default="",
        is_movable=True,
        secrets_go="every reader of a table sees its properties",
        check=rules.properties_fault,
    )
    partition_by: str = param(
        "Partition by",
        group=_TABLES,
        help="For each copy that begins from now on: orders: day(created_at); hr.people: country, "
        "bucket(16, id). * is every other table that has the columns. Delta: columns only",
        default="",
        is_movable=True,
        secrets_go=_WORD_GOES,
        check=layout.partition_fault,
    )
    sort_by: str = param(
        "Sort by",
        group=_TABLES,
        help="How files are sorted, for each copy that begins from now on: orders: country, "
        "created_at desc. Empty: by key",
        default="",
        note="for Iceberg",
        is_movable=True,
        secrets_go=_WORD_GOES,
        check=layout.order_fault,
    )
    current_views: bool = current_views(group=_TABLES, note="where the catalog holds views")
    view_suffix: str = view_suffix(group=_TABLES)
    history_minutes: int = param(
        "History (minutes)",
        group=_VERSIONS,
        help="How long old versions of a table stay readable",
        default=30,
        minimum=0,
        maximum=43200,
    )
    rewind_versions: int = param(
        "Older versions kept for rewind",
        group=_VERSIONS,
        help="A rewind begins at one of them. They are spread over the time that changes are "
        "kept; the files that only they read "
        "stay too.",
        default=3,
        minimum=0,
        maximum=100,
    )
    s3_endpoint: str = s3_endpoint(_BUCKET)
    s3_region: str = s3_region(_BUCKET)
    store_keys: str = param(
        "Keys of the store",
        group=_BUCKET,
        help="own: the keys below, or the environment's or the machine's. lent: those that a REST "
        "catalog lends with each table (vended credentials); none are entered here",
        default=lent.OWN,
        choices=(lent.OWN, lent.LENT),
        note="lent is for Iceberg in a REST catalog",
        is_movable=True,
    )
    s3_access_key: str = s3_access_key(_BUCKET)
    s3_secret_key: str = s3_secret_key(_BUCKET)
    gcs_key: str = gcs.key(_GOOGLE)
    gcs_endpoint: str = gcs.endpoint(_GOOGLE)
    adls_key: str = adls.key(_AZURE)
    adls_sas: str = adls.sas(_AZURE)
    adls_endpoint: str = adls.endpoint(_AZURE)
    hdfs_web: str = hdfs.web(_HDFS)
    hdfs_user: str = hdfs.user(_HDFS)
    catalog_warehouse: str = param(
        "Catalog's warehouse",
        group=_CATALOG,
        help="The name by which the REST catalog knows the warehouse. Empty: the server has one",
        default="",
        note="for a REST catalog",
        secrets_go=_WORD_GOES,
    )
    catalog_token: str = param(
        "Catalog token",
        group=_CATALOG,
        help="A bearer token, in place of user and password. It is never renewed",
        default="",
        secret=True,
        note="for a REST catalog",
    )
    catalog_token_uri: str = param(
        "Token endpoint",
        group=_CATALOG,
        help="Where the OAuth2 client gets its tokens. Empty: the catalog itself, at "
        "/v1/oauth/tokens",
        default="",
        note="for a REST catalog",
        addresses=True,
        is_movable=True,
        secrets_go=_WORD_GOES,
        check=address_fault,
    )
    catalog_scope: str = param(
        "Scope",
        group=_CATALOG,
        help="The scope to ask tokens for. Empty: catalog. Polaris: PRINCIPAL_ROLE:ALL",
        default="",
        note="for a REST catalog",
        is_movable=True,
        secrets_go=_WORD_GOES,
    )
    catalog_region: str = param(
        "Catalog region",
        group=_CATALOG,
        help="The region of Glue's catalog, or for which requests are signed, such as "
        "eu-central-1. Empty: that of S3",
        default="",
        note="for Glue, and for signed requests",
        is_movable=True,
    )
    catalog_signing: str = param(
        "Sign requests for",
        group=_CATALOG,
        help="rest: the service of Amazon whose catalog asks for signed requests (SigV4). Catalog "
        "user and password are then the access key and the secret key. Empty: those of S3, or the "
        "environment's",
        default=UNSIGNED,
        choices=(UNSIGNED, *SERVICES),
        note="for a REST catalog",
        is_movable=True,
    )

    catalog_locks: bool = param(
        "Hive locks",
        group=_CATALOG,
        help="hive: each commit takes the table's lock. Off: the metastore compares the versions "
        "itself, which needs Hive 2.3.10 or 4.0",
        default=True,
    )

    delta_catalog: str = param(
        "Catalog of Delta",
        group=_CATALOG,
        help="paths: tables are folders, which readers open by their path. hive: a Hive metastore "
        "lists them by name too, at the Catalog address thrift://host:9083",
        default=PATHS,
        choices=(PATHS, HIVE),
        note="for Delta",
    )

    shown_where: ClassVar[dict[str, Mapping[str, tuple[str, ...]]]] = {
        **dict.fromkeys(("catalog", "catalog_name", "sort_by"), _ICEBERG),
        **dict.fromkeys(_OF_LOGIN, {**_ICEBERG, "catalog": (JDBC, REST)}),
        **dict.fromkeys((*_OF_REST, "catalog_signing"), {**_ICEBERG, "catalog": (REST,)}),
        "catalog_region": {**_ICEBERG, "catalog": (REST, GLUE)},
        "catalog_locks": {**_ICEBERG, "catalog": (HIVE,)},
        "delta_catalog": {"format": ("delta",)},
        _BUCKET: {"warehouse": s3.SCHEMES},
        "store_keys": {**_ICEBERG, "catalog": (REST,), "warehouse": s3.SCHEMES},
        **dict.fromkeys(s3.KEYS, {"warehouse": s3.SCHEMES, "store_keys": (lent.OWN,)}),
        _GOOGLE: {"warehouse": gcs.SCHEMES},
        _AZURE: {"warehouse": adls.SCHEMES},
        _HDFS: {"warehouse": hdfs.SCHEMES},
    }

    def __post_init__(self) -> None:
        # Azure shows a token with a question mark that is no part of it
        object.__setattr__(self, "adls_sas", self.adls_sas.removeprefix("?"))
        errors: dict[str, str] = {}
        if not self.catalog_name.isidentifier() or not self.catalog_name.isascii():
            errors["catalog_name"] = "must be a word of letters, digits and underscores"
        if self.format == "iceberg":
            errors |= self._catalog_errors()
            if self.delta_catalog != PATHS:
                errors["delta_catalog"] = "is only for Delta"
        elif self.is_listed:
            errors |= self._hive_errors()
        errors |= stores.faults(self, self.warehouse) | self._lent_errors()
        if self.schema_namespaces and self.namespace and rules.SCHEMA not in self.namespace:
            errors["schema_namespaces"] = "needs an empty namespace, or one with {schema}"
        if self.format == "delta" and self.sort_by:
            errors["sort_by"] = "is only for Iceberg"
        if self.format == "delta" and layout.has_transform(self.partition_by):
            errors["partition_by"] = "takes columns only for Delta, without day() or bucket()"
        if self.current_views and not self.has_views:
            errors["current_views"] = _NO_VIEWS[self.format]
        if errors:
            raise InvalidParams(errors)

    def _catalog_errors(self) -> dict[str, str]:
        rest = [] if self.is_rest else [n for n in _OF_REST if getattr(self, n)]
        errors = dict.fromkeys(rest, "is only for a REST catalog")
        if not (self.is_glue or self.is_signed) and self.catalog_region:
            errors["catalog_region"] = "is only for Glue, and for signed requests"
        elif any(c.isspace() for c in self.catalog_region):
            errors["catalog_region"] = "must not have spaces or line breaks"
        if not self.is_rest and self.catalog_signing != UNSIGNED:
            errors["catalog_signing"] = "is only for a REST catalog"
        if self.is_glue:
            return errors | self._glue_errors()
        if self.is_hive:
            return errors | self._hive_errors()
        return errors | (self._rest_errors() if self.is_rest else _uri_errors(self.catalog_uri))

    def _lent_errors(self) -> dict[str, str]:
        if self.store_keys == lent.OWN:
            return {}
        if not self.is_rest:
            return {"store_keys": "lent is only for Iceberg in a REST catalog"}
        if not is_s3(self.warehouse_url):
            return {"store_keys": "lent is only for a bucket of S3: s3://bucket/warehouse"}
        own = [n for n in s3.KEYS if getattr(self, n)]
        return dict.fromkeys(own, "must be empty where the catalog lends the keys")

    def _hive_errors(self) -> dict[str, str]:
        login = [n for n in _OF_LOGIN if getattr(self, n)]
        errors = dict.fromkeys(login, "must be empty: a Hive metastore is asked without a login")
        needed = "is required for a Hive metastore"
        fault = uri_fault(self.catalog_uri) if self.catalog_uri else needed
        return errors | ({"catalog_uri": fault} if fault else {})

    def _glue_errors(self) -> dict[str, str]:
        login = [n for n in _OF_LOGIN if getattr(self, n)]
        errors = dict.fromkeys(login, "must be empty: Glue is asked with the keys of S3")
        if fault := address_fault(self.catalog_uri):
            errors["catalog_uri"] = f"{fault}; empty for Amazon's own"
        if not is_s3(self.warehouse_url):
            errors["warehouse"] = "must be a bucket for Glue: s3://bucket/warehouse"
        return errors

    def _rest_errors(self) -> dict[str, str]:
        if not self.catalog_uri:
            return {"catalog_uri": "is required for Iceberg"}
        fault = address_fault(self.catalog_uri)
        errors = {"catalog_uri": fault} if fault else {}
        names = ("catalog_user", "catalog_password", "catalog_token", "catalog_scope")
        odd = [n for n in names if any(ord(c) < 32 or c == "\x7f" for c in getattr(self, n))]
        errors |= dict.fromkeys(odd, "must not have line breaks")
        if self.is_signed:
            others = [n for n in ("catalog_token", *_OF_TOKENS) if getattr(self, n)]
            errors |= dict.fromkeys(others, "must be empty where requests are signed")
        elif self.catalog_token and (self.catalog_user or self.catalog_password):
            errors |= {"catalog_token": "must be empty where a user and a password are given"}
        if bool(self.catalog_user) != bool(self.catalog_password):
            lacking = "catalog_password" if self.catalog_user else "catalog_user"
            errors[lacking] = "is required with the other of user and password"
        if ":" in self.catalog_user:
            errors["catalog_user"] = "must not have a colon"
        return errors

    @property
    def is_rest(self) -> bool:
        """Whether a server lists the tables that speaks Iceberg's REST protocol."""
        return self.format == "iceberg" and self.catalog == REST

    @property
    def is_signed(self) -> bool:
        """Whether requests to the REST catalog are signed."""
        return self.is_rest and self.catalog_signing != UNSIGNED

    @property
    def is_lent(self) -> bool:
        """Whether the REST catalog lends the keys of the store."""
        return self.is_rest and self.store_keys == lent.LENT

    @property
    def is_glue(self) -> bool:
        """Whether AWS Glue lists the tables."""
        return self.format == "iceberg" and self.catalog == GLUE

    @property
    def is_hive(self) -> bool:
        """Whether a Hive metastore lists the tables."""
        return self.is_listed or (self.format == "iceberg" and self.catalog == HIVE)

    @property
    def is_listed(self) -> bool:
        """Whether a Hive metastore lists Delta's tables by name."""
        return self.format == "delta" and self.delta_catalog == HIVE

    @property
    def is_served(self) -> bool:
        """Whether a service lists the tables, and not a database."""
        return self.is_rest or self.is_glue or self.is_hive

    @property
    def has_views(self) -> bool:
        """Whether the catalog can hold views."""
        return self.is_listed or (self.format == "iceberg" and self.catalog != GLUE)

    @property
    def metastore(self) -> Metastore:
        """How the Hive metastore is reached."""
        return Metastore(self.catalog_uri, self.catalog_locks)

    @property
    def glue(self) -> Glue:
        """How Glue is reached."""
        region = self.catalog_region or self.s3.in_region
        return Glue(self.catalog_uri, region, self.s3_access_key, self.s3_secret_key)

    @property
    def server(self) -> CatalogServer:
        """How the REST catalog is reached."""
        if self.is_signed:
            return CatalogServer(
                self.catalog_uri,
                self.catalog_warehouse,
                self.catalog_user or self.s3_access_key,
                self.catalog_password or self.s3_secret_key,
                signing=self.catalog_signing,
                region=self.catalog_region or self.s3.in_region,
            )
        return CatalogServer(
            self.catalog_uri,
            self.catalog_warehouse,
            self.catalog_user,
            self.catalog_password,
            self.catalog_token,
            self.catalog_token_uri,
            self.catalog_scope,
        )

    @property
    def store(self) -> Store:
        """How the warehouse is reached."""
        if self.is_lent:
            return lent.Lent(self.server, self.s3.where, self.s3.in_region)
        return stores.store_of(self, self.warehouse)

    @property
    def s3(self) -> S3:
        """The fields of S3: services of Amazon are asked with its keys, wherever the warehouse
        lies."""
        return s3.of(self)

    @property
    def warehouse_url(self) -> str:
        """The warehouse without a trailing slash, by the name that all readers know."""
        return stores.one_name(self.warehouse).rstrip("/")


def _uri_errors(uri: str) -> dict[str, str]:
    if not uri:
        return {"catalog_uri": "is required for Iceberg"}
    kind = uri.partition(":")[0].split("+")[0]
    if kind not in {"sqlite", "postgresql"}:
        return {"catalog_uri": "must begin with sqlite:/// or postgresql://"}
    try:
        url = Url.parse(uri)
    except ValueError as err:
        return {"catalog_uri": str(err)}
    fault = _sqlite_fault(url) if kind == "sqlite" else _postgresql_fault(url)
    return {"catalog_uri": fault} if fault else {}


def _sqlite_fault(url: Url) -> str:
    if url.host or url.user or not url.path.startswith("//"):
        return "needs an absolute path: sqlite:////folder/catalog.db"
    if url.query or "%" in url.path:
        return "must be a plain path, without ? and %"
    return ""


def _postgresql_fault(url: Url) -> str:
    odd = [name for name, _ in url.query if name not in CATALOG_OPTIONS]
    return f"may have behind ? only {', '.join(CATALOG_OPTIONS)}" if odd else ""


def places(params: LakehouseParams) -> tuple[Place, ...]:
    """The folder or the server that holds the tables, and the catalog's file or database."""
    found = location_places(params.warehouse, "Warehouse")
    asked = {
        "S3 endpoint": params.s3_endpoint,
        "GCS endpoint": params.gcs_endpoint,
        "Azure endpoint": params.adls_endpoint,
        "WebHDFS address": params.hdfs_web,
    }
    found += tuple(host_place(where, label) for label, where in asked.items() if where)
    if params.is_rest:
        tokens = params.catalog_token_uri
        more = (host_place(tokens, "Token endpoint"),) if tokens else ()
        return (*found, host_place(params.catalog_uri, "Catalog address"), *more)
    if params.is_hive:
        return (*found, host_place(params.catalog_uri, "Catalog address"))
    if params.is_glue:
        where = params.catalog_uri
        return (*found, host_place(where, "Catalog address")) if where else found
    return (*found, *_catalog_places(params.catalog_uri)) if params.format == "iceberg" else found


def _catalog_places(uri: str) -> tuple[Place, ...]:
    url = Url.parse(uri)
    if url.scheme.startswith("sqlite"):
        return (Place("file", url.path[1:], "Catalog address"),)
    database = Place(
        "host", url.host or "localhost", "Catalog address", url.port or 5432, unquote(url.path[1:])
    )
    files = [value for name, value in url.query if name == "sslrootcert" and value != "system"]
    return (database, *(Place("file", path, "Catalog address") for path in files))
