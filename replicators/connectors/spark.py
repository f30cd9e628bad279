"""The members of a Spark session that plugins use, as protocols: pyspark's own classes say `Any`
almost everywhere. A session may be of this process or of Spark Connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import pyarrow as pa


class DataType(Protocol):
    """The type of a frame's column."""

    def simpleString(self) -> str: ...

    def typeName(self) -> str: ...


class StructField(Protocol):
    """A frame's column."""

    name: str
    dataType: DataType


class StructType(Protocol):
    """A frame's columns. Equal ones have the same names, types and order."""

    fields: Sequence[StructField]


class Row(Protocol):
    """A row of a result: its values by place or by name."""

    def __getitem__(self, at: int | str, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def asDict(self) -> dict[str, Any]: ...


class FrameWriter(Protocol):
    """Writes a frame into a table."""

    def append(self) -> None: ...


class Frame(Protocol):
    """A data frame."""

    @property
    def schema(self) -> StructType: ...

    @property
    def sparkSession(self) -> Session: ...

    def collect(self) -> Sequence[Row]: ...

    def toArrow(self) -> pa.Table: ...

    def selectExpr(self, *columns: str) -> Frame: ...

    def withColumn(self, name: str, column: Any) -> Frame: ...

    def repartitionByRange(self, *columns: Any) -> Frame: ...

    def mapInArrow(
        self, function: Callable[[Any], Iterator[pa.RecordBatch]], schema: Any
    ) -> Frame: ...

    def createOrReplaceTempView(self, name: str) -> None: ...

    def writeTo(self, table: str) -> FrameWriter: ...


class FrameReader(Protocol):
    """Reads files into a frame."""

    def schema(self, schema: Any) -> FrameReader: ...

    def parquet(self, *paths: str) -> Frame: ...


class Conf(Protocol):
    """A session's settings."""

    def get(self, name: str, default: str | None = None) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...

    def unset(self, name: str) -> None: ...


class SessionCatalog(Protocol):
    """What tables and views a session sees."""

    def tableExists(self, name: str) -> bool: ...

    def dropTempView(self, name: str) -> bool: ...


class Session(Protocol):
    """A Spark session."""

    @property
    def conf(self) -> Conf: ...

    @property
    def catalog(self) -> SessionCatalog: ...

    @property
    def read(self) -> FrameReader: ...

    def sql(self, text: str) -> Frame: ...

    def table(self, name: str) -> Frame: ...

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame: ...

    def createDataFrame(self, rows: Any, schema: Any) -> Frame: ...


def quoted(name: str) -> str:
    """A name as an identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def turn_of(spark: Session) -> Callable[[], AbstractContextManager[None]]:
    """What a thread enters before it uses the session for statements. Where many runs share a
    Spark, it waits there until it is its turn."""
    found: Callable[[], AbstractContextManager[None]] = getattr(spark, "turn", nullcontext)
    return found
