"""Texts of the errors and problems that only MySQL and MariaDB as a source have."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

MESSAGES: Mapping[str, Message] = {
    "source:tls-file": Message(
        "TLS authority can't be read",
        "`{path}` {reason}.",
        "Enter the path of a file with certificates in PEM form, or leave it empty.",
        "Nothing can be read.",
        help=Help.EDIT,
    ),
    "source:server-changed": Message(
        "Another server answers",
        "The source's address leads to another server than before, while the log is still read "
        "from the old one.",
        "Nothing to do where that server took over: the log goes on there once the old connection "
        "ends. An address that leads to several servers in turn is no good for a replicator: name "
        "one of them.",
        "Copies and figures wait.",
        retry=Retry.AUTO,
    ),
    "source:tablespace-missing": of_table(
        "Table without its file",
        "Table `{table}` has no rows that could be read: its tablespace was discarded at the "
        "source, or its file is missing there.",
        "Bring the file back and run `ALTER TABLE {quoted} IMPORT TABLESPACE;`, or take the table "
        "out of the selection. It is tried again by itself.",
        "The table is not copied; what was copied before stays in the target.",
        retry=Retry.AFTER_FIX,
    ),
    "source:column-compressed": of_table(
        "Compressed column",
        "Column `{column}` of table `{table}` is stored compressed (`{native}`), and the log has "
        "its values in a form of its own.",
        "Run `{statement}`, which stores it uncompressed, or exclude the column from the "
        "selection.",
        "The column is left out.",
        help=Help.CHANGE,
    ),
    "source:column-packed": of_table(
        "Column compressed now",
        "Column `{column}` of table `{table}` is stored COMPRESSED now, and the log has its "
        "values in a form of its own.",
        "Run `ALTER TABLE {quoted} MODIFY ...` with the column as it is declared, but without "
        "COMPRESSED, or exclude it. Then re-sync the table.",
        "The table stops; the others go on.",
    ),
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
        retry=Retry.NEVER,
    ),
    "source:log-short": Message(
        "Log kept for a short time",
        "The server keeps its log for {hours} hours.",
        "Run `{statement}` as an administrator: a replicator that was paused for longer has to "
        "copy everything again.",
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
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:server-id-unknown": Message(
        "Server id not checked",
        "The user `{user}` may not ask who else reads the server's log, so whether the server id "
        "{number} is free is not known.",
        "Run `{statement}` as an administrator, or choose the server id 0 to have one made that "
        "nobody else is likely to have.",
        "Two readers with one id would cut each other's connection.",
    ),
    "source:log-damaged": Message(
        "Source's log damaged",
        "The source's log can't be read after {position}: an event is damaged.",
        "It is read again by itself; if that repeats, look at the server's disk, then re-sync the "
        "tables.",
        "Changes arrive later.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "source:key-needed": of_table(
        "Key needed",
        "Table `{table}` has no key, so a copy of it can't be brought level with its changes.",
        "Add a primary key, or take the table out of the selection.",
        "The table is not copied.",
    ),
    "source:lock-refused": of_table(
        "Lock of the table not granted",
        "Table `{table}` can only be copied exactly, and could not be locked for the moment in "
        "which its copy is begun.",
        "Grant `LOCK TABLES` on its database, or end long transactions that hold it; the copy is "
        "tried again by itself.",
        "The table is not in the target yet; the others go on.",
        retry=Retry.AUTO,
    ),
    "source:row-image": of_table(
        "Rows logged in part",
        "Changes of table `{table}` were logged with a part of their columns only.",
        "Let every session use `binlog_row_image = FULL` and no partial JSON, then re-sync the "
        "table.",
        "Values would be missing in the target.",
    ),
    "source:row-metadata": of_table(
        "Columns logged without names",
        "Changes of table `{table}` were logged without the names of their columns.",
        "Run `SET GLOBAL binlog_row_metadata = 'FULL';`, then re-sync the table.",
        "Values could end up in wrong columns.",
    ),
    "source:statement-logged": of_table(
        "Changes logged as statements",
        "Changes of table `{table}` were logged as a statement instead of as rows.",
        "Let every session use `binlog_format = ROW`, then re-sync the table.",
        "Those changes are not in the target.",
    ),
    "source:change-unlogged": of_table(
        "Rows changed without being logged",
        "Table `{table}` went through {change}, whose effect on its rows is not in the log.",
        "Re-sync the table.",
        "Rows in the target may differ until then.",
        copy_mends=True,
    ),
    "source:transaction-unsure": of_table(
        "Transaction neither kept nor undone",
        "A transaction that changed table `{table}` was undone in part, or prepared for a commit "
        "by others.",
        "Re-sync the table.",
        "Rows in the target may differ until then.",
    ),
    "source:log-incident": of_table(
        "Gap in the source's log",
        "The server noted that its log lacks changes; table `{table}` may be one of those they "
        "belong to.",
        "Re-sync the table.",
        "Changes are missing in the target until then.",
    ),
    "source:log-event": of_table(
        "Unknown kind of event",
        "A transaction of the source's log has an event of kind {kind}, which this product does "
        "not know; changes of table `{table}` may be in it.",
        "Turn off what makes the server write such events (MariaDB: "
        "binlog_row_event_fragment_threshold), then re-sync the table.",
        "Changes may be missing in the target until then.",
    ),
    "source:cascade": of_table(
        "Changes by foreign keys are not logged",
        "Rows of table `{table}` are changed by the foreign key `{constraint}` (ON {rule}), which "
        "this server does not log.",
        "Drop the foreign key, or give it no ON DELETE and ON UPDATE rule: the application or a "
        "trigger can make the changes. Then re-sync the table; a re-sync is refused as long as "
        "the rule is there.",
        "The table is not copied: rows deleted or changed that way would stay as they were in the "
        "target.",
    ),
    "source:engine-unlogged": of_table(
        "Table's engine",
        "Table `{table}` uses the engine {engine}, whose rows can't be followed.",
        "Run `ALTER TABLE {quoted} ENGINE = InnoDB;`, or take the table out of the selection.",
        "The table is not copied.",
    ),
    "source:table-versioned": of_table(
        "Table keeps its past",
        "Table `{table}` has system versioning: what the server logs of it does not tell its rows "
        "from those of its past.",
        "Run `ALTER TABLE {quoted} DROP SYSTEM VERSIONING;`, or take the table out of the "
        "selection.",
        "The table is not copied.",
    ),
}
