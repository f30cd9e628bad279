"""The texts of every code that the program itself, or more than one plugin, uses. A plugin's own
texts are in its folder."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.compare.messages import COMPARE_MESSAGES
from replicators.connectors.feed.faults import FEED_MESSAGES
from replicators.connectors.problems.message import Help, Message, Retry, Scope, of_table

MESSAGES: Mapping[str, Message] = {
    # The source
    "source:unreachable": Message(
        "Source not reachable",
        "No server answers at host `{host}`, port {port}.",
        "Check host and port, that the server runs, and that its firewall lets this machine in.",
        "Nothing can be read until the server answers.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:unknown-host": Message(
        "Unknown host",
        "The host name `{host}` does not exist.",
        "Check the spelling of the host name.",
        "Nothing can be read.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:timeout": Message(
        "Source does not answer in time",
        "The server did not answer within {seconds} seconds.",
        "Check network and load of the server, then try again.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "source:login-refused": Message(
        "Login refused",
        "The server refused the user name or the password.",
        "Check user and password, and that the server lets this user in from this machine "
        "(PostgreSQL: pg_hba.conf, also for replication).",
        "Nothing can be read.",
        help=Help.EDIT,
    ),
    "source:database-missing": Message(
        "Database missing",
        "There is no database `{database}` on the server.",
        "Check the database name.",
        "Nothing can be read.",
        help=Help.EDIT,
    ),
    "source:tls": Message(
        "TLS failed",
        "The encrypted connection could not be made with sslmode `{sslmode}`.",
        "Choose the sslmode that the server offers, or install its certificate.",
        "Nothing can be read.",
        help=Help.EDIT,
    ),
    "source:connection-lost": Message(
        "Connection lost",
        "The connection to the source was cut.",
        "Nothing to do: it is made again by itself. If it repeats, look at the server's log and "
        "the network.",
        "Changes arrive later.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "source:select-right": of_table(
        "SELECT right missing",
        "The user `{user}` may not read table `{table}`.",
        "Run `GRANT SELECT ON {quoted} TO {user};`",
        "The table cannot be copied.",
        retry=Retry.AFTER_FIX,
    ),
    "source:select-revoked": of_table(
        "Right to read taken away",
        "The source's user may not read table `{table}` any more.",
        "Grant it SELECT again and re-sync the table, or remove the table from the replicator.",
        "Nothing of the table is read. Its rows stay in the target as they were.",
    ),
    "source:connections-used-up": Message(
        "No free connection",
        "The server accepts no more connections.",
        "Close connections that are not needed, or raise `max_connections` and restart the server.",
        "Nothing can be read until a connection is free.",
        retry=Retry.AUTO,
    ),
    "source:column-missing": of_table(
        "Column missing",
        "Table `{table}` has no column `{column}`.",
        "Take the column out of the selection.",
        "It cannot be copied.",
        help=Help.CHANGE,
    ),
    "source:slot-missing": Message(
        "Replication slot gone",
        "The replication slot `{slot}` no longer exists on the server.",
        "Re-sync the tables: changes made since then are no longer in the log.",
        "Changes were lost between the slot's end and now; only a re-sync brings them.",
        retry=Retry.NEVER,
        ends_log=True,
    ),
    "source:position-lost": Message(
        "Position lost",
        "The server's log no longer continues where this replicator stopped: {reason}.",
        "Re-sync the tables.",
        "Changes may be missing in the target; only a re-sync brings them.",
        retry=Retry.NEVER,
        ends_log=True,
    ),
    "source:position-given-up": Message(
        "Position given up",
        "The replicator removed its place in the source's log, as its options say, because "
        "{reason}.",
        "Find what held it up, then re-sync the tables.",
        "Nothing is read any more. Changes are missing in the target; only a re-sync brings them.",
        retry=Retry.NEVER,
        ends_log=True,
    ),
    "source:no-tables": Message(
        "No table chosen",
        "No table is chosen.",
        "Choose at least one table.",
        "There is nothing to copy.",
        retry=Retry.NEVER,
    ),
    "source:table-missing": of_table(
        "Table missing",
        "Table `{table}` does not exist at the source.",
        "Take it out of the selection, or create it again and re-sync it.",
        "It cannot be copied.",
        help=Help.REMOVE,
    ),
    "source:table-replaced": of_table(
        "Table replaced",
        "Table `{table}` was dropped and created again, or rewritten, at the source.",
        "Re-sync the table.",
        "Changes since then may be missing in the target.",
        copy_mends=True,
    ),
    "source:no-key": of_table(
        "No key",
        "Table `{table}` has no primary key and no replica identity, so updates and deletes "
        "cannot be followed.",
        "Choose one: `ALTER TABLE {quoted} REPLICA IDENTITY FULL;` (for each partition too), then "
        "the copy holds each row as often as the source does, updates and deletes included, at "
        "the price of whole old rows in the server's log; or a key (`ALTER TABLE {quoted} ADD "
        "PRIMARY KEY (column_name);`), which costs least; or append-only: only inserts are copied.",
        "As it is, rows updated or deleted at the source stay as they were in the target.",
    ),
    "source:kept-by-count": of_table(
        "No key, whole rows compared",
        "Table `{table}` has no key; its rows are told apart by all of their values, and the copy "
        "holds each as often as the source does.",
        "Where the table can have a key, `ALTER TABLE {quoted} ADD PRIMARY KEY (column_name);` "
        "makes merges cheaper.",
        "The copy has two more columns, `_row_hash` and `_occurrence`; a merge into a large table "
        "looks in more files; a dropped column needs a re-sync.",
    ),
    "source:before-missing": of_table(
        "Old rows no longer sent",
        "Table `{table}` has no key and is kept exactly by its whole old rows, but the source "
        "sent an update or a delete without one.",
        "Run `ALTER TABLE {table} REPLICA IDENTITY FULL;` at the source, then re-sync the table.",
        "Which row was changed is not known.",
    ),
    "source:filter-invalid": of_table(
        "Row filter does not fit",
        "The row filter of table `{table}` can't be used: {reason}.",
        "Change the filter, then re-sync the table.",
        help=Help.CHANGE,
    ),
    "source:filter-unsupported": of_table(
        "No row filters from this source",
        "Table `{table}` has a row filter, which this source can't apply.",
        "Take the filter out.",
        help=Help.CHANGE,
    ),
    "source:filter-may-be-unsent": of_table(
        "The row filter looks at a column that may not be sent",
        "The row filter of table `{table}` looks at `{column}`. Where its value is large (about 2 "
        "kB) and did not change, an update does not send it.",
        "Nothing has to be done. Where such updates are many, run `ALTER TABLE {table} REPLICA "
        "IDENTITY FULL;` at the source.",
        "Such rows are read at the source, one query for up to a thousand of them.",
    ),
    "source:key-changed": of_table(
        "Key changed",
        "The replica identity of table `{table}` changed at the source.",
        "Re-sync the table.",
        copy_mends=True,
    ),
    "source:schema-changed": of_table(
        "Table changed at the source",
        "Table `{table}` changed at the source: {change}. The policy `{policy}` does not follow "
        "that.",
        "Accept the change by a re-sync of the table.",
        "Its changes are not copied until then; those up to the change are.",
    ),
    "source:table-altered": of_table(
        "Table altered while it was copied",
        "Table `{table}` lost a column, or had one renamed or converted, after its copy was begun.",
        "Nothing to do: the copy begins again with the table as it is now.",
        "The table's rows come later.",
        retry=Retry.AUTO,
    ),
    "source:table-renamed": of_table(
        "Table renamed",
        "Table `{table}` is called `{now}` at the source now.",
        "Rename it back and re-sync it, or remove it here and add `{now}`.",
        "Its changes are not copied; its rows stay in the target as they were.",
        help=Help.REMOVE,
    ),
    "source:table-unpublished": of_table(
        "Table left the stream",
        "Table `{table}` was taken out of the source's stream by somebody else, for good or for a "
        "while, so its changes did not come.",
        "Re-sync the table; it becomes part of the stream again by that.",
        "Changes since then are missing in the target.",
        copy_mends=True,
    ),
    "source:column-unsupported": of_table(
        "Column type not supported",
        "Column `{column}` of table `{table}` has type `{native}`, which cannot be copied.",
        "Exclude the column from the selection.",
        "The column is left out.",
        help=Help.CHANGE,
    ),
    "source:no-columns": of_table(
        "No column to copy",
        "Table `{table}` has no column that can be copied.",
        "Add a column at the source, or choose one; re-sync the table where it was copied "
        "already. Or remove it here.",
        "The table cannot be copied; where it was, its rows stay in the target as they were.",
    ),
    "source:column-generated": of_table(
        "Generated column not in the log",
        "Column `{column}` of table `{table}` ({native}) is computed by the server, and its log "
        "does not carry it.",
        "Exclude the column. PostgreSQL 18 and later carry generated columns that are stored.",
        "The column is left out.",
        help=Help.CHANGE,
    ),
    "source:column-partial": of_table(
        "Column copied in another form",
        "Column `{column}` of table `{table}` has type `{native}`; {reason}.",
        "Accept, or exclude the column.",
        help=Help.CHANGE,
    ),
    "source:partition-identity": of_table(
        "Partition that can't be followed",
        "A partition of table `{table}` has no replica identity, or another than the table, or is "
        "not logged; or the table is itself a partition of another one that is copied: in the "
        "stream, changes would be refused at the source, or lost.",
        "Run `{statement}` at the source; the table comes back by itself, or by its re-sync.",
        "The table is not followed; its rows stay in the target as they were.",
    ),
    "source:column-reserved": of_table(
        "Column name reserved",
        "Column `{column}` of table `{table}` has a name this product needs for itself.",
        "Exclude or rename the column.",
        "The table cannot be copied with it.",
        help=Help.CHANGE,
    ),
    "source:value-unsupported": of_table(
        "Value can't be copied",
        "A value of column `{column}` in table `{table}` can't be copied: {reason}.",
        "Correct the value at the source and re-sync the table, exclude the column, or let such "
        "rows be quarantined and re-sync the table.",
        "The table stops; the others go on.",
        help=Help.CHANGE,
    ),
    "source:value-too-large": of_table(
        "Row too large",
        "A row of table `{table}` can't be copied, for the size of its column `{column}`: "
        "{reason}.",
        "Make the value smaller or delete the row, then re-sync the table; or exclude the column; "
        "or let such rows be quarantined and re-sync the table; or set "
        "`REPLICATOR_ROW_LIMIT_BYTES` "
        "higher, with twenty times as much more in `REPLICATOR_SPARK_DRIVER_MEMORY`, and re-sync "
        "the table.",
        "The table stops; the others go on.",
    ),
    "source:snapshot-lost": Message(
        "Snapshot session lost",
        "The session that held the snapshot of the source ended before all tables were copied.",
        "Nothing to do: the copying goes on in a new snapshot. A table without a key is copied "
        "again.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "source:snapshot-waits": of_table(
        "Waiting for open transactions at the source",
        "A consistent copy has to wait for transactions that were open before it. After {seconds} "
        "s it still waits for {holder}.",
        "End that transaction, or let it finish; the copy is tried again by itself.",
        "Tables that wait for their copy are not in the target yet; the others go on.",
        retry=Retry.AUTO,
    ),
    "source:lock-waits": of_table(
        "Waiting for a lock at the source",
        "Tables become part of the stream only while nobody holds a lock on them that keeps their "
        "schema as it is. After {seconds} s such a lock is still held, by {holder}.",
        "End that transaction, or let it finish; it is tried again by itself.",
        "Tables that wait for their copy are not in the target yet; the others go on.",
        retry=Retry.AUTO,
    ),
    "source:driver-missing": Message(
        "Driver not installed",
        "The Python package `{driver}`, which this kind of source needs, is not installed or "
        "can't be loaded.",
        "Install it with `pip install {driver}` where the program runs, and restart the program.",
        "This kind of source cannot be used.",
    ),
    # The change log
    "log:disk-full": Message(
        "Change log is full",
        "The disk of the change log has less than {reserve} left, or the log reached its limit of "
        "{limit}.",
        "Free space on the disk or raise REPLICATOR_LOG_LIMIT_BYTES; reading goes on by itself "
        "then.",
        "The source keeps its log meanwhile.",
        retry=Retry.AUTO,
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
        "Check REPLICATOR_LOG_URL, and that the credentials in the worker's environment may read "
        "and write there.",
        "Nothing is captured or merged meanwhile; nothing is lost.",
        retry=Retry.AUTO,
    ),
    "log:segment-corrupt": of_table(
        "Change log damaged",
        "Segment {segment} of the change log is damaged at byte {offset}.",
        "Re-sync the tables named here.",
        "Changes in that segment can't be applied.",
    ),
    "log:file-corrupt": of_table(
        "Change file damaged",
        "A change file of table `{table}` is damaged.",
        "Nothing to do: it is decoded again.",
        retry=Retry.AUTO,
    ),
    "log:table-over-limit": of_table(
        "Table's backlog too large",
        "The unmerged changes of table `{table}` exceed their share of the change log ({limit}).",
        "Re-sync the table.",
        "Its backlog was dropped so that the other tables can go on.",
    ),
    "log:table-pruned": of_table(
        "Changes no longer kept",
        "Table `{table}` failed for so long that the change log no longer holds all of its "
        "changes.",
        "Re-sync the table.",
        "The table stops; the others go on.",
    ),
    "log:rows-passed-over": of_table(
        "Changes passed over",
        "Changes of table `{table}` were captured while it was not thought to be part of the "
        "stream, so its copy lacks them.",
        "Re-sync the table, and tell us what was done to it at the source.",
        "The table stops; the others go on.",
        copy_mends=True,
    ),
    "log:rows-quarantined": of_table(
        "Rows quarantined",
        "Table `{table}` has rows, or had some at that time, that the target can't hold.",
        "Correct the values at the source or replay the quarantined rows; or re-sync the table.",
        "The table stays as it is.",
    ),
    "log:too-many-quarantined": of_table(
        "Too many quarantined rows",
        "More than {limit} rows of table `{table}` hold values that the target can't hold.",
        "Correct the values at the source, exclude the column, or replay the quarantined rows; "
        "then "
        "re-sync the table.",
        "The table stops; the others go on.",
        help=Help.CHANGE,
    ),
    # The target
    "target:unreachable": Message(
        "Target not reachable",
        "The target's catalog or storage does not answer.",
        "Check the target's settings and that its storage is there.",
        "Changes wait in the change log.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:driver-missing": Message(
        "Driver not installed",
        "The Python package `{driver}`, which this kind of target needs, is not installed or "
        "can't be loaded.",
        "Install it with `pip install {driver}` where the program runs, and restart the program.",
        "This kind of target cannot be used.",
    ),
    "target:timeout": Message(
        "Target does not answer in time",
        "The target's catalog or storage did not answer within {seconds} seconds.",
        "Check network, addresses and load of catalog and storage, then try again.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:bucket-missing": Message(
        "Bucket not found",
        "The store has no bucket `{bucket}`.",
        "Make the bucket, or correct the location, or the endpoint or region of the store.",
        "A run can't begin without the bucket.",
    ),
    "target:bucket-keys": Message(
        "Keys not accepted",
        "The store does not know the access key, or the secret key does not belong to it.",
        "Enter both keys again. Where the form has none, correct AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY in the environment of web and workers.",
        "Nothing can be read or written with these keys.",
    ),
    "target:bucket-rights": Message(
        "A right is missing in the bucket",
        "These keys may not {act} the bucket `{bucket}`.",
        "Grant s3:ListBucket for the bucket, and s3:GetObject, s3:PutObject, s3:DeleteObject and "
        "s3:AbortMultipartUpload for everything in it.",
        "The check writes, reads, lists and deletes a small file, as a run does.",
    ),
    "target:not-writable": of_table(
        "Target not writable",
        "The target's storage can't be written.",
        "Give this product the right to write to the warehouse folder.",
        "Changes wait in the change log.",
        retry=Retry.AFTER_FIX,
    ),
    "target:place-unusable": Message(
        "Folder or file can't be used",
        "`{path}`: {reason}.",
        "Correct the path, or give this program's user the right to use it.",
        "Changes wait in the change log.",
        help=Help.EDIT,
    ),
    "target:folder-made": Message(
        "Folders are made",
        "`{path}` is not there, and of the folders above it only `{above}` is. They are made when "
        "the replicator starts.",
        "If they should be there already, check the spelling.",
        retry=Retry.AUTO,
    ),
    "target:storage-full": of_table(
        "Target storage full",
        "The target's storage has no space left.",
        "Free space; the table goes on by itself.",
        "Changes wait in the change log.",
        retry=Retry.AUTO,
    ),
    "target:table-missing": of_table(
        "Target table gone",
        "The target table of `{table}` was dropped or renamed.",
        "Re-sync the table. Where it was renamed, you may rename it back and try again instead.",
        "Its rows are gone from the target.",
    ),
    "target:table-replaced": of_table(
        "Target table replaced",
        "The target table of `{table}` is not the one this replicator wrote.",
        "Re-sync the table.",
        "Nothing is written to a table that is not ours.",
    ),
    "target:table-behind": of_table(
        "Target table behind",
        "The target table of `{table}` is older than what this replicator had written to it.",
        "Re-sync the table.",
        "Changes are missing in it.",
    ),
    "target:table-ahead": of_table(
        "Target table ahead",
        "The target table of `{table}` holds changes this replicator does not know.",
        "Re-sync the table.",
    ),
    "target:table-taken": of_table(
        "Target table exists",
        "The target already has a table `{target}` that this replicator did not make.",
        "Choose another namespace, or drop that table.",
        "Nothing is written to it.",
    ),
    "target:view-taken": of_table(
        "The view's name is taken",
        "The view `{view}` of the living rows can't be made: something with this name is there "
        "already, or another table or view of this replicator has it.",
        "Choose another *End of a view's name* in the target's settings, or leave views out. Or "
        "rename or drop what has the name.",
        "The thing with this name is not touched.",
        help=Help.EDIT,
    ),
    "target:no-rewind": of_table(
        "The target keeps no older versions",
        "The target of `{table}` keeps no older versions, so the table can't be rewound.",
        "Re-sync the table instead: it is copied afresh.",
        "The table goes on as it was.",
    ),
    "target:rewind-too-early": of_table(
        "The target does not reach back so far",
        "The target has no version of `{table}` from before {asked} that can still be opened.",
        "Rewind to {earliest} or later, or re-sync the table. A longer history in the target's "
        "settings lets it reach further back from now on.",
        "The table goes on as it was.",
    ),
    "log:rewind-too-early": of_table(
        "The change log does not reach back so far",
        "The changes of `{table}` since {asked} are not all kept any more.",
        "Rewind to {earliest} or later, or re-sync the table. A longer keep time lets it reach "
        "further back from now on.",
        "The table goes on as it was.",
    ),
    "target:rewind-quarantined": of_table(
        "Rows of the table may be quarantined",
        "Rows of `{table}` are quarantined, were quarantined, or may be: an older version lacks "
        "them, and "
        "the change log does not tell them all.",
        "Re-sync the table instead.",
        "The table goes on as it was.",
    ),
    "target:rewind-schema": of_table(
        "The table was copied otherwise then",
        "The columns of `{table}`, or the kinds of changes that are copied of it, are not those "
        "of that time.",
        "Rewind to a time after they changed, or re-sync the table.",
        "The table goes on as it was.",
    ),
    "target:progress-taken": Message(
        "Progress table taken",
        "`{target}`, where readers of the target are told of watermarks, is a table of somebody "
        "else's.",
        "Rename that table, or choose another namespace for the target.",
        "The tables are copied all the same; watermarks are reported by REST only.",
        retry=Retry.AUTO,
    ),
    "target:progress-columns": of_table(
        "Progress table taken",
        "`{target}`, where the target's progress is kept, is a table of somebody else's.",
        "Rename that table, or choose another namespace for the target.",
        "Table `{table}` can't be copied.",
    ),
    "target:name-shared": of_table(
        "Two tables, one name",
        "Tables `{table}` and `{other}` would both become the same table of the target.",
        "Leave the namespace empty, so that each schema has its own, change the rule that makes "
        "the names, or choose only one of them.",
        "One would overwrite the other.",
    ),
    "target:column-case": of_table(
        "Column names differ only in case",
        "Table `{table}` has another column whose name is `{column}` but for upper and lower case.",
        "Exclude one of the two columns.",
        "The target can't tell them apart.",
        help=Help.CHANGE,
    ),
    "target:row-missing": of_table(
        "Row missing in the target",
        "An update of table `{table}` lacks values of a row that is not in the target and can't "
        "be read at the source.",
        "Re-sync the table.",
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
    "target:row-absent": of_table(
        "A deleted row is not in the target",
        "The source deleted or changed a row of table `{table}`, which has no key, more often "
        "than the target has it.",
        "Re-sync the table.",
        "The copy was changed by something else, or rows of the source were changed without its "
        "log (a column added with a default value, for example).",
    ),
    "target:needs-copy": Message(
        "This target needs a first copy",
        "{target} keeps the rows of the tables, so their changes need the rows that are there "
        "already.",
        "Set *First copy* to copy the rows first, or choose a target that takes every change.",
        retry=Retry.NEVER,
        help=Help.EDIT,
    ),
    "target:no-take-over": Message(
        "This target takes over no tables",
        "{target} can't go on with tables that another tool filled.",
        "Set *First copy* to copy the rows first.",
        retry=Retry.NEVER,
        help=Help.EDIT,
    ),
    "target:no-consistent": Message(
        "This target can't merge all tables together",
        "{target} can't change several tables in one step for readers.",
        "Set *Merge tables* to each by itself.",
        retry=Retry.NEVER,
        help=Help.EDIT,
    ),
    "target:take-over-mode": of_table(
        "A table in this mode can't be taken over",
        "Only a mirror of a table with a key can be taken over: the target has no column of "
        "another mode.",
        "Set the table's mode to *Mirror*, or set *First copy* to copy the rows first.",
        "Nothing is written to it.",
    ),
    "target:two-way-mode": of_table(
        "A table that can't be replicated both ways",
        "Conflicts are settled by the key of a row, and only where the copy is a mirror with all "
        "changes.",
        "Set the table's mode to *Mirror*, give it a key at both sides, leave no changes out, or "
        "leave the table out.",
        "Nothing is written to it.",
    ),
    "target:two-way-echo": Message(
        "Changes may go round",
        "The target's writes are marked for the way back, but this source does not leave out "
        "marked changes.",
        "Write `any` into *Leave out origins* of the source, on both ways.",
        "A change that the way back brought here is sent on to where it came from.",
    ),
    "target:take-over-missing": of_table(
        "There is no table to take over",
        "The target has no table `{target}`.",
        "Load the rows there, or set *First copy* to copy the rows first.",
        "Nothing is written.",
    ),
    "target:take-over-columns": of_table(
        "The table to take over has other columns",
        "`{target}` must have these columns and types (in parentheses: what it has): {columns}.",
        "Change these columns of that table, leave them out, or set *First copy* to copy the rows "
        "first.",
        "Nothing is written to it.",
    ),
    "target:take-over-key": of_table(
        "The table to take over may have rows twice",
        "`{target}` has no unique index over the key alone: {columns}.",
        "Add a primary key over these columns, or set *First copy* to copy the rows first.",
        "Nothing is written to it.",
    ),
    "target:take-over-bound": of_table(
        "The table to take over has rules of its own",
        "`{target}` has {things}. These may refuse a change that is right, since tables are merged "
        "one by one and rows in no order; triggers see each merge.",
        "Drop what is not needed while the table is replicated into.",
        "The table stops at the first change that the database refuses.",
    ),
    "source:needs-copy": Message(
        "This source needs a first copy",
        "{source} finds changes by comparing a data set with the one before: the first one is the "
        "copy.",
        "Set *First copy* to copy the rows first.",
        retry=Retry.NEVER,
        help=Help.EDIT,
    ),
    "target:mode-filter": of_table(
        "No row filter in this mode",
        "Table `{table}` has a row filter, but is copied in the mode {mode}.",
        "Take the filter out, or copy the table as a mirror.",
        help=Help.CHANGE,
    ),
    "source:no-quarantine": of_table(
        "Rows of this source can't be quarantined",
        "From {source}, a row of `{table}` with a value that the target can't hold can't be told "
        "from the others.",
        "Choose that the table stops at such a value; corrected at the source, its re-sync brings "
        "it back.",
        "The table stops at the first such value.",
        help=Help.CHANGE,
    ),
    "target:mode-quarantine": of_table(
        "Rows can't be quarantined in this mode",
        "A copy of `{table}` as {mode} keeps more than a row's last image by its key, so a row "
        "that the target can't hold can't wait beside it.",
        "Choose that the table stops at such a value, or copy it as a mirror with a key, or with "
        "soft delete.",
        "The table stops at the first such value.",
        help=Help.CHANGE,
    ),
    "target:mode-updates": of_table(
        "Updates can't be left out alone",
        "Table `{table}` has no key, so a row whose update was left out could not be found when "
        "it is deleted.",
        "Leave out its deletes too, or neither.",
        help=Help.CHANGE,
    ),
    "target:mode-inserts": of_table(
        "Inserts can't be left out",
        "The inserts of table `{table}` are to be left out, but {why}.",
        "Copy its inserts too; or copy it as a mirror, with its key and without a row filter.",
        help=Help.CHANGE,
    ),
    "target:evolve": of_table(
        "Target table can't follow",
        "The target table of `{table}` can't take the change `{change}`.",
        "Re-sync the table.",
        copy_mends=True,
    ),
    "target:column-unsupported": of_table(
        "Column type has no place in the target",
        "Column `{column}` of table `{table}` ({native}) has no type in the target: {reason}.",
        "Exclude the column.",
        "The column is left out.",
        help=Help.CHANGE,
    ),
    "target:column-lossy": of_table(
        "Column loses something",
        "Column `{column}` of table `{table}` ({native}) becomes `{target_type}` in the target: "
        "{reason}.",
        "Accept, or exclude the column.",
        help=Help.CHANGE,
    ),
    "source:mode-inexact": of_table(
        "Mode needs a snapshot of one moment",
        "Table `{table}` is to be copied as `{mode}`, but this source's first copy converges: "
        "some changes are applied twice.",
        "Choose mirror or soft delete for this table.",
        "Versions and changes would be kept twice.",
        help=Help.CHANGE,
    ),
    "target:mode-missing": of_table(
        "Mode not possible in this target",
        "Table `{table}` is to be copied as `{mode}`, which this target does not have.",
        "Choose another mode for the table or for the replicator.",
        "The table cannot be copied.",
        help=Help.CHANGE,
    ),
    "target:mode-needs-key": of_table(
        "Mode needs a key",
        "Table `{table}` is to be copied as `{mode}`, but has no key by which its rows could be "
        "told apart.",
        "Add a primary key at the source, or choose mirror or append for this table.",
        "The table cannot be copied.",
        help=Help.CHANGE,
    ),
    "target:mode-column": of_table(
        "Column name taken by the mode",
        "Table `{table}` has a column `{column}`, a name that the mode `{mode}` gives to a column "
        "of its own.",
        "Leave the column out, rename it at the source, or choose another mode for this table; "
        "then re-sync it where it was copied already.",
        "The table cannot be copied; where it was, its rows stay in the target as they were.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
    # Runs and configuration
    "run:java-missing": Message(
        "Java missing",
        "Java 17 was not found on the worker's machine.",
        "Install it (`apt-get install openjdk-17-jre-headless`) or set JAVA_HOME, then retry.",
        "Spark can't start.",
    ),
    "run:jars-missing": Message(
        "Jars missing",
        "The libraries that Spark needs are not in `{folder}`.",
        "Run `make setup` on the worker's machine.",
        "Spark can't start.",
    ),
    "run:spark": Message(
        "Spark failed",
        "Spark could not start or stopped.",
        "Look at the run's log; it is tried again.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "run:spark-conf": Message(
        "Spark's settings are wrong",
        "`{part}` in REPLICATOR_SPARK_CONF is no setting of Spark.",
        "Write settings as `spark.name=value`, with semicolons between. Then restart the workers.",
        "Spark can't start.",
    ),
    "run:spark-lost": Message(
        "Spark's process ended",
        "The Java process that Spark works in ended in the middle of the run: it was killed, or "
        "crashed.",
        "The run is started again by itself. If it repeats, look at the memory of the worker's "
        "machine, and at the run's output.",
        "Nothing is lost: what was not merged yet is merged by the next run.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "run:task-memory": Message(
        "A task needed too much memory",
        "A task needed more memory than the shared Spark gives one ({limit}).",
        "Give this replicator a Spark of its own (its option *Spark*), lower its option *Memory at "
        "most*, or raise `REPLICATOR_SPARK_SHARED_WORKER_BYTES` and start the workers again. It is "
        "tried again by itself.",
        "Other tables and replicators go on.",
        retry=Retry.AUTO,
        scope=Scope.TABLE,
    ),
    "run:lease-lost": Message(
        "Run replaced",
        "Another run took over.",
        "Nothing to do.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "run:database-lost": Message(
        "Own database not reached",
        "The program's own database did not answer for longer than a run may wait, so the run "
        "ended before it could lose anything.",
        "It is started again by itself; look at the database that `DATABASE_URL` names.",
        "Nothing is read from the source meanwhile.",
        retry=Retry.AUTO,
        waits=True,
    ),
    "run:lost": Message(
        "Run lost",
        "The process of the run ended without a word.",
        "It is started again by itself; if it repeats look at the worker's machine (memory?).",
        retry=Retry.AUTO,
        waits=True,
    ),
    "verify:lost": Message(
        "Verification lost",
        "The process of the verification ended without a word: it was killed, or its machine is "
        "gone.",
        "Start the verification again. If it repeats, look at the memory of the worker's machine, "
        "and at the process's output in the folder of the run logs.",
        "Nothing was changed at source or target.",
    ),
    "verify:stuck": Message(
        "Verification stuck",
        "The verification compared nothing for longer than a step may take, so it was ended.",
        "Look at the replicator's log and at the load of source and target, then start the "
        "verification again.",
        "Nothing was changed at source or target.",
    ),
    "verify:no-rows": Message(
        "Rows can't be read back",
        "The target {target} gives no rows back, so there is nothing to compare.",
        "Nothing to do.",
    ),
    "verify:append": Message(
        "Every change is a row",
        "The mode {mode} keeps every change as a row of its own. So the target has more rows than "
        "the source, and nothing can be compared.",
        "Nothing to do.",
        scope=Scope.TABLE,
    ),
    "verify:not-copied": Message(
        "Not copied yet",
        "The table waits for its copy, or is being copied.",
        "Verify it again after its copy.",
        scope=Scope.TABLE,
    ),
    "verify:failing": Message(
        "Table is failing",
        "The table is failing ({reason}), so its target is behind the source.",
        "Mend the table's error first, then verify it again.",
        scope=Scope.TABLE,
    ),
    "verify:outdated": Message(
        "Another mode or row filter is asked for",
        "The copy was made in another mode, or with another row filter, than the table has now.",
        "Re-sync the table, then verify it again.",
        scope=Scope.TABLE,
    ),
    "verify:excluded": Message(
        "Updates are left out",
        "Updates are not applied to this table's copy, so its rows differ from the source's by "
        "your choice.",
        "Nothing to do.",
        scope=Scope.TABLE,
    ),
    "verify:key-changed": Message(
        "Key in another form",
        "The target holds the values of the key column {column} in another form, so rows can't be "
        "matched.",
        "Nothing to do.",
        scope=Scope.TABLE,
    ),
    "verify:changed": Message(
        "Table changed meanwhile",
        "The table was copied again, or its columns, mode or row filter changed, while it was "
        "compared.",
        "Verify it again.",
        scope=Scope.TABLE,
    ),
    "verify:behind": Message(
        "Target does not follow",
        "The target did not reach the source's position within {seconds} seconds.",
        "Look at the table's lag, then verify it again.",
        scope=Scope.TABLE,
    ),
    "verify:paused": Message(
        "Replicator does not run",
        "The replicator does not run, so the target lacks the source's latest changes. Rows that "
        "differ may be right once these changes are delivered.",
        "Start the replicator and verify it again, in order to know which rows are wrong.",
        scope=Scope.TABLE,
    ),
    "verify:replaced": Message(
        "Verification replaced",
        "Another process has this verification, or it has ended already.",
        "Nothing to do.",
    ),
    "repair:append": of_table(
        "Append can't be repaired",
        "Table `{table}` is kept as a list of changes, so it has no row of a key that could be "
        "wrong.",
        "Re-sync the table if changes are missing.",
    ),
    "repair:keyless": of_table(
        "No key to repair by",
        "Table `{table}` is copied without a key, so a single row can't be written again.",
        "Re-sync the table: a fresh copy replaces all of its rows in one step.",
    ),
    "repair:excluded": of_table(
        "Changes are left out",
        "Table `{table}` leaves some kinds of changes out, so its copy may differ from the source.",
        "Re-sync the table for a fresh copy.",
    ),
    "repair:target": of_table(
        "Rows can't be read back",
        "Rows of table `{table}` can't be read back from this target, so it is not known which "
        "are wrong.",
        "Re-sync the table.",
    ),
    "repair:source": of_table(
        "Rows can't be read by key",
        "This source can't read single rows of table `{table}`.",
        "Re-sync the table: a fresh copy replaces all of its rows in one step.",
    ),
    "repair:keys": of_table(
        "Keys don't fit",
        "The key of table `{table}` has changed since these rows were found to differ.",
        "Verify the table again, then repair what differs.",
    ),
    "repair:doubled": of_table(
        "Key is there twice",
        "The copy of table `{table}` has several rows of one key.",
        "Remove all but one of them in the target by hand, or re-sync the table.",
    ),
    "repair:removed": of_table(
        "Table not copied",
        "Table `{table}` is no longer copied.",
        "Nothing to do.",
    ),
    "run:limit": Message(
        "All runs are taken",
        "{count} of {limit} replicators run: {names}. This one starts when one of them stops.",
        "Pause one of them, or raise `REPLICATOR_MAX_RUNS` and start the workers again.",
        retry=Retry.AUTO,
    ),
    "run:tables-failing": Message(
        "All tables fail",
        "It runs, but all of its tables fail ({count}).",
        "Look at its tables: each says what happened and what to do.",
        "Nothing reaches the target.",
        retry=Retry.NEVER,
    ),
    "run:retry-time-used-up": Message(
        "Retry time used up",
        "The replicator kept failing for {duration}.",
        "Fix the cause that its log names, then press Retry now.",
        "Everything captured so far is kept.",
        retry=Retry.NEVER,
    ),
    # Subscribers
    "subscriber:no-feed": Message(
        "No changes for subscribers",
        "This replicator's target keeps no changes for subscribers.",
        "Make a replicator with the target `Subscribers (pull API)`.",
    ),
    "subscriber:fell-behind": Message(
        "Subscriber fell behind",
        "Changes of {schema}.{name} after this checkpoint were removed before they were read.",
        "Take a snapshot of the table, and go on from its checkpoint. Raise the target's limits, "
        "or read more often.",
        "The subscriber gets no changes of this table until then.",
    ),
    "subscriber:copied-again": Message(
        "Table copied again",
        "{schema}.{name} was copied after this checkpoint, so changes may lie between the two "
        "copies.",
        "Take a snapshot of the table, and go on from its checkpoint.",
        "The subscriber gets no changes of this table until then.",
    ),
    "subscriber:not-copied": Message(
        "Table not copied yet",
        "{schema}.{name} is still being copied.",
        "Ask again once its first copy is done.",
        retry=Retry.AUTO,
    ),
    "subscriber:no-snapshot": Message(
        "No snapshot without a key",
        "{schema}.{name} has no key, and rows were changed since it was copied. So its rows "
        "can't be told apart.",
        "Re-sync the table and take the snapshot then, or give the table a key.",
    ),
    "subscriber:too-early": Message(
        "Snapshot too early",
        "The rows of {schema}.{name} at this checkpoint are no longer kept, or not there yet.",
        "Leave the checkpoint out: the snapshot is then the newest one.",
    ),
    "config:name-taken": Message(
        "Name in use",
        "There is already a replicator called `{name}`.",
        "Choose another name.",
        retry=Retry.NEVER,
    ),
    "config:invalid": Message(
        "Setting not valid",
        "`{field}`: {reason}.",
        "Correct the value.",
        retry=Retry.NEVER,
        help=Help.EDIT,
    ),
    "config:place-refused": Message(
        "Place not allowed",
        "{label}: `{place}` {reason}.",
        "Enter another place. An administrator says with REPLICATOR_ALLOWED_FOLDERS and "
        "REPLICATOR_ALLOWED_HOSTS what connections may use.",
        "Nothing is opened there.",
        help=Help.EDIT,
    ),
    "config:secrets-unreadable": Message(
        "Stored secrets can't be read",
        "The stored passwords were encrypted with another key than the one that is set now.",
        "Set REPLICATOR_SECRET_KEY to the key used before, or enter the passwords again.",
        "Nothing can be connected.",
        retry=Retry.NEVER,
        help=Help.EDIT,
    ),
    "config:unknown-kind": Message(
        "Unknown connector",
        "There is no {role} of kind `{kind}`.",
        "Choose one of: {known}.",
        retry=Retry.NEVER,
    ),
    "config:another-server": Message(
        "The log does not go on there",
        "The log that this replicator follows does not go on at the server and database of these "
        "settings: {reason}.",
        "Enter where that log goes on. To copy from somewhere else, duplicate the replicator and "
        "change the copy.",
        "Followed there all the same, every table fails until it is copied afresh.",
        retry=Retry.NEVER,
    ),
    "config:not-now": Message(
        "Not possible now",
        "The replicator `{name}` can't be changed while {reason}.",
        "Nothing brings it back. Make another one of its exported definition.",
        retry=Retry.NEVER,
    ),
    "internal:unknown-code": Message(
        "Fault of a connector that is missing",
        "A connector reported the code `{code}`, whose text is not here: the connector is not "
        "installed any more, or another version of it is.",
        "Install that connector again where the program runs, or choose another one.",
        retry=Retry.AUTO,
    ),
    "internal:unexpected": Message(
        "Unexpected error",
        "Something went wrong that this product does not know ({name_of_error}).",
        "It is tried again. If it stays, look at the run's log.",
        retry=Retry.AUTO,
        waits=True,
    ),
    **COMPARE_MESSAGES,
    **FEED_MESSAGES,
}
