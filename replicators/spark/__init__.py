"""A data source of PySpark: the changes of a replicator's table, as a batch or as a stream. See
`docs/spark-source.md`.

A notebook needs only this folder, PySpark and pyarrow. So nothing here imports other parts of the
program.
"""

from __future__ import annotations

from replicators.spark.errors import ChangesError
from replicators.spark.source import ReplicatorSource

__all__ = ["ChangesError", "ReplicatorSource"]
