"""Texts of the errors and problems that only PostgreSQL as a target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAIT = "Changes wait in the change log."
_STOPS = "Nothing is merged into it; the other tables go on."

MESSAGES: Mapping[str, Message] = {
    # The connection
    "target:postgresql-unreachable": of_table(
        "Target not reachable",
        "The target's server at `{host}:{port}` does not answer.",
        "Check host and port, that the server runs, and that its firewall lets this machine in. "
        "It is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:postgresql-host": Message(
        "Unknown host",
        "The target's host name `{host}` does not exist.",
        "Check the spelling of the host name.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:postgresql-login": Message(
        "Login refused",
        "The target's server refused the user name or the password.",
        "Check user and password, and that `pg_hba.conf` lets this user in from this machine.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:postgresql-database": Message(
        "Database missing",
        "There is no database `{database}` on the target's server.",
        "Check the name, or run `CREATE DATABASE {database} ENCODING 'UTF8' TEMPLATE template0;`",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:postgresql-tls": Message(
        "TLS failed",
        "The encrypted connection to the target could not be made with sslmode `{sslmode}`.",
        "Choose the sslmode that the server offers, or install its certificate.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:postgresql-lost": of_table(
        "Connection to the target lost",
        "The connection to the target's server was cut. An open transaction was rolled back, or "
        "the table's progress row shows that it was committed.",
        "Nothing to do: it is tried again by itself. If it repeats, look at the server's log and "
        "the network.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:postgresql-connections": of_table(
        "No free connection at the target",
        "The target's server accepts no more connections.",
        "Close connections that are not needed, or raise `max_connections` (or the user's "
        "`CONNECTION LIMIT`). A replicator uses up to one connection for each table that it "
        "merges at the same time.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:postgresql-read-only": of_table(
        "Target is read-only",
        "The target's server takes no writes: it is a standby, or its administrator made it "
        "read-only.",
        "Give the address of the primary server, or let it take writes again "
        "(`default_transaction_read_only`). It is tried again by itself.",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:postgresql-version": Message(
        "Target server too old",
        "The target's server runs PostgreSQL {version}; version 14 or newer is needed.",
        "Upgrade the server.",
        "Nothing can be written.",
        retry=Retry.NEVER,
    ),
    "target:postgresql-encoding": Message(
        "Database not in UTF-8",
        "The database `{database}` keeps text in {encoding}, which has no form for many "
        "characters.",
        "Make another one: `CREATE DATABASE {database} ENCODING 'UTF8' TEMPLATE template0;`",
        "A table stops at the first text that does not fit.",
    ),
    # Rights
    "target:postgresql-create-schema": Message(
        "CREATE right on the database missing",
        "The user `{user}` may not make schema `{target}` in database `{database}`.",
        "Run `GRANT CREATE ON DATABASE {database} TO {user};`, or make the schema for it: "
        "`CREATE SCHEMA {target} AUTHORIZATION {user};`",
        "Its tables can't be made.",
    ),
    "target:postgresql-create-table": Message(
        "CREATE right on the schema missing",
        "The user `{user}` may not make tables in schema `{target}`.",
        "Run `GRANT USAGE, CREATE ON SCHEMA {target} TO {user};`",
        "Its tables can't be made.",
    ),
    "target:postgresql-owner": of_table(
        "Target table has another owner",
        "The target table `{target}` belongs to another role than `{user}`, so it can't be "
        "altered.",
        "Run `ALTER TABLE {target} OWNER TO {user};`",
        "Nothing is written to it.",
        retry=Retry.AFTER_FIX,
    ),
    "target:postgresql-tablespace": Message(
        "CREATE right on the tablespace missing",
        "The database's default tablespace is `{tablespace}`, where the user `{user}` may not make "
        "tables.",
        "Run `GRANT CREATE ON TABLESPACE {tablespace} TO {user};`",
        "The tables can't be made.",
    ),
    "target:postgresql-right": of_table(
        "Right missing at the target",
        "The target's server refused a statement for `{table}`: the user `{user}` lacks a right "
        "on `{target}` or on its schema.",
        "The user has to own the table (`ALTER TABLE {target} OWNER TO {user};`), and needs USAGE "
        "and CREATE on its schema. An assessment names what is missing. It is tried again by "
        "itself.",
        _WAIT,
        retry=Retry.AFTER_FIX,
    ),
    # Names
    "target:postgresql-same-table": of_table(
        "The copy would be the table itself",
        "The target table of `{table}` is the source's own table.",
        "Choose another schema or another database for the target.",
        "The table can't be copied onto itself.",
        help=Help.EDIT,
    ),
    "target:postgresql-shortened": of_table(
        "Name is shortened",
        "PostgreSQL keeps 63 bytes of a name, so `{table}` becomes `{target}`.",
        "Nothing has to be done.",
    ),
    "target:postgresql-schema-name": of_table(
        "Schema name kept by PostgreSQL",
        "`{table}` would be copied into schema `{target}`: PostgreSQL keeps names that begin with "
        "pg_ for itself.",
        "Give the target a schema.",
        "The table can't be copied.",
        help=Help.EDIT,
    ),
    "target:postgresql-column-name": of_table(
        "Column name not possible",
        "Column `{column}` of table `{table}`: PostgreSQL can't have a column of that name "
        "({reason}).",
        "Leave the column out, or rename it at the source.",
        "The table can't be copied with it.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
    "target:postgresql-too-many-columns": of_table(
        "Too many columns",
        "Table `{table}` has {count} columns. PostgreSQL takes at most 1,600, and a staging table "
        "needs some of them.",
        "Leave columns out.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    # Writing
    "target:postgresql-value": of_table(
        "Value that PostgreSQL can't hold",
        "A row of table `{table}` has a value that PostgreSQL refuses: {reason}.",
        "Correct the value at the source, then press Retry now (re-sync a copy that keeps every "
        "change). Or leave the column out. Where no column is named, the server's own log names "
        "it.",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:postgresql-limit": of_table(
        "Limit of PostgreSQL reached",
        "A row of table `{table}` is beyond a limit of PostgreSQL: {reason}.",
        "Make the value smaller at the source, then press Retry. A key's values together may have "
        "some 2,700 bytes.",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:postgresql-lock": of_table(
        "Waiting for a lock at the target",
        "The target table of `{table}`, or rows of it, are locked by another session for more than "
        "{seconds} s.",
        "Look who holds it: `SELECT a.pid, a.usename, a.query FROM pg_locks l JOIN "
        "pg_stat_activity a USING (pid) WHERE l.relation = '{target}'::regclass;`. End that "
        "session (`SELECT pg_terminate_backend(pid);`), or let it finish. It is tried again by "
        "itself.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:postgresql-cancelled": of_table(
        "Statement cancelled at the target",
        "The target's server cancelled a statement for `{table}`: somebody asked for it, or a time "
        "limit of the server was over.",
        "Nothing to do: it is tried again by itself. If it repeats, look for a "
        "`statement_timeout` or a program that cancels statements.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:postgresql-memory": of_table(
        "Target out of memory",
        "The target's server had not enough memory for a statement for `{table}`.",
        "It is tried again by itself. If it repeats, lower `work_mem` or give the server more "
        "memory.",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:postgresql-table-changed": of_table(
        "Target table changed by hand",
        "The target table of `{table}` has a column of another type than this replicator made.",
        "Give the column its type again and press Retry, or re-sync the table.",
        _STOPS,
    ),
    "target:postgresql-constraint": of_table(
        "Constraint of the target table broken",
        "Rows of table `{table}` break the constraint `{constraint}` of its target table, which "
        "this replicator did not make.",
        "Run `ALTER TABLE {target} DROP CONSTRAINT {constraint};` there. It is tried again by "
        "itself.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:postgresql-trigger": of_table(
        "A trigger refused the change",
        "A trigger or rule of the target table of `{table}` refused a change.",
        "Run `ALTER TABLE {target} DISABLE TRIGGER USER;` there. It is tried again by itself.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:postgresql-dependent": of_table(
        "Something depends on the target table",
        "A change of the target table of `{table}` is not possible while a view, a foreign key or "
        "something else depends on it.",
        "Drop what depends on it and make it anew afterwards, or re-sync the table. It is tried "
        "again by itself.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:postgresql-bound": of_table(
        "A re-sync fills the table in place",
        "A fresh copy of `{table}` can't replace its target table, since this depends on it: "
        "{dependents}.",
        "Nothing has to be done. Drop what depends on the table if a re-sync must be faster.",
        "A re-sync deletes and inserts all rows in one transaction: it takes longer, and needs "
        "room for all rows twice.",
    ),
    "target:postgresql-commit-times": Message(
        "Commit times are not kept",
        "The target's server has `track_commit_timestamp = off`, so that nobody can say which of "
        "two changes came later.",
        "Run `ALTER SYSTEM SET track_commit_timestamp = on;` and restart the server, on both "
        "sides.",
        "Nothing is merged.",
        help=Help.EDIT,
    ),
    "target:postgresql-origin-right": Message(
        "Writes may not be marked",
        "The user `{user}` may not use replication origins at the target.",
        "Run as an administrator in the target's database: {statements}",
        "Nothing is merged.",
        help=Help.EDIT,
    ),
    "target:postgresql-two-way-copy": of_table(
        "A copy would replace what was written here",
        "The target table of `{table}` is replicated both ways, so it is not copied afresh.",
        "Compare the tables on the page *Verify* and repair the rows that differ. For a fresh copy "
        "stop both ways, drop the table at the target and re-sync it; the way back then has to be "
        "built anew.",
        _STOPS,
    ),
    "target:postgresql-extension": of_table(
        "Type kept as text",
        "Column `{column}` of table `{table}` has the type `{extension}`, which the database "
        "`{database}` does not have. It is kept as text there.",
        "Run `CREATE EXTENSION {extension};` in the database as an administrator, before the first "
        "copy, if the type should stay.",
        "Each value has the same text.",
        help=Help.CHANGE,
    ),
}
