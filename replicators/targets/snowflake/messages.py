"""Texts of the errors and problems that only Snowflake as a target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAIT = "Changes wait in the change log."
_STOPS = "Nothing is merged into it; the other tables go on."

MESSAGES: Mapping[str, Message] = {
    "target:snowflake-account": of_table(
        "Snowflake does not answer",
        "The account `{account}` does not answer, or the connection to it was cut. An open "
        "transaction is rolled back, or the progress row shows that it was committed.",
        "Check the account's identifier and the network. It is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:snowflake-login": Message(
        "Login refused",
        "Snowflake refused the user `{user}`, its key or password, or its role.",
        "Check them. The user's public key must be that of the private key, a role must be "
        "granted to it, and a network policy must let this machine in.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:snowflake-key": Message(
        "Private key not readable",
        "The private key can't be read, or its passphrase is wrong.",
        "Enter the whole content of the key's file, and the passphrase if it is encrypted.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:snowflake-database": Message(
        "No such database",
        "The database `{database}` is not there, or the role may not see it.",
        "Make it, or give the role USAGE on it. Capital letters count in its name.",
        "Nothing can be written.",
        help=Help.EDIT,
    ),
    "target:snowflake-warehouse": of_table(
        "Warehouse can't be used",
        "The warehouse `{warehouse}` is not there, can't be resumed, or the role may not use it.",
        "Make it, or give the role USAGE and OPERATE on it. Capital letters count in its name.",
        _WAIT,
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:snowflake-runs-on": Message(
        "The warehouse may run all the time",
        "The warehouse `{warehouse}` is suspended after {seconds} seconds without work. It is "
        "billed until then.",
        "Run `ALTER WAREHOUSE {warehouse} SET AUTO_SUSPEND = 60;`, or let this program suspend it.",
    ),
    "target:snowflake-quota": of_table(
        "Credits used up",
        "A resource monitor has stopped the warehouse `{warehouse}`: its credits are used up.",
        "Raise the monitor's quota, or wait for its next interval. It is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:snowflake-right": of_table(
        "Right missing at the target",
        "Snowflake refused a statement for `{table}`: the role lacks a right on `{target}`.",
        "The help beside the form has the grants. It is tried again by itself.",
        _WAIT,
        retry=Retry.AFTER_FIX,
    ),
    "target:snowflake-name": of_table(
        "Name too long",
        "`{name}`, of table `{table}`, has more than {most} characters: Snowflake has no longer "
        "names.",
        "Leave it out, or rename it at the source.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:snowflake-value": of_table(
        "Value that Snowflake can't hold",
        "A row of table `{table}` has a value that Snowflake refuses. The number of its error is "
        "{number}.",
        "Correct the value at the source, then press Retry now (re-sync a copy that keeps every "
        "change). Or leave the column out.",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:snowflake-cancelled": of_table(
        "Statement cancelled at the target",
        "Snowflake cancelled a statement for `{table}`: somebody asked for it, or a time limit was "
        "over.",
        "Nothing to do: it is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:snowflake-refused": of_table(
        "Statement refused by Snowflake",
        "Snowflake refused a statement for `{table}`. The number of its error is {number}.",
        "The log has its words. It is tried again by itself.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
}
