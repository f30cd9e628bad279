"""Makes, checks and drops what a replicator owns at the server: one slot and its two publications.

`<slot>_full` carries tables with a key or with REPLICA IDENTITY FULL. `<slot>_ins` carries the
tables with neither, inserts and truncates only: publishing updates of such a table would make its
owner's UPDATE fail (CORRECTNESS 20).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import psycopg

from replicators.connectors.model.positions import Position
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import OpenTransaction, SnapshotWait
from replicators.sources.postgresql import sql
from replicators.sources.postgresql.connections import ReplicationConnection
from replicators.sources.postgresql.offsets import lsn_to_int

DROP_SECONDS = 10.0
Connection = psycopg.Connection[Any]
PUBLISH = {"full": "insert, update, delete, truncate", "ins": "insert, truncate"}

SENDS_GENERATED = 180000
"""From this version on publications can carry generated columns that are stored; never those that
are not."""

SLOT = """
SELECT s.database, s.active, s.confirmed_flush_lsn::text, s.wal_status, s.plugin,
       pg_current_wal_flush_lsn()::text, to_jsonb(s) ->> 'invalidation_reason'
FROM pg_replication_slots s WHERE s.slot_name = %s
"""
MEMBERS = """
SELECT p.pubname, r.prrelid::bigint, n.nspname, c.relname, r.oid::bigint
FROM pg_publication p
LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid
LEFT JOIN pg_class c ON c.oid = r.prrelid
LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = ANY(%s)
"""
# Publications whose options differ from ours: an older server made them, or somebody altered them.
ALTERED = """
SELECT p.pubname FROM pg_publication p
WHERE p.pubname = ANY(%s) AND NOT (
    p.pubviaroot AND p.pubinsert AND p.pubtruncate
    AND p.pubupdate = (p.pubname = %s) AND p.pubdelete = (p.pubname = %s)
    AND coalesce(to_jsonb(p) ->> 'pubgencols', 's') = 's')
"""
# Partitions that break a table published with its updates. Some make the owner's UPDATE fail.
# Others have another identity than their table: their updates and deletes come without its key, so
# their rows can't be found.
REFUSING = """
SELECT root.oid::bigint, min(format('ALTER TABLE %%I.%%I REPLICA IDENTITY FULL;', n.nspname, l.relname))
FROM unnest(%s::oid[]) AS w (oid)
JOIN pg_class root ON root.oid = w.oid
CROSS JOIN LATERAL pg_partition_tree(root.oid) t
JOIN pg_class l ON l.oid = t.relid AND l.relkind = 'r' AND l.oid <> root.oid
JOIN pg_namespace n ON n.oid = l.relnamespace
WHERE l.relreplident = 'n'
   OR l.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i
      WHERE i.indrelid = l.oid AND i.indisprimary AND i.indimmediate)
   OR l.relreplident = 'i' AND NOT EXISTS (SELECT FROM pg_index i
      WHERE i.indrelid = l.oid AND i.indisreplident)
   OR l.relreplident <> 'f' AND 'i' IN (l.relreplident, root.relreplident) AND EXISTS (
      SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
      AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
      WHERE i.indrelid = root.oid AND CASE root.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
      EXCEPT
      SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
      AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
      WHERE i.indrelid = l.oid AND CASE l.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END)
GROUP BY root.oid
"""  # noqa: E501
# Tables that lost their identity: while they are published with updates, their updates fail.
BARE = """
SELECT c.oid::bigint FROM pg_class c
WHERE c.oid = ANY(%s::oid[]) AND c.relkind = 'r' AND CASE c.relreplident
    WHEN 'd' THEN NOT EXISTS (SELECT FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate)
    WHEN 'i' THEN NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident)
    ELSE c.relreplident = 'n' END
"""
# Partitions whose changes are not logged. A published table can't become unlogged, but its
# partition can.
UNLOGGED = """
SELECT root.oid::bigint, min(format('ALTER TABLE %%I.%%I SET LOGGED;', n.nspname, l.relname))
FROM unnest(%s::oid[]) AS root (oid)
CROSS JOIN LATERAL pg_partition_tree(root.oid) t
JOIN pg_class l ON l.oid = t.relid AND l.relkind = 'r' AND l.oid <> root.oid AND l.relpersistence <> 'p'
JOIN pg_namespace n ON n.oid = l.relnamespace
GROUP BY root.oid
"""  # noqa: E501
# Tables that are partitions of one of these: their changes come under its name only.
PARTS = """
SELECT w.oid::bigint, format('ALTER TABLE %%s DETACH PARTITION %%s;', h.inhparent::regclass, w.oid::regclass)
FROM unnest(%s::oid[]) AS w (oid)
JOIN pg_class c ON c.oid = w.oid AND c.relispartition
JOIN pg_inherits h ON h.inhrelid = c.oid
WHERE EXISTS (SELECT FROM pg_partition_ancestors(w.oid) a
              WHERE a.relid <> w.oid AND a.relid::oid = ANY(%s::oid[]))
"""  # noqa: E501
# Only members of pg_read_all_stats see the times of other roles' transactions; everybody sees who
# blocks.
HOLDERS = """
SELECT b.pid, extract(epoch FROM clock_timestamp() - coalesce(a.xact_start, p.prepared))::float8,
       extract(epoch FROM clock_timestamp() - a.query_start)::float8, coalesce(p.gid, ''),
       coalesce(a.application_name, '')
FROM unnest(pg_blocking_pids(%s)) AS b (pid)
LEFT JOIN pg_stat_activity a ON b.pid <> 0 AND a.pid = b.pid
LEFT JOIN pg_locks l
  ON b.pid = 0 AND l.pid = %s AND l.locktype = 'transactionid' AND NOT l.granted
LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
"""
# Locks that a change of a publication waits for. A prepared transaction has no process; another
# line of its locks holds its number.
LOCKS = """
SELECT coalesce(l.pid, 0), extract(epoch FROM clock_timestamp() - coalesce(min(a.xact_start), min(p.prepared)))::float8,
       extract(epoch FROM clock_timestamp() - min(a.query_start))::float8, coalesce(min(p.gid), ''),
       coalesce(min(a.application_name), ''),
       format('a lock (%%s) on %%s', min(regexp_replace(l.mode, 'Lock$', '')), string_agg(DISTINCT l.relation::regclass::text, ', '))
FROM pg_locks l
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted
  AND x.virtualtransaction = l.virtualtransaction
LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
WHERE l.locktype = 'relation' AND l.relation = ANY(%s::oid[])
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')
  AND l.pid IS DISTINCT FROM pg_backend_pid()
GROUP BY l.pid, l.virtualtransaction ORDER BY bool_or(l.granted) DESC, 2 DESC NULLS LAST
"""  # noqa: E501
LOCK_SECONDS = 1


def publications(slot: str) -> dict[str, str]:
    """The names of the slot's publications, by "full" and "ins"."""
    return {kind: f"{slot}_{kind}" for kind in PUBLISH}


def kind_of(table: TableSchema) -> str:
    """The kind of publication that a table belongs in."""
    return "full" if table.key or table.full_before else "ins"


def _members(connection: Connection, slot: str) -> dict[str, dict[int, TableId]]:
    names = publications(slot)
    kinds = {name: kind for kind, name in names.items()}
    found: dict[str, dict[int, TableId]] = {}
    for name, oid, schema, table, _ in connection.execute(MEMBERS, [list(kinds)]).fetchall():
        of = found.setdefault(kinds[name], {})
        if oid is not None:
            of[oid] = TableId(schema, table)
    return found


def memberships(
    connection: Connection, slot: str, tables: Sequence[TableSchema]
) -> dict[TableId, int]:
    """The number of each table's row in its publication, for those of `tables` that are in the
    right one. A table that was taken out and put back has another number."""
    kinds = {name: kind for kind, name in publications(slot).items()}
    rows = connection.execute(MEMBERS, [list(kinds)]).fetchall()
    found = {(kinds[name], oid): number for name, oid, _, _, number in rows if oid is not None}
    numbers = {t.id: found.get((kind_of(t), t.native_id)) for t in tables}
    return {table: number for table, number in numbers.items() if number is not None}


def publish(
    connection: Connection,
    slot: str,
    tables: Sequence[TableSchema],
    wait: SnapshotWait | None = None,
) -> list[TableSchema]:
    """Make missing publications and put `tables` into the right ones; committed on return.
    Idempotent. Returns the tables that were not in it. If others hold a table's lock, it is
    requested again and again with a short limit: a long wait in the lock's queue would block all
    later writers too. `wait` is called each time with the holders."""
    began = time.monotonic()
    while True:
        try:
            return _publish(connection, slot, tables)
        except psycopg.errors.LockNotAvailable:
            if wait is not None:
                wait(time.monotonic() - began, lock_holders(connection, tables))


def lock_holders(connection: Connection, tables: Sequence[TableSchema]) -> list[OpenTransaction]:
    """The transactions whose locks on these tables block publishing them."""
    numbers = [t.native_id for t in tables]
    return [OpenTransaction(*row) for row in connection.execute(LOCKS, [numbers]).fetchall()]


def _publish(connection: Connection, slot: str, tables: Sequence[TableSchema]) -> list[TableSchema]:
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        members = _members(connection, slot)
        altered = _altered(connection, slot)
        for kind, name in publications(slot).items():
            options = f"publish = {sql.literal(PUBLISH[kind])}, publish_via_partition_root = true"
            if connection.info.server_version >= SENDS_GENERATED:
                options += ", publish_generated_columns = stored"
            if kind not in members:
                connection.execute(f"CREATE PUBLICATION {sql.name(name)} WITH ({options})")
            elif name in altered:
                connection.execute(f"ALTER PUBLICATION {sql.name(name)} SET ({options})")
            mine = members.get(kind, {})
            wanted = {t.native_id: t.source_id for t in tables if kind_of(t) == kind}
            if kind == "full":
                for number, _ in connection.execute(REFUSING, [list(wanted)]).fetchall():
                    del wanted[number]  # the copy of this table reports the reason
            other = {t.native_id for t in tables if kind_of(t) != kind}
            _alter(connection, name, "ADD", [t for oid, t in wanted.items() if oid not in mine])
            _alter(connection, name, "DROP", [t for oid, t in mine.items() if oid in other])
        return [t for t in tables if t.native_id not in members.get(kind_of(t), {})]


def refusing(
    connection: Connection, tables: Sequence[TableSchema], followed: Iterable[int] = ()
) -> dict[TableId, str]:
    """Those of `tables` that can't be followed because of partitions, each with the statement that
    mends it. There are three causes. A partition has no identity, or another one: publishing
    updates makes the owner's UPDATE and DELETE fail (CORRECTNESS 20), or those changes are lost. A
    partition is not logged. The table is itself a partition of one of `followed` (OIDs): its
    changes come under that table's name."""
    names = {t.native_id: t.id for t in tables}
    full = [t.native_id for t in tables if kind_of(t) == "full"]
    found = [
        *connection.execute(PARTS, [list(names), list(followed)]).fetchall(),
        *connection.execute(UNLOGGED, [list(names)]).fetchall(),
        *connection.execute(REFUSING, [full]).fetchall(),
    ]
    return {names[number]: statement for number, statement in found}


def refused(connection: Connection, slot: str, tables: Sequence[TableSchema]) -> dict[TableId, str]:
    """As `refusing`, with the tables in the slot's publications as `followed`."""
    members = _members(connection, slot)
    return refusing(connection, tables, {oid for mine in members.values() for oid in mine})


def release(connection: Connection, slot: str) -> None:
    """Take out the tables whose owner's UPDATE and DELETE fail while they are published: those that
    lost their key, or got such a partition. The table can wait for a person; its owner's writes
    can't."""
    mine = _members(connection, slot).get("full", {})
    refusing = connection.execute(REFUSING, [list(mine)]).fetchall()
    lost = {row[0] for row in refusing + connection.execute(BARE, [list(mine)]).fetchall()}
    _alter(
        connection, publications(slot)["full"], "DROP", [t for n, t in mine.items() if n in lost]
    )


def _altered(connection: Connection, slot: str) -> set[str]:
    names = publications(slot)
    rows = connection.execute(ALTERED, [list(names.values()), names["full"], names["full"]])
    return {name for (name,) in rows.fetchall()}


def unpublish(connection: Connection, slot: str, tables: Sequence[TableSchema]) -> None:
    """Take tables out of the publications; tables that are out already are ignored."""
    gone = {t.native_id for t in tables}
    with connection.transaction():
        for kind, mine in _members(connection, slot).items():
            _alter(
                connection,
                publications(slot)[kind],
                "DROP",
                [t for o, t in mine.items() if o in gone],
            )


def unpublished(
    connection: Connection, slot: str, tables: Sequence[TableSchema]
) -> list[TableSchema]:
    """Those of `tables` whose changes the stream does not carry, for example because they were
    created again, or did not carry for a while, because they were taken out and put back."""
    found = memberships(connection, slot, tables)
    return [t for t in tables if t.id not in found or t.member not in (0, found[t.id])]


def _alter(connection: Connection, publication: str, act: str, tables: Sequence[TableId]) -> None:
    if tables:
        listed = ", ".join(f"ONLY {sql.table(t)}" for t in tables)
        connection.execute(f"ALTER PUBLICATION {sql.name(publication)} {act} TABLE {listed}")


def holders(connection: Connection, pid: int) -> list[OpenTransaction]:
    """The transactions that block the server's process `pid`."""
    return [OpenTransaction(*row) for row in connection.execute(HOLDERS, [pid, pid]).fetchall()]


def create_slot(
    link: ReplicationConnection,
    slot: str,
    version: int,
    *,
    temporary: bool,
    on_wait: Callable[[float], None] = lambda waited: None,
) -> tuple[int, str]:
    """Make the slot. Returns its consistent point and the name of the snapshot there, which is
    usable while `link` runs no other command. The server waits for open transactions: `on_wait` is
    called each second, and may raise to stop waiting."""
    head = (
        f"CREATE_REPLICATION_SLOT {sql.name(slot)}{' TEMPORARY' if temporary else ''} LOGICAL "
        "pgoutput"
    )
    if version < 150000:
        commands = [f"{head} EXPORT_SNAPSHOT"]
    else:
        commands = [f"{head} (SNAPSHOT 'export')"]
        if version >= 170000 and not temporary:
            commands.insert(0, f"{head} (SNAPSHOT 'export', FAILOVER true)")
    for number, command in enumerate(commands, 1):
        try:
            row = link.command(command, on_wait=on_wait, slot=slot)[0]
        except ReplicationError as err:
            if number == len(commands) or err.code != "internal:unexpected":
                raise
            continue
        return lsn_to_int(str(row[1])), str(row[2])
    raise AssertionError("the last command returns or raises")


def verify(
    connection: Connection, link: ReplicationConnection, slot: str, position: Position
) -> None:
    """Raise where the log does not continue at `position` (CORRECTNESS 23)."""
    _verify_identity(link, position)
    row = connection.execute(SLOT, [slot]).fetchone()
    if row is None:
        raise ReplicationError("source:slot-missing", slot=slot)
    database, _, confirmed, wal_status, plugin, end, reason = row
    if wal_status == "lost" or reason:
        raise ReplicationError("source:slot-invalidated", slot=slot)
    if database != connection.info.dbname or plugin != "pgoutput":
        raise ReplicationError(
            "source:position-lost", reason=f"the slot `{slot}` belongs to something else"
        )
    if lsn_to_int(confirmed) > position.ordinal:
        raise ReplicationError(
            "source:position-lost",
            reason=f"the slot `{slot}` was made again or moved on by something else",
        )
    if position.ordinal > lsn_to_int(end):
        raise ReplicationError(
            "source:position-lost", reason="the server's log ends before it, as after a restore"
        )
    if set(_members(connection, slot)) != set(PUBLISH):
        raise ReplicationError("source:position-lost", reason="its publication was dropped")
    if _altered(connection, slot):
        raise ReplicationError("source:position-lost", reason="its publication was altered")


def _verify_identity(link: ReplicationConnection, position: Position) -> None:
    identity = link.identity()
    known = position.detail
    if (
        str(known.get("system_identifier", identity.system_identifier))
        != identity.system_identifier
    ):
        raise ReplicationError("source:position-lost", reason="this is another server")
    timeline = int(known.get("timeline", identity.timeline))
    if timeline == identity.timeline:
        return
    if timeline > identity.timeline:  # the first timeline has no history file
        raise ReplicationError(
            "source:position-lost",
            reason="the server is one that a standby had taken over from, or an older copy",
        )
    history = link.command(f"TIMELINE_HISTORY {identity.timeline}")[0][1] or ""
    if position.ordinal > switch_point(history, timeline):
        raise ReplicationError(
            "source:position-lost",
            reason="a standby took over that had not yet received all of the log",
        )


def switch_point(history: str, timeline: int) -> int:
    """Where the server left `timeline`, from its history file; 0 if the server was never on it."""
    for line in history.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == str(timeline):
            return lsn_to_int(words[1])
    return 0


def drop_slot(connection: Connection, slot: str) -> None:
    """Drop the slot and end the connection that reads it; idempotent."""
    deadline = time.monotonic() + DROP_SECONDS
    while True:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
            "WHERE slot_name = %s AND active_pid IS NOT NULL",
            [slot],
        )
        try:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE slot_name = %s",
                [slot],
            )
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        except psycopg.errors.UndefinedObject:
            return
        else:
            return


def drop_publications(connection: Connection, slot: str) -> None:
    """Drop the publications; idempotent."""
    for name in publications(slot).values():
        connection.execute(f"DROP PUBLICATION IF EXISTS {sql.name(name)}")


def drop_statements(slot: str) -> list[str]:
    """The statements with which a person removes everything."""
    return [
        f"SELECT pg_drop_replication_slot({sql.literal(slot).strip()});",
        *(f"DROP PUBLICATION IF EXISTS {sql.name(name)};" for name in publications(slot).values()),
    ]
