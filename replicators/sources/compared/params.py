"""The settings of files or a query that are compared. Parsing only; nothing is opened here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from replicators.connectors import locations
from replicators.connectors.addresses import Place
from replicators.connectors.locations import STORES_SETTINGS, location_fault, location_places
from replicators.connectors.params import InvalidParams, param
from replicators.sources.compared import pattern
from replicators.sources.compared.database import database_fault, place, queries_fault
from replicators.sources.compared.lists import columns_fault, keys_fault
from replicators.sources.compared.schedule import cron_fault

FULL, DELTA = "all rows", "only new and changed rows"
BY_ENDING = "by the file's ending"
FORMATS = {"CSV": "csv", "JSON lines": "json", "Parquet": "parquet", "Avro": "avro", "ORC": "orc"}


@dataclass(frozen=True, slots=True)
class ComparedParams:
    """Where the data sets come from, what identifies their rows, when they are read, and where the
    state is kept that they are compared with."""

    files: str = param(
        "Files",
        help="Path of the files. {table} stands for the table's name, {delivery} for the name of "
        "a delivery, such as a date; * for any text. For example /data/in/{delivery}/{table}.csv, "
        "or /data/in/{table}.csv for a file that is replaced.",
        default="",
        note="needed for files",
        secrets_go=STORES_SETTINGS,
        check=pattern.fault,
    )
    database: str = param(
        "Database",
        help="Address of a database whose tables or queries are compared, without a password: "
        "postgresql://user@host/shop, mysql://user@host/shop, sqlite:////data/shop.db, or another "
        "that SQLAlchemy knows",
        default="",
        note="needed for a query",
        addresses=True,
        check=database_fault,
    )
    password: str = param("Password of the database", default="", secret=True)
    queries: str = param(
        "Queries",
        help="Each one appears as a table: recent: SELECT id, name FROM people WHERE year > 2020; "
        "sums: SELECT ...",
        default="",
        check=queries_fault,
    )
    state: str = param(
        "State",
        help="Folder or object store where each row's state is kept for the next comparison, for "
        "example /data/state. It takes about as much space as the tables in Parquet.",
        default="",
        note="needed",
        secrets_go=STORES_SETTINGS,
        check=location_fault,
    )
    keys: str = param(
        "Key columns",
        help="The columns that identify a row: of each table (customers: id; lines: order, line), "
        "or the same of all tables (id).",
        default="",
        note="needed for files and queries",
        check=keys_fault,
    )
    rows: str = param(
        "A delivery has",
        help="All rows: a row that is missing was deleted. Only new and changed rows: a row that "
        "is missing stays as it is.",
        default=FULL,
        choices=(FULL, DELTA),
    )
    schedule: str = param(
        "Schedule",
        help="Cron expression in UTC: when files are looked for, for example 0 6 * * * for every "
        "day at 6. Empty: when they arrive. A database needs one.",
        default="",
        check=cron_fault,
    )
    largest_loss: int = param(
        "Largest loss (percent)",
        help="A delivery of all rows that would delete a larger share of the table is refused. "
        "100 allows any.",
        default=50,
        minimum=0,
        maximum=100,
    )
    columns: str = param(
        "Column types",
        help="Types of columns, where what the files show is not right: customers: id bigint, "
        "since date; lines: price decimal(12,2). Other columns keep the type that was found.",
        default="",
        check=columns_fault,
    )
    format: str = param("Format", default=BY_ENDING, choices=(BY_ENDING, *FORMATS))
    delimiter: str = param("CSV delimiter", help="One character, or \\t for a tab", default=",")
    null_text: str = param(
        "CSV text for NULL", help="Empty: a value that is empty and not quoted is NULL", default=""
    )
    marker: str = param(
        "Marker file",
        help="A file that says that a delivery is complete, such as _SUCCESS. It lies in the same "
        "folder. Empty: a delivery is read when its files have not changed for a while.",
        default="",
    )
    settle_seconds: int = param(
        "Unchanged for (seconds)",
        help="How long a delivery's files must stay as they are before they are read",
        default=10,
        minimum=0,
        maximum=86400,
    )
    schema_name: str = param(
        "Schema name", help="Name of the schema that the tables appear in", default="delivered"
    )

    def __post_init__(self) -> None:
        errors: dict[str, str] = {}
        if not self.state:
            errors["state"] = "is required"
        if bool(self.files) == bool(self.database):
            errors["files"] = "enter either the path of files or a database"
        if self.database and not self.schedule:
            errors["schedule"] = "is needed for a database"
        if len(self.separator) != 1:
            errors["delimiter"] = "must be one character, or \\t"
        if not self.schema_name.strip() or "." in self.schema_name or "/" in self.schema_name:
            errors["schema_name"] = "must be a name without dots and slashes"
        if "/" in self.marker:
            errors["marker"] = "must be the name of a file, without a folder"
        if errors:
            raise InvalidParams(errors)

    @property
    def separator(self) -> str:
        """The delimiter of CSV files, as one character."""
        return "\t" if self.delimiter == "\\t" else self.delimiter

    @property
    def is_full(self) -> bool:
        """Whether each delivery has all rows."""
        return self.rows == FULL

    @property
    def state_root(self) -> str:
        """The place of the states, a path or a URL without a trailing slash."""
        return locations.folder_of(self.state)

    def folder_of(self, name: str) -> str:
        """The folder that belongs to one replicator."""
        return f"{self.state_root}/{name}"

    @property
    def schemas_folder(self) -> str:
        """Where the columns are kept that were seen in these files, so that types stay."""
        data = (self.files, self.database, self.queries)
        parts = (*data, self.format, self.delimiter, self.null_text)
        word = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        return f"{self.state_root}/_columns-{word}"


def places(params: ComparedParams) -> tuple[Place, ...]:
    """The folders or servers of the data and of the state."""
    data = (
        (place(params.database),)
        if params.database
        else location_places(pattern.fixed_folder(params.files), "Files")
    )
    return (*data, *location_places(params.state, "State"))
