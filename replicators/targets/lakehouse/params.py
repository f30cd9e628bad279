"""The settings of a lakehouse target. Parsing only; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from replicators.connectors.addresses import Place, Url, one_name_of_s3
from replicators.connectors.locations import STORES_SETTINGS, location_fault, location_places
from replicators.connectors.params import InvalidParams, param

CATALOG_OPTIONS = (
    "sslmode", "sslrootcert", "connect_timeout", "application_name", "target_session_attrs",
    "channel_binding", "gssencmode",
)  # fmt: skip
"""Options that a catalog's address may have after `?`. Some others would name other hosts, files to
write, or classes to load."""


@dataclass(frozen=True, slots=True)
class LakehouseParams:
    """The tables' format, the catalog that lists them, and the folder that holds them."""

    warehouse: str = param(
        "Warehouse",
        help="Folder that holds the tables, for example /data/warehouse, or a bucket of S3: "
        "s3://bucket/warehouse. Other object stores need a Spark that has their connector.",
        secrets_go=STORES_SETTINGS,
        check=location_fault,
    )
    format: str = param("Format", default="iceberg", choices=("iceberg", "delta"))
    catalog_uri: str = param(
        "Catalog address",
        help="The Iceberg catalog's database, without a password. For example "
        "sqlite:////data/catalog.db or postgresql://host/db",
        default="",
        note="needed for Iceberg",
        addresses=True,
    )
    catalog_name: str = param(
        "Catalog name", help="Name under which readers open the catalog", default="lakehouse"
    )
    catalog_user: str = param("Catalog user", default="", addresses=True)
    catalog_password: str = param("Catalog password", default="", secret=True)
    namespace: str = param(
        "Namespace",
        help="Where the tables appear; empty: one namespace for each schema of the source",
        default="",
    )
    history_minutes: int = param(
        "History (minutes)",
        help="How long old versions of a table stay readable",
        default=30,
        minimum=0,
        maximum=43200,
    )
    rewind_versions: int = param(
        "Older versions kept for rewind",
        help="A rewind begins at one of them. They are spread over the time that changes are "
        "kept; the files that only they read "
        "stay too.",
        default=3,
        minimum=0,
        maximum=100,
    )

    def __post_init__(self) -> None:
        errors: dict[str, str] = {}
        if not self.catalog_name.isidentifier() or not self.catalog_name.isascii():
            errors["catalog_name"] = "must be a word of letters, digits and underscores"
        if self.format == "iceberg":
            errors |= _uri_errors(self.catalog_uri)
        if errors:
            raise InvalidParams(errors)

    @property
    def warehouse_url(self) -> str:
        """The warehouse without a trailing slash. A bucket of S3 has one name for all readers."""
        return one_name_of_s3(self.warehouse).rstrip("/")


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
