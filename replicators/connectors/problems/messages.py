"""For every code its texts, its retry rule and its scope. Problems and errors share them, so both read alike.

Texts are for the user: what happened, to what, what to do. `{placeholders}` are named values of ours. A problem found
before the run and the error of a run that meets the same fault use one code.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from enum import StrEnum


class Retry(StrEnum):
    """AUTO: the outer loop tries again. AFTER_FIX: tried again, slowly, since a person has to mend something.
    NEVER: only an act (re-sync, edit) goes on."""

    AUTO = "auto"
    AFTER_FIX = "after_fix"
    NEVER = "never"


class Scope(StrEnum):
    """What an error stops."""

    RUN = "run"
    TABLE = "table"


class _Lenient(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"({key})"


@dataclass(frozen=True, slots=True)
class Message:
    """Texts of a code: `title` (a few words), `text` (what happened), `suggestion` (what to do), `impact` (what if not)."""

    title: str
    text: str
    suggestion: str
    impact: str = ""
    retry: Retry = Retry.AFTER_FIX
    scope: Scope = Scope.RUN

    def render(self, values: dict[str, str]) -> Message:
        """The same message with its placeholders filled; a value that is missing shows its name in brackets."""
        known = _Lenient(values)
        fill = string.Formatter().vformat
        return replace(
            self,
            title=fill(self.title, (), known),
            text=fill(self.text, (), known),
            suggestion=fill(self.suggestion, (), known),
            impact=fill(self.impact, (), known),
        )


_TABLE_NEVER = {"retry": Retry.NEVER, "scope": Scope.TABLE}
_TABLE_FIX = {"retry": Retry.AFTER_FIX, "scope": Scope.TABLE}

MESSAGES: dict[str, Message] = {
    # --- source: connection and rights -------------------------------------------------------------------------
    "source:unreachable": Message(
        "Source not reachable",
        "No server answers at host `{host}`, port {port}.",
        "Check host and port, that the server runs, and that its firewall lets this machine in.",
        "Nothing can be read until the server answers.",
        Retry.AUTO,
    ),
    "source:unknown-host": Message(
        "Unknown host",
        "The host name `{host}` does not exist.",
        "Check the spelling of the host name.",
        "Nothing can be read.",
        Retry.AUTO,
    ),
    "source:timeout": Message(
        "Source does not answer in time",
        "The server did not answer within {seconds} seconds.",
        "Check network and load of the server, then try again.",
        "",
        Retry.AUTO,
    ),
    "source:login-refused": Message(
        "Login refused",
        "The server refused the user name or the password.",
        "Check user and password, and that the server lets this user in from this machine (PostgreSQL: pg_hba.conf, also for replication).",
        "Nothing can be read.",
    ),
    "source:database-missing": Message(
        "Database missing",
        "There is no database `{database}` on the server.",
        "Check the database name.",
        "Nothing can be read.",
    ),
    "source:tls": Message(
        "TLS failed",
        "The encrypted connection could not be made with sslmode `{sslmode}`.",
        "Choose the sslmode that the server offers, or install its certificate.",
        "Nothing can be read.",
    ),
    "source:tls-file": Message(
        "TLS authority can't be read",
        "`{path}` {reason}.",
        "Enter the path of a file with certificates in PEM form, or leave it empty.",
        "Nothing can be read.",
    ),
    "source:connection-lost": Message(
        "Connection lost",
        "The connection to the source was cut.",
        "Nothing to do: it is made again by itself. If it repeats, look at the server's log and the network.",
        "Changes arrive later.",
        Retry.AUTO,
    ),
    "source:server-changed": Message(
        "Another server answers",
        "The source's address leads to another server than before, while the log is still read from the old one.",
        "Nothing to do where that server took over: the log goes on there once the old connection ends. An address that leads to "
        "several servers in turn is no good for a replicator: name one of them.",
        "Copies and figures wait.",
        Retry.AUTO,
    ),
    "source:version": Message(
        "Server too old",
        "The server runs PostgreSQL {version}; version 14 or newer is needed.",
        "Upgrade the server.",
        "Changes cannot be followed.",
        Retry.NEVER,
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
        "Run `ALTER ROLE {user} REPLICATION;` as a superuser (on a managed service grant its replication role).",
        "Changes cannot be followed.",
    ),
    "source:select-right": Message(
        "SELECT right missing",
        "The user `{user}` may not read table `{table}`.",
        "Run `GRANT SELECT ON {quoted} TO {user};`",
        "The table cannot be copied.",
        **_TABLE_FIX,  # type: ignore[arg-type]
    ),
    "source:row-security": Message(
        "Rows hidden by policies",
        "Row-level security keeps rows of table `{table}` from the user `{user}`, but their changes are in the server's log.",
        "Run `ALTER ROLE {user} BYPASSRLS;` as a superuser, or, where the user is a member of its owner, "
        "`ALTER TABLE {quoted} NO FORCE ROW LEVEL SECURITY;` (for each partition too).",
        "The table cannot be copied as a whole.",
        **_TABLE_FIX,  # type: ignore[arg-type]
    ),
    "source:usage-right": Message(
        "USAGE right missing",
        "The user `{user}` may not use schema `{schema}`.",
        "Run `GRANT USAGE ON SCHEMA {schema} TO {user};`",
        "Its tables cannot be copied.",
        **_TABLE_FIX,  # type: ignore[arg-type]
    ),
    "source:publication-right": Message(
        "Publication can't be made",
        "The user `{user}` may not publish table `{table}`: only its owner or a superuser may.",
        "Make the user a member of the role that owns the table (`GRANT owner TO {user};`), or run `ALTER TABLE {quoted} OWNER TO {user};`",
        "Changes of the table cannot be followed.",
    ),
    "source:slots-used-up": Message(
        "No free replication slot",
        "All {limit} replication slots of the server are in use.",
        "Drop a slot that is not needed (`SELECT slot_name, active FROM pg_replication_slots;`) or raise "
        "`max_replication_slots` and restart the server.",
        "Changes cannot be followed.",
    ),
    "source:senders-used-up": Message(
        "No free WAL sender",
        "All {limit} WAL senders of the server are in use.",
        "Raise `max_wal_senders` and restart the server.",
        "Changes cannot be followed.",
    ),
    "source:connections-used-up": Message(
        "No free connection",
        "The server accepts no more connections.",
        "Close connections that are not needed, or raise `max_connections` and restart the server.",
        "Nothing can be read until a connection is free.",
        Retry.AUTO,
    ),
    "source:standby": Message(
        "Server is a standby",
        "The server is a standby: a replicator needs the primary.",
        "Give the address of the primary server, unless this one is about to take over.",
        "Changes cannot be followed.",
        Retry.AUTO,
    ),
    "source:create-right": Message(
        "CREATE right missing",
        "The user `{user}` may not create a publication in database `{database}`.",
        "Run `GRANT CREATE ON DATABASE {database} TO {user};`",
        "Changes cannot be followed.",
    ),
    "source:table-unlogged": Message(
        "Table is not logged",
        "Table `{table}` is unlogged or temporary: its changes are not in the server's log.",
        "Run `ALTER TABLE {quoted} SET LOGGED;`, or take the table out of the selection.",
        "Its changes cannot be followed.",
        **_TABLE_FIX,  # type: ignore[arg-type]
    ),
    "source:column-missing": Message(
        "Column missing",
        "Table `{table}` has no column `{column}`.",
        "Take the column out of the selection.",
        "It cannot be copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:slot-missing": Message(
        "Replication slot gone",
        "The replication slot `{slot}` no longer exists on the server.",
        "Re-sync the tables: changes made since then are no longer in the log.",
        "Changes were lost between the slot's end and now; only a re-sync brings them.",
        Retry.NEVER,
    ),
    "source:slot-invalidated": Message(
        "Replication slot invalidated",
        "The server gave up the replication slot `{slot}` because it held more log than `max_slot_wal_keep_size` allows.",
        "Raise `max_slot_wal_keep_size`, then re-sync the tables.",
        "Changes were lost; only a re-sync brings them.",
        Retry.NEVER,
    ),
    "source:slot-in-use": Message(
        "Replication slot in use",
        "Another process reads the replication slot `{slot}`.",
        "Wait until the previous run's connection has ended; if another program uses the slot, stop it.",
        "",
        Retry.AUTO,
    ),
    "source:text-encoding": Message(
        "Text without a form in Unicode",
        "The server can't send a change: a text in it is not valid in the database's encoding, or has no form in Unicode.",
        "Correct the text at the source, then re-sync all tables: the log can't be read past this change. The server's own log "
        "names the bytes.",
        "The server keeps its log from this change on.",
        Retry.NEVER,
    ),
    "source:position-lost": Message(
        "Position lost",
        "The server's log no longer continues where this replicator stopped: {reason}.",
        "Re-sync the tables.",
        "Changes may be missing in the target; only a re-sync brings them.",
        Retry.NEVER,
    ),
    "source:no-tables": Message(
        "No table chosen",
        "No table is chosen.",
        "Choose at least one table.",
        "There is nothing to copy.",
        Retry.NEVER,
    ),
    "source:table-missing": Message(
        "Table missing",
        "Table `{table}` does not exist at the source.",
        "Take it out of the selection, or create it again and re-sync it.",
        "It cannot be copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:tablespace-missing": Message(
        "Table without its file",
        "Table `{table}` has no rows that could be read: its tablespace was discarded at the source, or its file is missing there.",
        "Bring the file back and run `ALTER TABLE {quoted} IMPORT TABLESPACE;`, or take the table out of the selection. It is tried again"
        " by itself.",
        "The table is not copied; what was copied before stays in the target.",
        **_TABLE_FIX,  # type: ignore[arg-type]
    ),
    "source:table-replaced": Message(
        "Table replaced",
        "Table `{table}` was dropped and created again, or rewritten, at the source.",
        "Re-sync the table.",
        "Changes since then may be missing in the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:no-key": Message(
        "No key",
        "Table `{table}` has no primary key and no replica identity, so updates and deletes cannot be followed.",
        "Choose one: `ALTER TABLE {quoted} REPLICA IDENTITY FULL;` (for each partition too), then the copy holds each row as "
        "often as the source does, updates and deletes included, at the price of whole old rows in the server's log; or a key "
        "(`ALTER TABLE {quoted} ADD PRIMARY KEY (column_name);`), which costs least; or append-only: only inserts are copied.",
        "As it is, rows updated or deleted at the source stay as they were in the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:kept-by-count": Message(
        "No key, whole rows compared",
        "Table `{table}` has no key; its rows are told apart by all of their values, and the copy holds each as often as the "
        "source does.",
        "Where the table can have a key, `ALTER TABLE {quoted} ADD PRIMARY KEY (column_name);` makes merges cheaper.",
        "The copy has two more columns, `_row_hash` and `_occurrence`; a merge into a large table looks in more files; a dropped "
        "column needs a re-sync.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:before-missing": Message(
        "Old rows no longer sent",
        "Table `{table}` has no key and is kept exactly by its whole old rows, but the source sent an update or a delete "
        "without one.",
        "Run `ALTER TABLE {table} REPLICA IDENTITY FULL;` at the source, then re-sync the table.",
        "Which row was changed is not known.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:filter-invalid": Message(
        "Row filter does not fit",
        "The row filter of table `{table}` can't be used: {reason}.",
        "Change the filter, then re-sync the table.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:filter-unsupported": Message(
        "No row filters from this source",
        "Table `{table}` has a row filter, which this source can't apply.",
        "Take the filter out.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:filter-may-be-unsent": Message(
        "The row filter looks at a column that may not be sent",
        "The row filter of table `{table}` looks at `{column}`. Where its value is large (about 2 kB) and did not change, an "
        "update does not send it.",
        "Nothing has to be done. Where such updates are many, run `ALTER TABLE {table} REPLICA IDENTITY FULL;` at the source.",
        "Such rows are read at the source, one query for up to a thousand of them.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:key-changed": Message(
        "Key changed",
        "The replica identity of table `{table}` changed at the source.",
        "Re-sync the table.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:schema-changed": Message(
        "Table changed at the source",
        "Table `{table}` changed at the source: {change}. The policy `{policy}` does not follow that.",
        "Accept the change by a re-sync of the table.",
        "Its changes are not copied until then; those up to the change are.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:table-renamed": Message(
        "Table renamed",
        "Table `{table}` is called `{now}` at the source now.",
        "Rename it back and re-sync it, or remove it here and add `{now}`.",
        "Its changes are not copied; its rows stay in the target as they were.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:table-unpublished": Message(
        "Table left the stream",
        "Table `{table}` was taken out of the source's stream by somebody else, for good or for a while, so its changes did not come.",
        "Re-sync the table; it becomes part of the stream again by that.",
        "Changes since then are missing in the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:schema-ambiguous": Message(
        "Schema change unclear",
        "Table `{table}` was changed at the source in a way that has more than one reading: {change}.",
        "Re-sync the table.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:column-unsupported": Message(
        "Column type not supported",
        "Column `{column}` of table `{table}` has type `{native}`, which cannot be copied.",
        "Exclude the column from the selection.",
        "The column is left out.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:no-columns": Message(
        "No column to copy",
        "Table `{table}` has no column that can be copied.",
        "Add a column at the source, or choose one; re-sync the table where it was copied already. Or remove it here.",
        "The table cannot be copied; where it was, its rows stay in the target as they were.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:column-compressed": Message(
        "Compressed column",
        "Column `{column}` of table `{table}` is stored compressed (`{native}`), and the log has its values in a form of its own.",
        "Run `{statement}`, which stores it uncompressed, or exclude the column from the selection.",
        "The column is left out.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:column-packed": Message(
        "Column compressed now",
        "Column `{column}` of table `{table}` is stored COMPRESSED now, and the log has its values in a form of its own.",
        "Run `ALTER TABLE {quoted} MODIFY ...` with the column as it is declared, but without COMPRESSED, or exclude it. Then re-sync the"
        " table.",
        "The table stops; the others go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:column-generated": Message(
        "Generated column not in the log",
        "Column `{column}` of table `{table}` ({native}) is computed by the server, and its log does not carry it.",
        "Exclude the column. PostgreSQL 18 and later carry generated columns that are stored.",
        "The column is left out.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:column-partial": Message(
        "Column copied in another form",
        "Column `{column}` of table `{table}` has type `{native}`; {reason}.",
        "Accept, or exclude the column.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:partition-identity": Message(
        "Partition that can't be followed",
        "A partition of table `{table}` has no replica identity, or another than the table, or is not logged; or the table is itself "
        "a partition of another one that is copied: in the stream, changes would be refused at the source, or lost.",
        "Run `{statement}` at the source; the table comes back by itself, or by its re-sync.",
        "The table is not followed; its rows stay in the target as they were.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:column-reserved": Message(
        "Column name reserved",
        "Column `{column}` of table `{table}` has a name this product needs for itself.",
        "Exclude or rename the column.",
        "The table cannot be copied with it.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:value-unsupported": Message(
        "Value can't be copied",
        "A value of column `{column}` in table `{table}` can't be copied: {reason}.",
        "Correct the value at the source and re-sync the table, exclude the column, or let such rows be parked and re-sync the table.",
        "The table stops; the others go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:value-too-large": Message(
        "Row too large",
        "A row of table `{table}` can't be copied, for the size of its column `{column}`: {reason}.",
        "Make the value smaller or delete the row, then re-sync the table; or exclude the column; or let such rows be parked and "
        "re-sync the table; or set `REPLICATOR_ROW_LIMIT_BYTES` higher, with twenty times as much more in "
        "`REPLICATOR_SPARK_DRIVER_MEMORY`, and re-sync the table.",
        "The table stops; the others go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:log-retention": Message(
        "Log kept without limit",
        "`max_slot_wal_keep_size` is not set, so a paused replicator can fill the server's disk.",
        "Set it to what the disk can spare, for example `ALTER SYSTEM SET max_slot_wal_keep_size = '50GB';`",
        "While the replicator is paused the server keeps all of its log.",
    ),
    "source:snapshot-lost": Message(
        "Snapshot session lost",
        "The session that held the snapshot of the source ended before all tables were copied.",
        "Nothing to do: the copying goes on in a new view; a table without a key is copied again.",
        "",
        Retry.AUTO,
    ),
    "source:view-waits": Message(
        "Waiting for open transactions at the source",
        "A consistent copy has to wait for transactions that were open before it. After {seconds} s it still waits for "
        "{holder}.",
        "End that transaction, or let it finish; the copy is tried again by itself.",
        "Tables that wait for their copy are not in the target yet; the others go on.",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "source:lock-waits": Message(
        "Waiting for a lock at the source",
        "Tables become part of the stream only while nobody holds a lock on them that keeps their shape as it is. After {seconds} s "
        "such a lock is still held, by {holder}.",
        "End that transaction, or let it finish; it is tried again by itself.",
        "Tables that wait for their copy are not in the target yet; the others go on.",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "source:driver-missing": Message(
        "Driver not installed",
        "The Python package `{driver}`, which this kind of source needs, is not installed or can't be loaded.",
        "Install it with `pip install {driver}` where the program runs, and restart the program.",
        "This kind of source cannot be used.",
    ),
    # --- source: servers whose settings, rights and log are asked for by name --------------------------------------
    "source:setting": Message(
        "Server setting",
        "The server's `{setting}` is `{value}`; following changes needs `{wanted}`.",
        "Run `{statement}` as an administrator; some settings need a restart of the server.",
        "Changes cannot be followed.",
    ),
    "source:right-missing": Message(
        "Right missing",
        "The user `{user}` lacks the right `{right}`.",
        "Run `{statement}` as an administrator.",
        "Changes cannot be followed.",
    ),
    "source:server-version": Message(
        "Server not supported",
        "The server runs {version}; {needed} is needed.",
        "Upgrade the server, or choose another one.",
        "Changes cannot be followed.",
        Retry.NEVER,
    ),
    "source:log-short": Message(
        "Log kept for a short time",
        "The server keeps its log for {hours} hours.",
        "Run `{statement}` as an administrator: a replicator that was paused for longer has to copy everything again.",
        "A pause of more than {hours} hours loses changes.",
    ),
    "source:log-kept": Message(
        "How long the log is kept",
        "The server keeps its log {kept}.",
        "Nothing, unless a replicator may be paused for longer than the server keeps its log.",
        "After a longer pause its tables have to be copied again.",
    ),
    "source:server-id-in-use": Message(
        "Server id in use",
        "Another reader of the server's log uses the server id {number}.",
        "Choose another server id in the source's settings, or 0 to have a free one chosen.",
        "The two would cut each other's connection.",
        Retry.AUTO,
    ),
    "source:server-id-unknown": Message(
        "Server id not checked",
        "The user `{user}` may not ask who else reads the server's log, so whether the server id {number} is free is not known.",
        "Run `{statement}` as an administrator, or choose the server id 0 to have one made that nobody else is likely to have.",
        "Two readers with one id would cut each other's connection.",
    ),
    "source:log-damaged": Message(
        "Source's log damaged",
        "The source's log can't be read after {position}: an event is damaged.",
        "It is read again by itself; if that repeats, look at the server's disk, then re-sync the tables.",
        "Changes arrive later.",
        Retry.AUTO,
    ),
    "source:key-needed": Message(
        "Key needed",
        "Table `{table}` has no key, so a copy of it can't be brought level with its changes.",
        "Add a primary key, or take the table out of the selection.",
        "The table is not copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:lock-refused": Message(
        "Lock of the table not granted",
        "Table `{table}` can only be copied exactly, and could not be locked for the moment in which its copy is begun.",
        "Grant `LOCK TABLES` on its database, or end long transactions that hold it; the copy is tried again by itself.",
        "The table is not in the target yet; the others go on.",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "source:row-image": Message(
        "Rows logged in part",
        "Changes of table `{table}` were logged with a part of their columns only.",
        "Let every session use `binlog_row_image = FULL` and no partial JSON, then re-sync the table.",
        "Values would be missing in the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:row-metadata": Message(
        "Columns logged without names",
        "Changes of table `{table}` were logged without the names of their columns.",
        "Run `SET GLOBAL binlog_row_metadata = 'FULL';`, then re-sync the table.",
        "Values could end up in wrong columns.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:statement-logged": Message(
        "Changes logged as statements",
        "Changes of table `{table}` were logged as a statement instead of as rows.",
        "Let every session use `binlog_format = ROW`, then re-sync the table.",
        "Those changes are not in the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:change-unlogged": Message(
        "Rows changed without being logged",
        "Table `{table}` went through {change}, whose effect on its rows is not in the log.",
        "Re-sync the table.",
        "Rows in the target may differ until then.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:transaction-unsure": Message(
        "Transaction neither kept nor undone",
        "A transaction that changed table `{table}` was undone in part, or prepared for a commit by others.",
        "Re-sync the table.",
        "Rows in the target may differ until then.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:table-altered": Message(
        "Table altered while it was copied",
        "Table `{table}` lost a column, or had one renamed or converted, after its copy was begun.",
        "Nothing to do: the copy begins again with the table as it is now.",
        "The table's rows come later.",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "source:log-incident": Message(
        "Gap in the source's log",
        "The server noted that its log lacks changes; table `{table}` may be one of those they belong to.",
        "Re-sync the table.",
        "Changes are missing in the target until then.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:log-event": Message(
        "Unknown kind of event",
        "A transaction of the source's log has an event of kind {kind}, which this product does not know; changes of table `{table}` may be in it.",
        "Turn off what makes the server write such events (MariaDB: binlog_row_event_fragment_threshold), then re-sync the table.",
        "Changes may be missing in the target until then.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:cascade": Message(
        "Changes by foreign keys are not logged",
        "Rows of table `{table}` are changed by the foreign key `{constraint}` (ON {rule}), which this server does not log.",
        "Drop the foreign key, or give it no ON DELETE and ON UPDATE rule: the application or a trigger can make the changes. Then re-sync"
        " the table; a re-sync is refused as long as the rule is there.",
        "The table is not copied: rows deleted or changed that way would stay as they were in the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:engine-unlogged": Message(
        "Table's engine",
        "Table `{table}` uses the engine {engine}, whose rows can't be followed.",
        "Run `ALTER TABLE {quoted} ENGINE = InnoDB;`, or take the table out of the selection.",
        "The table is not copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:table-versioned": Message(
        "Table keeps its past",
        "Table `{table}` has system versioning: what the server logs of it does not tell its rows from those of its past.",
        "Run `ALTER TABLE {quoted} DROP SYSTEM VERSIONING;`, or take the table out of the selection.",
        "The table is not copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    # --- the change log -----------------------------------------------------------------------------------------
    "log:disk-full": Message(
        "Change log is full",
        "The disk of the change log has less than {reserve} left, or the log reached its limit of {limit}.",
        "Free space on the disk or raise REPLICATOR_LOG_LIMIT_BYTES; reading goes on by itself then.",
        "The source keeps its log meanwhile.",
        Retry.AUTO,
    ),
    "log:not-writable": Message(
        "Change log not writable",
        "The folder of the change log can't be written.",
        "Give the worker's user the right to write it (REPLICATOR_LOG_URL).",
        "Nothing can be captured.",
    ),
    "log:store": Message(
        "Change log not reachable",
        "The object store of the change log did not answer, or refused.",
        "Check REPLICATOR_LOG_URL, and that the credentials in the worker's environment may read and write there.",
        "Nothing is captured or merged meanwhile; nothing is lost.",
        Retry.AUTO,
    ),
    "log:segment-corrupt": Message(
        "Change log damaged",
        "Segment {segment} of the change log is damaged at byte {offset}.",
        "Re-sync the tables named here.",
        "Changes in that segment can't be applied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "log:file-corrupt": Message(
        "Change file damaged",
        "A change file of table `{table}` is damaged.",
        "Nothing to do: it is decoded again.",
        "",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "log:table-over-limit": Message(
        "Table's backlog too large",
        "The unmerged changes of table `{table}` exceed their share of the change log ({limit}).",
        "Re-sync the table.",
        "Its backlog was dropped so that the other tables can go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "log:table-pruned": Message(
        "Changes no longer kept",
        "Table `{table}` failed for so long that the change log no longer holds all of its changes.",
        "Re-sync the table.",
        "The table stops; the others go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "log:rows-passed-over": Message(
        "Changes passed over",
        "Changes of table `{table}` were captured while it was not thought to be part of the stream, so its copy lacks them.",
        "Re-sync the table, and tell us what was done to it at the source.",
        "The table stops; the others go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "log:rows-parked": Message(
        "Rows parked",
        "Table `{table}` has rows, or had some at that time, that the target can't hold.",
        "Correct the values at the source or replay the parked rows; or re-sync the table.",
        "The table stays as it is.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "log:too-many-parked": Message(
        "Too many parked rows",
        "More than {limit} rows of table `{table}` hold values that the target can't hold.",
        "Correct the values at the source, exclude the column, or replay the parked rows; then re-sync the table.",
        "The table stops; the others go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    # --- target -------------------------------------------------------------------------------------------------
    "target:unreachable": Message(
        "Target not reachable",
        "The target's catalog or storage does not answer.",
        "Check the target's settings and that its storage is there.",
        "Changes wait in the change log.",
        Retry.AUTO,
    ),
    "target:driver-missing": Message(
        "Driver not installed",
        "The Python package `{driver}`, which this kind of target needs, is not installed or can't be loaded.",
        "Install it with `pip install {driver}` where the program runs, and restart the program.",
        "This kind of target cannot be used.",
    ),
    "target:timeout": Message(
        "Target does not answer in time",
        "The target's catalog or storage did not answer within {seconds} seconds.",
        "Check network, addresses and load of catalog and storage, then try again.",
        "",
        Retry.AUTO,
    ),
    "target:not-writable": Message(
        "Target not writable",
        "The target's storage can't be written.",
        "Give this product the right to write to the warehouse folder.",
        "Changes wait in the change log.",
        Retry.AFTER_FIX,
        Scope.TABLE,
    ),
    "target:place-unusable": Message(
        "Folder or file can't be used",
        "`{path}`: {reason}.",
        "Correct the path, or give this program's user the right to use it.",
        "Changes wait in the change log.",
        Retry.AFTER_FIX,
    ),
    "target:folder-made": Message(
        "Folders are made",
        "`{path}` is not there, and of the folders above it only `{above}` is. They are made when the replicator starts.",
        "If they should be there already, check the spelling.",
        "",
        Retry.AUTO,
    ),
    "target:store-classes": Message(
        "Spark may lack the store's classes",
        "The warehouse lies in an object store. The classes that Spark needs for it do not come with this version.",
        "Choose a folder, or use a Spark of your own (REPLICATOR_SPARK_REMOTE or REPLICATOR_SPARK_MASTER) that has the store's "
        "connector.",
        "Without these classes the run fails at its start.",
        Retry.AFTER_FIX,
    ),
    "target:storage-full": Message(
        "Target storage full",
        "The target's storage has no space left.",
        "Free space; the table goes on by itself.",
        "Changes wait in the change log.",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "target:conflict": Message(
        "Another writer",
        "Another program wrote to the target table of `{table}` at the same time.",
        "Nothing to do: it is tried again. If it repeats, stop the other writer.",
        "",
        Retry.AUTO,
        Scope.TABLE,
    ),
    "target:table-missing": Message(
        "Target table gone",
        "The target table of `{table}` was dropped.",
        "Re-sync the table.",
        "Its rows are gone from the target.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:table-replaced": Message(
        "Target table replaced",
        "The target table of `{table}` is not the one this replicator wrote.",
        "Re-sync the table.",
        "Nothing is written to a table that is not ours.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:table-behind": Message(
        "Target table behind",
        "The target table of `{table}` is older than what this replicator had written to it.",
        "Re-sync the table.",
        "Changes are missing in it.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:table-ahead": Message(
        "Target table ahead",
        "The target table of `{table}` holds changes this replicator does not know.",
        "Re-sync the table.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:column-missing": Message(
        "Target column missing",
        "The target table of `{table}` lacks a column that this replicator had made.",
        "Somebody dropped or renamed it there. Re-sync the table.",
        "Nothing is merged into it; the other tables go on.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:table-taken": Message(
        "Target table exists",
        "The target already has a table `{target}` that this replicator did not make.",
        "Choose another namespace, or drop that table.",
        "Nothing is written to it.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:rewind-too-early": Message(
        "The target does not reach back so far",
        "The target has no version of `{table}` from before {asked} that can still be opened.",
        "Rewind to {earliest} or later, or re-sync the table. A longer history in the target's settings lets it reach further "
        "back from now on.",
        "The table goes on as it was.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "log:rewind-too-early": Message(
        "The change log does not reach back so far",
        "The changes of `{table}` since {asked} are not all kept any more.",
        "Rewind to {earliest} or later, or re-sync the table. A longer keep time lets it reach further back from now on.",
        "The table goes on as it was.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:rewind-parked": Message(
        "Rows of the table may be parked",
        "Rows of `{table}` are parked, were parked, or may be: an older version lacks them, and the change log does not tell them all.",
        "Re-sync the table instead.",
        "The table goes on as it was.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:rewind-shape": Message(
        "The table was copied otherwise then",
        "The columns of `{table}`, or the kinds of changes that are copied of it, are not those of that time.",
        "Rewind to a time after they changed, or re-sync the table.",
        "The table goes on as it was.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:name-reserved": Message(
        "Name kept for progress",
        "`{table}` would be copied to `{target}`, where replicators tell readers how far they are.",
        "Choose another namespace for the target, or leave the table out.",
        "The table can't be copied.",
        **_TABLE_FIX,  # type: ignore[arg-type]
    ),
    "target:progress-taken": Message(
        "Progress table taken",
        "`{target}`, where readers of the target are told of watermarks, is a table of somebody else's.",
        "Rename that table, or choose another namespace for the target.",
        "The tables are copied all the same; watermarks are told by REST only.",
        Retry.AUTO,
    ),
    "target:name-shared": Message(
        "Two tables, one name",
        "Tables `{table}` and `{other}` would both become the same table of the target.",
        "Leave the namespace empty, so that each schema has its own, or choose only one of them.",
        "One would overwrite the other.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:column-case": Message(
        "Column names differ only in case",
        "Table `{table}` has another column whose name is `{column}` but for upper and lower case.",
        "Exclude one of the two columns.",
        "The target can't tell them apart.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:row-missing": Message(
        "Row missing in the target",
        "An update of table `{table}` lacks values of a row that is not in the target and can't be read at the source.",
        "Re-sync the table.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-filter": Message(
        "No row filter in this mode",
        "Table `{table}` has a row filter, but is copied in the mode {mode}.",
        "Take the filter out, or copy the table as a mirror.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:no-parking": Message(
        "Rows of this source can't be parked",
        "From {source}, a row of `{table}` with a value that the target can't hold can't be told from the others.",
        "Choose that the table stops at such a value; corrected at the source, its re-sync brings it back.",
        "The table stops at the first such value.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-parking": Message(
        "Rows can't be parked in this mode",
        "A copy of `{table}` as {mode} keeps more than a row's last image by its key, so a row that the target can't hold can't wait beside it.",
        "Choose that the table stops at such a value, or copy it as a mirror with a key, or with soft delete.",
        "The table stops at the first such value.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-updates": Message(
        "Updates can't be left out alone",
        "Table `{table}` has no key, so a row whose update was left out could not be found when it is deleted.",
        "Leave out its deletes too, or neither.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-inserts": Message(
        "Inserts can't be left out",
        "The inserts of table `{table}` are to be left out, but {why}.",
        "Copy its inserts too; or copy it as a mirror, with its key and without a row filter.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:row-absent": Message(
        "A deleted row is not in the target",
        "The source deleted or changed a row of table `{table}`, which has no key, more often than the target has it.",
        "Re-sync the table.",
        "The copy was changed by something else, or rows of the source were changed without its log (a column added with a "
        "default value, for example).",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:evolve": Message(
        "Target table can't follow",
        "The target table of `{table}` can't take the change `{change}`.",
        "Re-sync the table.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:column-unsupported": Message(
        "Column type has no place in the target",
        "Column `{column}` of table `{table}` ({native}) has no type in the target: {reason}.",
        "Exclude the column.",
        "The column is left out.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:column-lossy": Message(
        "Column loses something",
        "Column `{column}` of table `{table}` ({native}) becomes `{target_type}` in the target: {reason}.",
        "Accept, or exclude the column.",
        "",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "source:mode-inexact": Message(
        "Mode needs a snapshot of one moment",
        "Table `{table}` is to be copied as `{mode}`, but this source's first copy converges: some changes are applied twice.",
        "Choose mirror or soft delete for this table.",
        "Versions and changes would be kept twice.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:column-reserved": Message(
        "Column name reserved by Iceberg",
        "Table `{table}` has a column `{column}`, a name that Iceberg keeps for itself.",
        "Leave the column out, rename it at the source, or use Delta. A column that came while the table was copied: rename it, and a mirror is"
        " copied afresh by itself within minutes; re-sync a table of another mode.",
        "Changes cannot be merged into a table with such a column; its rows stay in the target as they were.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-missing": Message(
        "Mode not possible in this target",
        "Table `{table}` is to be copied as `{mode}`, which this target does not have.",
        "Choose another mode for the table or for the replicator.",
        "The table cannot be copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-needs-key": Message(
        "Mode needs a key",
        "Table `{table}` is to be copied as `{mode}`, but has no key by which its rows could be told apart.",
        "Add a primary key at the source, or choose mirror or append for this table.",
        "The table cannot be copied.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    "target:mode-column": Message(
        "Column name taken by the mode",
        "Table `{table}` has a column `{column}`, a name that the mode `{mode}` gives to a column of its own.",
        "Leave the column out, rename it at the source, or choose another mode for this table; then re-sync it where it was copied already.",
        "The table cannot be copied; where it was, its rows stay in the target as they were.",
        **_TABLE_NEVER,  # type: ignore[arg-type]
    ),
    # --- run, configuration -------------------------------------------------------------------------------------
    "run:java-missing": Message(
        "Java missing",
        "Java 17 was not found on the worker's machine.",
        "Install it (`apt-get install openjdk-17-jre-headless`) or set JAVA_HOME, then retry.",
        "Spark can't start.",
    ),
    "run:jars-missing": Message(
        "Jars missing",
        "The lakehouse libraries are not in `{folder}`.",
        "Run `make setup` on the worker's machine.",
        "Spark can't start.",
    ),
    "run:spark": Message(
        "Spark failed",
        "Spark could not start or stopped.",
        "Look at the run's log; it is tried again.",
        "",
        Retry.AUTO,
    ),
    "run:spark-lost": Message(
        "Spark's process ended",
        "The Java process that Spark works in ended in the middle of the run: it was killed, or crashed.",
        "The run is started again by itself. If it repeats, look at the memory of the worker's machine, and at the run's output.",
        "Nothing is lost: what was not merged yet is merged by the next run.",
        Retry.AUTO,
    ),
    "run:lease-lost": Message(
        "Run replaced",
        "Another run took over.",
        "Nothing to do.",
        "",
        Retry.AUTO,
    ),
    "run:stuck": Message(
        "Step took too long",
        "Step `{step}` did not end within {seconds} seconds.",
        "It is tried again; if it repeats look at the run's log.",
        "",
        Retry.AUTO,
    ),
    "run:database-lost": Message(
        "Own database not reached",
        "The program's own database did not answer for longer than a run may wait, so the run ended before it could lose anything.",
        "It is started again by itself; look at the database that `DATABASE_URL` names.",
        "Nothing is read from the source meanwhile.",
        Retry.AUTO,
    ),
    "run:lost": Message(
        "Run lost",
        "The process of the run ended without a word.",
        "It is started again by itself; if it repeats look at the worker's machine (memory?).",
        "",
        Retry.AUTO,
    ),
    "run:limit": Message(
        "All runs are taken",
        "{count} of {limit} replicators run: {names}. This one starts when one of them stops.",
        "Pause one of them, or raise `REPLICATOR_MAX_RUNS` and start the workers again.",
        "",
        Retry.AUTO,
    ),
    "run:tables-failing": Message(
        "All tables fail",
        "It runs, but all of its tables fail ({count}).",
        "Look at its tables: each says what happened and what to do.",
        "Nothing reaches the target.",
        Retry.NEVER,
    ),
    "run:retry-time-used-up": Message(
        "Retry time used up",
        "The replicator kept failing for {duration}.",
        "Fix the cause that its log names, then press Retry now.",
        "Everything captured so far is kept.",
        Retry.NEVER,
    ),
    "config:name-taken": Message(
        "Name in use",
        "There is already a replicator called `{name}`.",
        "Choose another name.",
        "",
        Retry.NEVER,
    ),
    "config:invalid": Message(
        "Setting not valid",
        "`{field}`: {reason}.",
        "Correct the value.",
        "",
        Retry.NEVER,
    ),
    "config:place-refused": Message(
        "Place not allowed",
        "{label}: `{place}` {reason}.",
        "Enter another place. An administrator says with REPLICATOR_ALLOWED_FOLDERS and REPLICATOR_ALLOWED_HOSTS what connections may use.",
        "Nothing is opened there.",
        Retry.AFTER_FIX,  # a name may have had no address for a while
    ),
    "config:secrets-unreadable": Message(
        "Stored secrets can't be read",
        "The stored passwords were encrypted with another key than the one that is set now.",
        "Set REPLICATOR_SECRET_KEY to the key used before, or enter the passwords again.",
        "Nothing can be connected.",
        Retry.NEVER,
    ),
    "config:unknown-kind": Message(
        "Unknown connector",
        "There is no {role} of kind `{kind}`.",
        "Choose one of: {known}.",
        "",
        Retry.NEVER,
    ),
    "config:another-server": Message(
        "The log does not go on there",
        "The log that this replicator follows does not go on at the server and database of these settings: {reason}.",
        "Enter where that log goes on. To copy from somewhere else, duplicate the replicator and change the copy.",
        "Followed there all the same, every table fails until it is copied afresh.",
        Retry.NEVER,
    ),
    "config:not-now": Message(
        "Not possible now",
        "The replicator `{name}` can't be changed while {reason}.",
        "Nothing brings it back. Make another one of its exported definition.",
        "",
        Retry.NEVER,
    ),
    "internal:unexpected": Message(
        "Unexpected error",
        "Something went wrong that this product does not know ({name_of_error}).",
        "It is tried again. If it stays, look at the run's log.",
        "",
        Retry.AUTO,
    ),
}

WAITS = frozenset(
    {
        "source:connection-lost", "source:snapshot-lost", "source:log-damaged", "run:spark", "run:spark-lost", "run:stuck", "run:lease-lost",
        "run:lost", "run:database-lost", "internal:unexpected",
    }
)  # fmt: skip
"""Codes whose advice is to wait for the next try, which is wrong once there is none."""
