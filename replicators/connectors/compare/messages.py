"""Texts of the errors that comparing data sets has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Message, Retry

_ASKED = Retry.NEVER  # a person runs it, and a person mends what is wrong

COMPARE_MESSAGES: Mapping[str, Message] = {
    "compare:config": Message(
        "Configuration has faults",
        "The configuration can't be used. {faults}.",
        "Correct these lines. docs/compare.md describes every setting.",
        retry=_ASKED,
    ),
    "compare:type": Message(
        "Type without a hash",
        "Column `{column}` has the type {type}, which can't be hashed.",
        "Give the column another type, or keep it out of the comparison.",
        retry=_ASKED,
    ),
    "compare:input": Message(
        "Data set can't be read",
        "The data set `{path}` can't be read as {format}.",
        "Check that the path exists, that it has files of this format, and that Spark may read "
        "them.",
        retry=_ASKED,
    ),
    "compare:column-missing": Message(
        "Columns missing in the data set",
        "The data set `{path}` lacks these columns: {columns}.",
        "Deliver them, or take them out of the configuration.",
        retry=_ASKED,
    ),
    "compare:column-not-castable": Message(
        "Column has a type that can't become the configured one",
        "Column `{column}` arrives as {found}. That can't become {wanted}.",
        "Change the column's type in the configuration.",
        retry=_ASKED,
    ),
    "compare:duplicate-keys": Message(
        "Keys that come more than once",
        "{number} keys come more than once in the data set: {named}.",
        "Deliver each key once, or add the column that tells these rows apart to the keys.",
        retry=_ASKED,
    ),
    "compare:empty": Message(
        "Full data set without rows",
        "The data set `{path}` has no row that can be used, and it is a full one. Comparing it "
        "would mark every row as deleted.",
        "Look at the delivery. If it is right, run the comparison with --allow-deletes.",
        retry=_ASKED,
    ),
    "compare:too-many-deleted": Message(
        "Too many rows would be deleted",
        "{deleted} of {total} rows are missing in this full data set. The limit is a share of "
        "{limit} (max_deleted).",
        "Look at the delivery. If it is right, run the comparison with --allow-deletes.",
        retry=_ASKED,
    ),
    "compare:date-back": Message(
        "Effective date goes back",
        "The effective date {day} is before {last}, the date of the current data set.",
        "Give a later date. Sets are compared in the order of their dates.",
        retry=_ASKED,
    ),
    "compare:collision": Message(
        "Different values have the same hash",
        "{number} rows have the same hash as other values, for example those with the key hashes "
        "{named}.",
        "Set `hash: sha256` in the configuration and run the comparison again. Nothing was "
        "changed.",
        retry=_ASKED,
    ),
    "compare:not-ours": Message(
        "Place holds something else",
        "There is a table or a folder at `{place}` that no comparison wrote.",
        "Name another place for the current data set, or remove what is there.",
        retry=_ASKED,
    ),
    "compare:history-without-current": Message(
        "History without a current data set",
        "The history at `{place}` has rows of {days}, but there is no current data set.",
        "Name another place for the history, or remove these rows. They may be left from a first "
        "run that was killed.",
        retry=_ASKED,
    ),
    "compare:history-columns": Message(
        "History has a column of another type",
        "Column `{column}` of `{place}` has the type {found}. The configuration says {wanted}.",
        "Keep the type, name the new column differently, or begin with new places.",
        retry=_ASKED,
    ),
    "compare:sensitive-changed": Message(
        "Sensitive columns can't change",
        "The current data set was made with other sensitive columns, or with other hashes of the "
        "keys. Rows and their sensitive columns could not be joined any more.",
        "Restore the configuration, or begin with new places.",
        retry=_ASKED,
    ),
    "compare:busy": Message(
        "Another comparison goes on",
        "Process {process} on {host} compares `{place}` since {since}.",
        "Wait until it has ended, and run the comparison again. Nothing was changed by this one.",
        retry=_ASKED,
    ),
    "compare:overtaken": Message(
        "Another comparison was faster",
        "Another comparison published a current data set at `{place}` meanwhile.",
        "Run one comparison of a data set at a time. Nothing was changed by this one.",
        retry=_ASKED,
    ),
}
