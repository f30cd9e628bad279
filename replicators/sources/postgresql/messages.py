"""Texts of the errors and problems that only PostgreSQL as a source has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

MESSAGES: Mapping[str, Message] = {
    "source:version": Message(
        "Server too old",
        "The server runs PostgreSQL {version}; version 14 or newer is needed.",
        "Upgrade the server.",
        "Changes cannot be followed.",
        retry=Retry.NEVER,
    ),
    "source:wal-level": Message(
        "wal_level is not logical",
        "The server's `wal_level` is `{value}`; following changes needs `logical`.",
        "Run `ALTER SYSTEM SET wal_level = 'logical';` as a superuser, then restart the server.",
        "Changes cannot be followed.",
    ),
    "source:replication-right": Message(
        "Replication right missing",
        "The user `{user}` may not replicate.",
        "Run `ALTER ROLE {user} REPLICATION;` as a superuser (on a managed service grant its "
        "replication role).",
        "Changes cannot be followed.",
    ),
    "source:row-security": of_table(
        "Rows hidden by policies",
        "Row-level security keeps rows of table `{table}` from the user `{user}`, but their "
        "changes are in the server's log.",
        "Run `ALTER ROLE {user} BYPASSRLS;` as a superuser, or, where the user is a member of its "
        "owner, `ALTER TABLE {quoted} NO FORCE ROW LEVEL SECURITY;` (for each partition too).",
        "The table cannot be copied as a whole.",
        retry=Retry.AFTER_FIX,
    ),
    "source:usage-right": of_table(
        "USAGE right missing",
        "The user `{user}` may not use schema `{schema}`.",
        "Run `GRANT USAGE ON SCHEMA {schema} TO {user};`",
        "Its tables cannot be copied.",
        retry=Retry.AFTER_FIX,
    ),
    "source:publication-right": Message(
        "Publication can't be made",
        "The user `{user}` may not publish table `{table}`: only its owner or a superuser may.",
        "Make the user a member of the role that owns the table (`GRANT owner TO {user};`), or "
        "run `ALTER TABLE {quoted} OWNER TO {user};`",
        "Changes of the table cannot be followed.",
    ),
    "source:slots-used-up": Message(
        "No free replication slot",
        "All {limit} replication slots of the server are in use.",
        "Drop a slot that is not needed (`SELECT slot_name, active FROM pg_replication_slots;`) "
        "or raise `max_replication_slots` and restart the server.",
        "Changes cannot be followed.",
    ),
    "source:senders-used-up": Message(
        "No free WAL sender",
        "All {limit} WAL senders of the server are in use.",
        "Raise `max_wal_senders` and restart the server.",
        "Changes cannot be followed.",
    ),
    "source:standby": Message(
        "Server is a standby",
        "The server is a standby: a replicator needs the primary.",
        "Give the address of the primary server, unless this one is about to take over.",
        "Changes cannot be followed.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:create-right": Message(
        "CREATE right missing",
        "The user `{user}` may not create a publication in database `{database}`.",
        "Run `GRANT CREATE ON DATABASE {database} TO {user};`",
        "Changes cannot be followed.",
    ),
    "source:table-unlogged": of_table(
        "Table is not logged",
        "Table `{table}` is unlogged or temporary: its changes are not in the server's log.",
        "Run `ALTER TABLE {quoted} SET LOGGED;`, or take the table out of the selection.",
        "Its changes cannot be followed.",
        retry=Retry.AFTER_FIX,
    ),
    "source:slot-invalidated": Message(
        "Replication slot invalidated",
        "The server gave up the replication slot `{slot}` because it held more log than "
        "`max_slot_wal_keep_size` allows.",
        "Raise `max_slot_wal_keep_size`, then re-sync the tables.",
        "Changes were lost; only a re-sync brings them.",
        retry=Retry.NEVER,
        ends_log=True,
    ),
    "source:slot-in-use": Message(
        "Replication slot in use",
        "Another process reads the replication slot `{slot}`.",
        "Wait until the previous run's connection has ended; if another program uses the slot, "
        "stop it.",
        retry=Retry.AUTO,
    ),
    "source:text-encoding": Message(
        "Text without a form in Unicode",
        "The server can't send a change: a text in it is not valid in the database's encoding, or "
        "has no form in Unicode.",
        "Correct the text at the source, then re-sync all tables: the log can't be read past this "
        "change. The server's own log names the bytes.",
        "The server keeps its log from this change on.",
        retry=Retry.NEVER,
    ),
    "source:schema-ambiguous": of_table(
        "Schema change unclear",
        "Table `{table}` was changed at the source in a way that has more than one reading: "
        "{change}.",
        "Re-sync the table.",
        copy_mends=True,
    ),
    "source:log-retention": Message(
        "Log kept without limit",
        "`max_slot_wal_keep_size` is not set, so a paused replicator can fill the server's disk.",
        "Set it to what the disk can spare, for example `ALTER SYSTEM SET max_slot_wal_keep_size "
        "= '50GB';`",
        "While the replicator is paused the server keeps all of its log.",
    ),
}
