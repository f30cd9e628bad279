"""Texts of errors and problems that only the lakehouse target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

MESSAGES: Mapping[str, Message] = {
    "target:store-classes": Message(
        "Spark may lack the store's classes",
        "The warehouse lies in an object store. The classes that Spark needs for it do not come "
        "with this version.",
        "Choose a folder, or use a Spark of your own (REPLICATOR_SPARK_REMOTE or "
        "REPLICATOR_SPARK_MASTER) that has the store's connector.",
        "Without these classes the run fails at its start.",
    ),
    "target:conflict": of_table(
        "Another writer",
        "Another program wrote to the target table of `{table}` at the same time.",
        "Nothing to do: it is tried again. If it repeats, stop the other writer.",
        retry=Retry.AUTO,
    ),
    "target:column-missing": of_table(
        "Target column missing",
        "The target table of `{table}` lacks a column that this replicator had made.",
        "Somebody dropped or renamed it there. Re-sync the table.",
        "Nothing is merged into it; the other tables go on.",
    ),
    "target:name-reserved": of_table(
        "Name kept for progress",
        "`{table}` would be copied to `{target}`, where replicators tell readers how far they are.",
        "Choose another namespace for the target, or leave the table out.",
        "The table can't be copied.",
        retry=Retry.AFTER_FIX,
    ),
    "target:column-reserved": of_table(
        "Column name reserved by Iceberg",
        "Table `{table}` has a column `{column}`, a name that Iceberg keeps for itself.",
        "Leave the column out, rename it at the source, or use Delta. A column that came while "
        "the table was copied: rename it, and a mirror is copied afresh by itself within minutes; "
        "re-sync a table of another mode.",
        "Changes cannot be merged into a table with such a column; its rows stay in the target as "
        "they were.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
}
