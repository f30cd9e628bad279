"""See `python_io`. It loads pyiceberg."""

from __future__ import annotations

from typing import Any

from pyarrow.fs import FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from replicators.connectors.stores import bucket_of
from replicators.targets.lakehouse.stores.python_io import store_in


class StoreFileIO(PyArrowFileIO):
    """pyiceberg makes it from properties."""

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Scheme, place and the path in the file system."""
        scheme, netloc, path = PyArrowFileIO.parse_location(location, properties)
        return scheme, netloc, path if scheme == "file" else bucket_of(location)[1]

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> FileSystem:
        store: Any = store_in(self.properties)
        return store.system(f"{scheme}://{netloc or ''}")
