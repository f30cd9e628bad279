"""The settings of a lakehouse target. Parsing only; nothing is opened here."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from replicators.connectors.params import InvalidParams, param


@dataclass(frozen=True, slots=True)
class LakehouseParams:
    """Where the tables go: their format, the catalog that lists them, and the folder that holds them."""

    warehouse: str = param(
        "Warehouse",
        help="Folder or URL that holds the tables: /data/warehouse, s3a://bucket/warehouse",
    )
    format: str = param("Format", default="iceberg", choices=("iceberg", "delta"))
    catalog_uri: str = param(
        "Catalog address",
        help="The Iceberg catalog's database, as SQLAlchemy writes it, without password: "
        "sqlite:////data/catalog.db, postgresql://host/db",
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
        "Versions for rewinds",
        help="So many older versions, spread over the time that changes are kept, stay for rewinds to begin at; "
        "the files that only they read stay too",
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
        """The warehouse without a slash at its end."""
        return self.warehouse.rstrip("/")


def _uri_errors(uri: str) -> dict[str, str]:
    if not uri:
        return {"catalog_uri": "is required for Iceberg"}
    try:
        parts = urlsplit(uri)
        has_password = bool(parts.password)
    except ValueError:
        return {"catalog_uri": "is not an address"}
    if parts.scheme.split("+")[0] not in {"sqlite", "postgresql"}:
        return {"catalog_uri": "must begin with sqlite:/// or postgresql://"}
    if has_password or "password=" in parts.query:
        return {"catalog_uri": "must not contain a password; use the field for it"}
    if parts.scheme.startswith("sqlite") and not parts.path.startswith("//"):
        return {"catalog_uri": "needs an absolute path: sqlite:////folder/catalog.db"}
    return {}
