"""Removes files of a Delta table that no version needs any more, but keeps the files of single kept
versions. VACUUM gets an inventory of the folder without those files (`USING INVENTORY`). Plain
VACUUM knows no kept versions and removes files by age alone."""

from __future__ import annotations

import base64
import uuid
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from replicators.connectors.files import is_url
from replicators.connectors.storage import Storage
from replicators.targets.lakehouse import dialect
from replicators.targets.lakehouse.sessions import LentSession

INVENTORY = "replicator_inventory"
SCHEMA = "path STRING, length LONG, isDir BOOLEAN, modificationTime LONG"
UUID_CHARACTERS = 20
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_RFC1924 = str.maketrans(_Z85, _RFC1924)


def vector_file(text: str) -> str:
    """The path within the table of the file that holds a deletion vector of storage type `u`.
    `text` is a prefix (mostly empty) and a UUID in Z85 (Delta's protocol, Deletion Vector
    Descriptor Schema)."""
    prefix, encoded = text[:-UUID_CHARACTERS], text[-UUID_CHARACTERS:]
    own = uuid.UUID(bytes=base64.b85decode(encoded.translate(_TO_RFC1924)))
    return f"{prefix}/deletion_vector_{own}.bin" if prefix else f"deletion_vector_{own}.bin"


def can_spare(spark: Any) -> bool:
    """Whether Delta's own classes can be called. Over Spark Connect they can't."""
    return hasattr(spark, "_jsparkSession")


def files_of(spark: Any, folder: str, version: int) -> frozenset[str]:
    """The paths within the table of all files that a version reads. Files elsewhere are not listed:
    no VACUUM of this table removes them. Raises Delta's exception if the version's log is gone."""
    from pyspark.sql import DataFrame

    own, jvm = spark._jsparkSession, spark._jvm
    jvm.SparkSession.setActiveSession(own)  # Delta uses this session's settings
    try:
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(own, folder)
        defaults = (getattr(log, f"getSnapshotAt$default${n}")() for n in (2, 3, 4))
        snapshot = log.getSnapshotAt(version, *defaults)
        try:
            shown = DataFrame(snapshot.allFiles().toDF(), spark).selectExpr(
                "path",
                "CASE WHEN deletionVector.storageType = 'u' THEN deletionVector.pathOrInlineDv "
                "END AS vector",
            )
            found = shown.toArrow()
        finally:
            snapshot.uncache()
    finally:
        jvm.SparkSession.clearActiveSession()  # this thread's next call uses another session
    vectors = found.column("vector").drop_null().to_pylist()
    return frozenset({*map(unquote, found.column("path").to_pylist()), *map(vector_file, vectors)})


def vacuum(
    session: LentSession,
    storage: Storage,
    folder: str,
    hours: float,
    spared: frozenset[str] = frozenset(),
) -> None:
    """Remove files that no version of the last `hours` reads, except the `spared` paths within the
    table."""
    listed = ""
    if spared:
        frame = session.createDataFrame(inventory(storage, folder, spared), SCHEMA)
        session.show(frame, INVENTORY)
        listed = f" USING INVENTORY (SELECT * FROM {INVENTORY})"  # noqa: S608 - a name of ours
    target = dialect.quote(folder)
    session.sql(f"VACUUM delta.{target}{listed} RETAIN {hours:.2f} HOURS").collect()


def inventory(storage: Storage, folder: str, spared: frozenset[str]) -> pa.Table:
    """The table's files without the spared ones, in VACUUM's inventory format: addresses, bytes,
    milliseconds since the epoch. Folders that become empty stay."""
    system, root = storage.open(folder)
    start = folder if is_url(folder) else f"file:{root}"
    rows = [
        (f"{start}/{path}", info.size, False, info.mtime_ns // 1_000_000)
        for info in system.get_file_info(fs.FileSelector(root, recursive=True))
        if info.type == fs.FileType.File
        and not (path := info.path[len(root) + 1 :]).startswith("_delta_log/")
        and path not in spared
    ]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    types = (pa.string(), pa.int64(), pa.bool_(), pa.int64())
    names = ("path", "length", "isDir", "modificationTime")
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)
