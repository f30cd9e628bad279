"""What the lakehouse asks of the place of its warehouse."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_BY_HADOOP = "org.apache.iceberg.hadoop.HadoopFileIO"


@dataclass(frozen=True, slots=True)
class Store:
    """A folder, or a store that the environment alone leads to. Kinds that have fields of their own
    add to it."""

    is_tried: ClassVar[bool] = False
    """Whether the assessment writes, reads, lists and deletes there."""
    jars: ClassVar[tuple[str, ...]] = ()
    """The names, without version, of the jars that Spark needs for it."""
    iceberg_jars: ClassVar[tuple[str, ...]] = ()
    """What Iceberg needs beside them for `catalog_conf`."""

    @property
    def is_read_soon(self) -> bool:
        """Whether pyiceberg reads a small file there in milliseconds, without asking Spark."""
        return False

    def system(self, url: str) -> FileSystem | None:
        """The file system that the fields lead to; None where the URL alone does."""
        return None

    def spark_conf(self) -> dict[str, str]:
        """The session's settings, without secrets."""
        return {}

    def catalog_conf(self) -> dict[str, str]:
        """The settings of Spark's catalog that lead to its files: by Hadoop, where a kind of store
        has no other way."""
        return {"io-impl": _BY_HADOOP}

    def of_table(self, names: tuple[str, ...]) -> Store:
        """The place of a table's files."""
        return self

    def taken(self) -> Store:
        """The same place. What leads to it is asked now, and holds without the table."""
        return self

    def driver_properties(self, folder: str) -> dict[str, str]:
        """Java properties. They name files with secrets, which are written into `folder`."""
        return {}

    def driver_environment(self) -> dict[str, str]:
        """Variables of the JVM's environment that the settings name."""
        return {}

    def iceberg_properties(self) -> dict[str, str]:
        """What pyiceberg's file system asks for."""
        return {}

    def delta_options(self) -> dict[str, str]:
        """What deltalake's object store asks for beside the environment."""
        return {}

    def code(self, text: str) -> str:
        """The code for an error of the store."""
        return "target:unreachable"

    def code_of_run(self, text: str) -> str:
        """The code for an error of a run; empty where the error says nothing of the store, or
        where nothing is special about it."""
        return ""


def private(path: Path, text: str) -> str:
    """Write a file that only this user may read. Returns its path."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    return str(path)
