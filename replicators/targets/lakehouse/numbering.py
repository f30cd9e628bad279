"""Numbers the equal rows of a snapshot of a table without a key, whichever chunks they came in."""

from __future__ import annotations

from typing import Any

from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH


def numbered(frame: Any) -> Any:
    """The frame with each row's number among those of its digest, from 1. Rows come ordered by
    digest, a range of digests in each file, so that a merge reads the files of its own digests
    only."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    equal = Window.partitionBy(ROW_HASH).orderBy(ROW_HASH)
    number = F.row_number().over(equal).cast("long")
    return frame.repartitionByRange(F.col(ROW_HASH)).withColumn(OCCURRENCE, number)
