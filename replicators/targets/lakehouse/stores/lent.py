"""A bucket of S3 whose keys a REST catalog lends: with each table that is loaded come keys for its
folder, which end (vended credentials). Nothing here has keys of its own."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from replicators.connectors.stores import Codes, code_of
from replicators.targets.lakehouse.servers import DELEGATION, CatalogServer
from replicators.targets.lakehouse.stores import python_io, s3
from replicators.targets.lakehouse.stores.kind import Store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

OWN, LENT = "own", "lent"
_ID, _SECRET, _TOKEN = "s3.access-key-id", "s3.secret-access-key", "s3.session-token"
_NO_KEYS = dict.fromkeys((_ID, _SECRET), "none-lent")
"""What stands for keys until a table brings its own: the environment's are never taken."""
_ENDS = "s3.session-token-expires-at-ms"
_UNKNOWN_SECONDS = 900.0
"""How long keys are used whose end the catalog does not say. Amazon's live that long at least."""
NOT_LENT = "the catalog lends no keys"
_CODES: Codes = (
    (NOT_LENT, "target:keys-not-lent"),
    (r"NO_?SUCH_?BUCKET|bucket does not exist", "target:bucket-missing"),
    (r"(INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|SIGNATURE_DOES_NOT_MATCH) during"
     r"|ExceptionName: (Expired|Invalid)Token|provided token.*Service: S3"
     r"|signature we calculated.*Service: S3|does not exist in our records",
     "target:lent-keys"),
    (r"Service: S3, Status Code: 403|ACCESS_DENIED during|HTTP status 403", "target:lent-rights"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lent(Store):
    """The bucket of one table (`names`), or of a warehouse as long as no table is named. What is
    empty comes from the catalog."""

    jars: ClassVar[tuple[str, ...]] = s3.JARS
    iceberg_jars: ClassVar[tuple[str, ...]] = s3.ICEBERG_JARS

    server: CatalogServer
    endpoint: str = ""
    region: str = ""
    names: tuple[str, ...] = ()
    clock: Callable[[], float] = field(default=time.time, compare=False, repr=False)

    def of_table(self, names: tuple[str, ...]) -> Lent:
        """See `Store`."""
        return replace(self, names=names)

    def taken(self) -> Taken:
        """See `Store`."""
        from pyarrow import fs

        from replicators.targets.lakehouse.stores.renewed import Within

        found, _ = self._made()
        return Taken(self, fs.PyFileSystem(Within(lambda: (found, math.inf))))

    def catalog_conf(self) -> dict[str, str]:
        """See `Store`. Iceberg's own files take the keys of each table."""
        return {
            **s3.files_conf(self.endpoint, self.region),
            f"header.{DELEGATION}": "vended-credentials",
            **_NO_KEYS,
        }

    def iceberg_properties(self) -> dict[str, str]:
        """See `Store`."""
        if not self.names:
            return self._place
        fields = {"endpoint": self.endpoint, "region": self.region, "names": self.names}
        return python_io.properties("lent", {**fields, "server": asdict(self.server)})

    @property
    def _place(self) -> dict[str, str]:
        found = {"s3.endpoint": self.endpoint, "s3.region": self.region}
        return {name: value for name, value in found.items() if value}

    def system(self, url: str) -> FileSystem:
        """See `Store`. It asks the catalog for other keys before those that it has end."""
        from pyarrow import fs

        from replicators.targets.lakehouse.stores.renewed import Within

        return fs.PyFileSystem(Within(self._made, self.clock))

    def _made(self) -> tuple[FileSystem, float]:
        """A file system with the keys that the catalog lends now, and when they end. OSError if it
        lends none."""
        from replicators.targets.lakehouse import remote

        asked = {f"header.{DELEGATION}": "vended-credentials", **self._place}
        catalog = remote.Catalog("lent", **{**self.server.properties(), **asked})
        try:
            lent = catalog.load_table(self.names).io.properties
        finally:
            catalog.close()
        return self._with(lent)

    def _with(self, lent: Mapping[str, str]) -> tuple[FileSystem, float]:
        from pyarrow import fs

        if not lent.get(_ID) or not lent.get(_SECRET):
            raise PermissionError(NOT_LENT)
        made = fs.S3FileSystem(
            access_key=lent[_ID],
            secret_key=lent[_SECRET],
            session_token=lent.get(_TOKEN) or None,
            endpoint_override=lent.get("s3.endpoint") or None,
            region=lent.get("s3.region") or lent.get("client.region") or None,
        )
        ends = lent.get(_ENDS, "")
        return made, int(ends) / 1000 if ends else self.clock() + _UNKNOWN_SECONDS

    def code(self, text: str) -> str:
        """See `Store`."""
        return code_of(text, _CODES)

    def code_of_run(self, text: str) -> str:
        """See `Store`."""
        code = self.code(text)
        return code if "lent" in code else ""


@dataclass(frozen=True, slots=True)
class Taken(Store):
    """The bucket with keys that were lent before: also for a table that is dropped meanwhile."""

    lender: Lent
    found: FileSystem

    def system(self, url: str) -> FileSystem:
        """See `Store`."""
        return self.found

    def code(self, text: str) -> str:
        """See `Store`."""
        return self.lender.code(text)


def from_json(text: str) -> Lent:
    """The store that `iceberg_properties` wrote."""
    found = json.loads(text)
    server = CatalogServer(**found["server"])
    return Lent(server, found["endpoint"], found["region"], tuple(found["names"]))
