"""Configures a Spark session to write a lakehouse: settings without secrets, the names of jars, and
the catalog's password in a file."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from replicators.targets.lakehouse import glue
from replicators.targets.lakehouse.params import LakehouseParams
from replicators.targets.lakehouse.stores import s3
from replicators.targets.lakehouse.stores.kind import private

ICEBERG_JAR = "iceberg-spark-runtime-4.1_2.13"
DELTA_JARS = ("delta-spark_4.1_2.13", "delta-storage")
MANIFESTS = {
    "io.manifest.cache-enabled": "true",
    "io.manifest.cache.max-total-bytes": str(4 << 20),
    "io.manifest.cache.max-content-length": str(1 << 20),
    "io.manifest.cache.expiration-interval-ms": str(600_000),
}
"""Manifests never change, and each merge reads those of the merges before it. On an S3 server that
is a fifth of what a small merge costs."""


def jdbc_url(uri: str) -> str:
    """The JDBC form of an address that SQLAlchemy understands."""
    parts = urlsplit(uri)
    if parts.scheme.startswith("sqlite"):
        return f"jdbc:sqlite:{unquote(parts.path[1:])}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    query = f"?{parts.query}" if parts.query else ""
    return f"jdbc:postgresql://{host}{port}{parts.path}{query}"


def spark_conf(params: LakehouseParams) -> dict[str, str]:
    """The session's settings, fixed at its start. They do not contain the catalog's secrets: see
    `driver_properties` and `driver_environment`."""
    common = {
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.variable.substitute": "false",  # `writeTo` reads names as the first session does
    }
    common |= params.store.spark_conf()
    if params.format == "delta":
        return {
            **common,
            **(params.metastore.session_conf() if params.is_listed else {}),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # A writer checks its size after this many rows. The default is some hundreds, which
            # do not fit in memory if rows are large.
            **{
                f"spark.hadoop.parquet.{of}.size.row.check.{end}": rows
                for of in ("block", "page")
                for end, rows in (("min", "1"), ("max", "16"))
            },
        }
    prefix = f"spark.sql.catalog.{params.catalog_name}"
    own = {**_catalog_conf(params), **_files_conf(params)}
    return {
        **common,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.cache-enabled": "false",
        **{f"{prefix}.{name}": value for name, value in (MANIFESTS | own).items()},
    }


def _catalog_conf(params: LakehouseParams) -> dict[str, str]:
    if params.is_glue:
        return params.glue.spark_conf(params.warehouse_url)
    if params.is_hive:
        return params.metastore.spark_conf(params.warehouse_url)
    if params.is_rest:
        return params.server.spark_conf()
    return _jdbc_conf(params)


def _files_conf(params: LakehouseParams) -> dict[str, str]:
    """How Iceberg reaches its files. Glue has its own region, under the name of the files'."""
    found = params.store.catalog_conf()
    return {k: v for k, v in found.items() if not (params.is_glue and k == "client.region")}


def _jdbc_conf(params: LakehouseParams) -> dict[str, str]:
    user = params.catalog_user or urlsplit(params.catalog_uri).username or ""
    return {
        "type": "jdbc",
        "uri": jdbc_url(params.catalog_uri),
        "jdbc.schema-version": "V1",
        "warehouse": params.warehouse_url,
        **({"jdbc.user": user} if user else {}),
    }


def driver_environment(params: LakehouseParams) -> dict[str, str]:
    """The secrets of a REST catalog and of a store, as variables that Spark's settings name."""
    own = params.server.environment() if params.is_rest else {}
    return {**own, **params.store.driver_environment()}


def driver_properties(params: LakehouseParams, folder: str) -> dict[str, str]:
    """The Java properties that tell PostgreSQL's driver where the catalog's password is, and the
    store's client where the keys are. They name files in `folder` that only this user may read. So
    a secret is neither in the process's arguments nor in Spark's settings."""
    return {**_catalog_properties(params, folder), **params.store.driver_properties(folder)}


def _catalog_properties(params: LakehouseParams, folder: str) -> dict[str, str]:
    is_database = params.format == "iceberg" and not params.is_served
    is_asked = is_database and not params.catalog_uri.startswith("sqlite")
    if not is_asked or not params.catalog_password:
        return {}
    word = params.catalog_password.replace("\\", "\\\\").replace(":", "\\:")
    path = private(Path(folder) / "catalog.pgpass", f"*:*:*:*:{word}\n")
    return {"org.postgresql.pgpassfile": path}


def jars(params: LakehouseParams) -> tuple[str, ...]:
    """The names, without version, of the jars that must be on the session's class path."""
    if params.format == "delta":
        return (*DELTA_JARS, *params.store.jars)
    more = (*params.store.jars, *params.store.iceberg_jars)
    if params.is_signed:
        return tuple(dict.fromkeys((ICEBERG_JAR, *more, *s3.JARS, *glue.JARS)))
    if params.is_rest or params.is_hive:
        return (ICEBERG_JAR, *more)
    if params.is_glue:
        return tuple(dict.fromkeys((ICEBERG_JAR, *more, *glue.JARS)))
    driver = "sqlite-jdbc" if params.catalog_uri.startswith("sqlite") else "postgresql"
    return (ICEBERG_JAR, driver, *more)
