"""Texts of errors, problems and refused deliveries that only this source has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_AFTER = "Yesterday's rows stay in the target. The next delivery is compared with them."


def _refused(title: str, text: str, suggestion: str, impact: str = _AFTER) -> Message:
    return of_table(title, text, suggestion, impact, retry=Retry.AFTER_FIX)


MESSAGES: Mapping[str, Message] = {
    "source:files-unreachable": Message(
        "Folder not readable",
        "The {what} can't be read: {reason}.",
        "Check the path, and that this program may read it. A store's settings and keys are read "
        "from this program's environment.",
        "No delivery can be compared.",
        retry=Retry.AUTO,
    ),
    "source:state-unwritable": Message(
        "State not writable",
        "The state of the rows can't be written: {reason}.",
        "Make room in the state's folder, and let this program write there.",
        "No delivery can be compared.",
        retry=Retry.AUTO,
    ),
    "source:database-unreadable": Message(
        "Database not readable",
        "The database can't be read: {reason}.",
        "Check the address, the user and the password, and that the server runs.",
        "No delivery can be compared.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:database-driver": Message(
        "Driver missing",
        "The database can't be read: {reason}.",
        "Install the package into this program's environment, and restart web and workers. "
        "SQLAlchemy's page *Dialects* names the package for each database.",
        "No delivery can be compared.",
        help=Help.EDIT,
    ),
    "source:query-refused": of_table(
        "Query refused",
        "The database refuses to read `{table}`.",
        "Try the query at the database as the same user. Correct it, or give the right to read.",
        "The table can't be compared.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "source:no-files": Message(
        "No files yet",
        "No file fits the path.",
        "Put a first delivery there, or correct the path.",
        "There is no table to choose yet.",
        help=Help.EDIT,
    ),
    "source:file-unreadable": of_table(
        "File not readable",
        "The newest file of `{table}` can't be read as {format}.",
        "Send the file again, or choose the right format.",
        "Its columns are not known.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "source:no-key-named": of_table(
        "No key columns",
        "No columns are named that identify a row of `{table}`.",
        "Edit the source, and write the table's key columns, for example `{name}: id`.",
        "Deliveries can't be compared without a key.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "source:key-column-missing": of_table(
        "Key column missing",
        "`{table}` has no column `{column}`, which is named as its key. It has: {columns}.",
        "Edit the source, and correct the table's key columns.",
        "Deliveries can't be compared without a key.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "source:key-column-type": of_table(
        "Column can't be a key",
        "The key column `{column}` of `{table}` has the type {native}.",
        "Name another key column, or another type for it.",
        "Deliveries can't be compared.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "source:delivery-unreadable": _refused(
        "Delivery not readable",
        "The delivery {delivery} of `{table}` can't be read as {format}.",
        "Send it again. If other files have another format, choose that format.",
    ),
    "source:delivery-malformed": _refused(
        "Lines do not fit",
        "{rows} rows of the delivery {delivery} of `{table}` do not have as many values as there "
        "are columns, or are no JSON.",
        "Look for a wrong delimiter or an open quote, and send the delivery again.",
    ),
    "source:delivery-column-missing": _refused(
        "Column missing in a delivery",
        "The delivery {delivery} of `{table}` has no column {columns}. It has: {present}.",
        "Send it with that column. If the column is gone for good, take it out of the table's "
        "columns.",
    ),
    "source:delivery-key-null": _refused(
        "Key without a value",
        "{rows} rows of the delivery {delivery} of `{table}` have no value, or one of another "
        "type, in a key column ({columns}).",
        "Send the delivery with a value in each key column, or choose other key columns.",
    ),
    "source:delivery-key-repeated": _refused(
        "Key not unique",
        "In the delivery {delivery} of `{table}`, {keys} keys come more than once, in {rows} rows: "
        "{sample}.",
        "Send each key once, or choose key columns that identify a row.",
    ),
    "source:delivery-shrank": _refused(
        "Delivery too small",
        "The delivery {delivery} of `{table}` has {rows} rows, and would delete {lost} of {before} "
        "rows ({percent} %). At most {limit} % may be deleted.",
        "If that is right, raise the largest loss of the source; the delivery is then tried again. "
        "Otherwise send the whole delivery.",
    ),
    "source:delivery-too-large": _refused(
        "Delivery too large",
        "The delivery {delivery} of `{table}` has more than {limit} portions of changes.",
        "Send it in several deliveries.",
    ),
}
REFUSALS = frozenset(code for code in MESSAGES if code.startswith("source:delivery-"))
"""The codes that refuse one delivery; everything else stops the run or the table."""
