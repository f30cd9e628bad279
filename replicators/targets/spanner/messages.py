"""Texts of the errors and problems that only Spanner as a target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAIT = "Changes wait in the change log."
_AGAIN = "It is tried again by itself."
_STOPS = "Nothing is merged into it; the other tables go on."

MESSAGES: Mapping[str, Message] = {
    "target:spanner-unreachable": of_table(
        "Spanner does not answer",
        "The database `{database}` of the instance `{instance}` did not answer in time.",
        f"Nothing to do if it is an outage of the service. Otherwise check the endpoint and the "
        f"network. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:spanner-credentials": Message(
        "Spanner refused the credentials",
        "Google did not take the service account key, or the machine has no credentials.",
        "Enter the key of an account that exists, or let the machine run as such an account.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:spanner-database": Message(
        "No such database",
        "Spanner has no database `{database}` in the instance `{instance}` of the project "
        "`{project}`, or the database has the PostgreSQL dialect.",
        "Make the database with the GoogleSQL dialect, or correct the names.",
        "Nothing can be written.",
        help=Help.EDIT,
    ),
    "target:spanner-right": Message(
        "Right missing in Spanner",
        "The account lacks a right on the database `{database}`.",
        "Give it the role roles/spanner.databaseUser on the database: it reads and writes rows, "
        f"and makes tables. {_AGAIN}",
        _WAIT,
    ),
    "target:spanner-quota": of_table(
        "Spanner has no room for more work",
        "The instance `{instance}` refused a call: a quota is used up, or the instance is too "
        "small for its load.",
        f"Add nodes to the instance, or raise the quota. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:spanner-limit": of_table(
        "A row or a commit is too large for Spanner",
        "Spanner refused rows of `{table}`: a value has more than 10 MiB, a text more than "
        "2,621,440 characters, a key more than 8 KiB, or indexes make a commit larger than Spanner "
        "takes.",
        "Leave the column out, or drop indexes of the copy that nobody needs. Then copy the table "
        "again.",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:spanner-refused": of_table(
        "Spanner refused a statement or a row",
        "Spanner refused what was written for `{table}`. The log has its own words.",
        f"Undo what was changed at the copy by hand, such as a column that must not be NULL. "
        f"{_AGAIN}",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:spanner-renamed": of_table(
        "Another name in Spanner",
        "`{name_there}` of `{table}` is called `{made}` in Spanner: names there begin with a "
        "letter, and have letters, digits and underscores only.",
        "Nothing to do. Queries use the new name.",
    ),
    "target:spanner-wide": of_table(
        "Too many columns for Spanner",
        "`{table}` has {count} {what}. This target takes at most {most}.",
        "Leave columns out, or choose another key.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:spanner-name": of_table(
        "The name is too long for Spanner",
        "Spanner's names have at most 128 characters, and this program writes letters that Spanner "
        "has not by their numbers. `{name}` of `{table}` becomes too long.",
        "Rename it at the source, or leave it out.",
        "The table can't be copied.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
    "target:spanner-key": of_table(
        "The key can't be one in Spanner",
        "The column `{column}` of the key of `{table}` has a type that no key in Spanner may have.",
        "Choose another key, or copy the table in the mode Append.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:spanner-column": of_table(
        "The commit timestamp column is taken",
        "`{table}` has a column `{column}`, which is the name of the commit timestamp column.",
        "Choose another name for the commit timestamp column.",
        "The table can't be copied.",
        help=Help.EDIT,
    ),
}
