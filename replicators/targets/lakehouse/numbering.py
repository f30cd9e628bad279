"""Numbers the equal rows in a snapshot of a table without a key, across all chunks."""

from __future__ import annotations

from replicators.connectors.model.modes import OCCURRENCE, ROW_HASH
from replicators.connectors.spark import Frame


def numbered(frame: Frame) -> Frame:
    """The frame with each row's number among the rows with its digest, from 1. Rows are ordered by
    digest, and each file holds a range of digests, so that a merge reads only the files of its own
    digests."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    equal = Window.partitionBy(ROW_HASH).orderBy(ROW_HASH)
    number = F.row_number().over(equal).cast("long")
    return frame.repartitionByRange(F.col(ROW_HASH)).withColumn(OCCURRENCE, number)
