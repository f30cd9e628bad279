"""Texts of the errors and problems that only MySQL and MariaDB as a target have."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAIT = "Changes wait in the change log."
_STOPS = "Nothing is merged into it; the other tables go on."

MESSAGES: Mapping[str, Message] = {
    # The connection
    "target:mysql-unreachable": of_table(
        "Target not reachable",
        "The target's server at `{host}:{port}` does not answer.",
        "Check host and port, that the server runs, and that its firewall lets this machine in. "
        "It is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:mysql-host": Message(
        "Unknown host",
        "The target's host name `{host}` does not exist.",
        "Check the spelling of the host name.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:mysql-login": Message(
        "Login refused",
        "The target's server refused the user name or the password.",
        "Check user and password, and that the user may log in from this machine "
        "(`CREATE USER {user}@'%'`).",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:mysql-tls": Message(
        "TLS failed",
        "The encrypted connection to the target could not be made with TLS `{sslmode}`.",
        "Choose the TLS that the server offers, or install its certificate.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:mysql-tls-file": Message(
        "TLS authority not readable",
        "The file of certificates `{path}` {reason}.",
        "Give the path of a file in PEM form that this program may read.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:mysql-lost": of_table(
        "Connection to the target lost",
        "The connection to the target's server was cut. An open transaction was rolled back, or "
        "the table's progress row shows that it was committed.",
        "Nothing to do: it is tried again by itself. If it repeats, look at the server's log and "
        "the network.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:mysql-connections": of_table(
        "No free connection at the target",
        "The target's server accepts no more connections.",
        "Close connections that are not needed, or raise `max_connections` (or the user's limit). "
        "A replicator uses up to one connection for each table that it merges at the same time.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:mysql-read-only": of_table(
        "Target is read-only",
        "The target's server takes no writes: it is a replica, or its administrator made it "
        "read-only.",
        "Give the address of the primary server, or run `SET GLOBAL read_only = OFF;`. It is tried "
        "again by itself.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:mysql-version": Message(
        "Target server too old",
        "The target's server runs {version}; MySQL 8.0.17 or MariaDB 10.6, or newer, is needed.",
        "Upgrade the server.",
        "Nothing can be written.",
        retry=Retry.NEVER,
    ),
    "target:mysql-durability": Message(
        "Commits may be lost in a crash",
        "The target's server has `{setting}` = {value}: a crash of its machine may lose commits "
        "that it acknowledged.",
        "Run `SET GLOBAL {setting} = 1;` and put it into the server's configuration.",
        "After such a crash the tables stop, and need a fresh copy.",
    ),
    "target:mysql-statement-log": of_table(
        "Log of statements at the target",
        "The target's server writes its log with `binlog_format` = STATEMENT. InnoDB takes no "
        "merge with it.",
        "Run `SET GLOBAL binlog_format = 'ROW';`. It is tried again by itself.",
        _WAIT,
        retry=Retry.AFTER_FIX,
    ),
    # Rights and names
    "target:mysql-rights": Message(
        "Rights on the database missing",
        "The user `{user}` lacks {rights} on database `{target}` of the target.",
        "Run `GRANT {rights} ON {target}.* TO {user};`",
        "Its tables can't be written.",
    ),
    "target:mysql-right": of_table(
        "Right missing at the target",
        "The target's server refused a statement for `{table}`: the user `{user}` lacks a right "
        "on `{target}`.",
        "An assessment names what is missing. It is tried again by itself.",
        _WAIT,
        retry=Retry.AFTER_FIX,
    ),
    "target:mysql-name": of_table(
        "Name not possible",
        "`{table}` would become `{target}`: MySQL can't have that name ({reason}).",
        "Give the target a database, or rename the table at the source.",
        "The table can't be copied.",
        help=Help.EDIT,
    ),
    "target:mysql-column-name": of_table(
        "Column name not possible",
        "Column `{column}` of table `{table}`: MySQL can't have a column of that name ({reason}).",
        "Leave the column out, or rename it at the source.",
        "The table can't be copied with it.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
    "target:mysql-too-many-columns": of_table(
        "Too many columns",
        "Table `{table}` has {count} columns. InnoDB takes at most 1,017, and a staging table "
        "needs some of them.",
        "Leave columns out.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    # Writing
    "target:mysql-value": of_table(
        "Value that MySQL can't hold",
        "A row of table `{table}` has a value that MySQL refuses: {reason}.",
        "Correct the value at the source, then press Retry now (re-sync a copy that keeps every "
        "change). Or leave the column out.",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:mysql-packet": of_table(
        "Row larger than a packet",
        "A row of table `{table}` is larger than the target's `max_allowed_packet`.",
        "Raise it: `SET GLOBAL max_allowed_packet = 1073741824;`. Then press Retry now.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:mysql-lock": of_table(
        "Waiting for a lock at the target",
        "The target table of `{table}`, or rows of it, are locked by another session for more than "
        "{seconds} s.",
        "Look who holds it: `SHOW PROCESSLIST;`. End that session (`KILL` with its number), or let "
        "it finish. It is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:mysql-cancelled": of_table(
        "Statement cancelled at the target",
        "The target's server cancelled a statement for `{table}`: somebody asked for it, or a time "
        "limit of the server was over.",
        "Nothing to do: it is tried again by itself. If it repeats, look for a program that "
        "cancels statements.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:mysql-table-changed": of_table(
        "Target table changed by hand",
        "The target table of `{table}` has a column of another type than this replicator made.",
        "Give the column its type again and press Retry, or re-sync the table.",
        _STOPS,
    ),
    "target:mysql-constraint": of_table(
        "Constraint of the target table broken",
        "Rows of table `{table}` break a constraint of its target table, which this replicator did "
        "not make.",
        "Drop the constraint from `{target}`. It is tried again by itself.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:mysql-trigger": of_table(
        "A trigger refused the change",
        "A trigger of the target table of `{table}` refused a change.",
        "Drop the trigger from `{target}`. It is tried again by itself.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
}
