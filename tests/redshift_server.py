"""A PostgreSQL server that plays Redshift for the tests: a proxy that speaks the protocol. It turns
COPY of Parquet files in a bucket into rows, refuses what Redshift lacks, and words some errors as
Redshift does. Docs say what was seen only here."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from demo.postgres import EmbeddedPostgres
from tests.servers import Database, drop_database
from tests.stores import Keys, ObjectStore, object_store

_NUMBERS = itertools.count(1)
_TEXT = pa.large_string()
CHUNK = 1 << 18
LOADER = Keys("tester", "not-a-secret")
ROLE = "arn:aws:iam::123456789012:role/replicator-copy"
MADE = """
CREATE SCHEMA redshift;
CREATE DOMAIN redshift.super AS jsonb;
CREATE DOMAIN redshift.varbyte AS bytea;
CREATE FUNCTION redshift.version() RETURNS text LANGUAGE sql IMMUTABLE
  AS $$SELECT 'PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.played'$$;
CREATE FUNCTION redshift.json_parse(varchar) RETURNS redshift.super LANGUAGE sql IMMUTABLE STRICT
  AS $$SELECT $1::jsonb::redshift.super$$;
CREATE FUNCTION redshift.json_serialize(redshift.super) RETURNS varchar LANGUAGE sql
  IMMUTABLE STRICT AS $$SELECT $1::jsonb::text::varchar$$;
CREATE FUNCTION redshift.from_hex(varchar) RETURNS redshift.varbyte LANGUAGE sql IMMUTABLE STRICT
  AS $$SELECT decode($1, 'hex')::redshift.varbyte$$;
CREATE FUNCTION redshift.to_hex(redshift.varbyte) RETURNS varchar LANGUAGE sql IMMUTABLE STRICT
  AS $$SELECT encode($1::bytea, 'hex')::varchar$$;
CREATE FUNCTION redshift.bytes_of(varchar) RETURNS redshift.varbyte LANGUAGE sql IMMUTABLE STRICT
  AS $$SELECT convert_to($1, 'UTF8')::redshift.varbyte$$;
GRANT USAGE ON SCHEMA redshift TO PUBLIC;
"""
SETTINGS = {
    "search_path": "redshift, pg_catalog, public",
    "default_transaction_isolation": "'repeatable read'",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "timezone": "'UTC'",
}
LACKING = re.compile(
    r"\bON CONFLICT\b|\bRETURNING\b|\bUNLOGGED\b|IS (NOT )?DISTINCT FROM|generate_series|\bjsonb?\b"
    r"|\bbytea\b|\bCREATE (UNIQUE )?INDEX\b|\bLATERAL\b|\bunnest\b|\bFILTER *\(|::text\b"
    r"|\bTRUNCATE\b|\bALTER COLUMN\b|\bstarts_with\b|WHEN (NOT )?MATCHED (BY|AND)",
    re.IGNORECASE,
)
"""What Redshift has not, or not within a transaction."""
_WORDS = (
    (re.compile(r"CAST\((\"[^\"]+\"(?:\.\"[^\"]+\")?) AS VARBYTE\)"), r"redshift.bytes_of(\1)"),
    (re.compile(r"\bJSON_SERIALIZE\("), "redshift.json_serialize("),
    (re.compile(r"\bVARBYTE\(\d+\)"), "VARBYTE"),
    (re.compile(r"\bvarchar\(max\)", re.IGNORECASE), "varchar(65535)"),
    (re.compile(r"\bSET (enable_case_sensitive_identifier|query_group)\b"), r"SET redshift.\1"),
    (re.compile(r"\bextra_float_digits TO 2\b"), "extra_float_digits TO 1"),
)
_COPY = re.compile(
    r"COPY (?P<table>(?:\"(?:[^\"]|\"\")*\"\.?)+) FROM '(?P<url>[^']+)'\s+"
    r"(?:IAM_ROLE (?P<role>default|'[^']+')"
    r"|CREDENTIALS '(?P<keys>[^']+)')\s+(?P<rest>.*?);?\s*",
    re.DOTALL,
)
_TEXTS = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"]|\"\")*\"")
_TAKES: dict[str, Any] = {
    "smallint": pa.types.is_int16, "integer": pa.types.is_int32, "bigint": pa.types.is_int64,
    "numeric": pa.types.is_decimal, "real": pa.types.is_float32,
    "double precision": pa.types.is_float64, "boolean": pa.types.is_boolean,
    "character varying": pa.types.is_string, "date": pa.types.is_date32,
    "timestamp without time zone": lambda kind: pa.types.is_timestamp(kind),
}  # fmt: skip


class CopyError(Exception):
    """What Redshift would say of a COPY."""


@dataclass
class RedshiftServer:
    """Listens for clients until it is closed. `roles`: the IAM roles that it may use."""

    postgres: EmbeddedPostgres
    store: ObjectStore
    roles: dict[str, Keys] = field(default_factory=dict)
    copies: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self.postgres.port))
        with closing(client), closing(server), suppress(OSError, EOFError):
            _Session(self, client, server).run()

    def file_system(self, role: str | None, keys: str | None) -> fs.FileSystem:
        """The bucket as a COPY may see it."""
        if role is not None:
            name = role.strip("'")
            if name not in self.roles:
                raise CopyError(
                    f"User arn:aws:redshift:us-east-1:1:dbuser:c/u is not authorized to assume IAM"
                    f" Role {name}"
                )
            found = self.roles[name]
        else:
            told = dict(part.split("=", 1) for part in str(keys).split(";"))
            found = Keys(told["aws_access_key_id"], told["aws_secret_access_key"])
        return fs.S3FileSystem(
            access_key=found.access, secret_key=found.secret, region="us-east-1",
            endpoint_override=self.store.endpoint,
        )  # fmt: skip


@dataclass
class _Session:
    """One client's connection."""

    owner: RedshiftServer
    client: socket.socket
    server: socket.socket

    def run(self) -> None:
        """Pass on the start, then answer message by message: a client waits for each answer."""
        while True:
            length = struct.unpack("!i", _exactly(self.client, 4))[0]
            body = _exactly(self.client, length - 4)
            code = struct.unpack("!i", body[:4])[0]
            if code not in (80877103, 80877104):  # TLS and GSSAPI are refused
                break
            self.client.sendall(b"N")
        self.server.sendall(struct.pack("!i", length) + body)
        if code == 80877102:  # a request to cancel
            return
        self._until_ready()
        while True:
            kind, body = _message(self.client)
            if kind == b"Q":
                self._asked(body[:-1].decode())
                continue
            if kind == b"X":
                return
            raise EOFError(f"Redshift's simple protocol is asked for {kind!r}")

    def _until_ready(self) -> None:
        """Pass on what the server says until it is ready for the next query, or needs an answer of
        the client's own sign-in."""
        while True:
            kind, body = _message(self.server)
            _send(self.client, kind, self._worded(kind, body))
            if kind == b"Z":
                return
            if kind == b"R" and struct.unpack("!i", body[:4])[0] not in (0, 12):
                _send(self.server, *_message(self.client))

    def _worded(self, kind: bytes, body: bytes) -> bytes:
        """A message as Redshift words it."""
        if kind == b"S" and body.startswith(b"server_version\0"):
            return b"server_version\x008.0.2\0"
        if kind == b"E" and b"C40001\0" in body:
            return b"SERROR\0CXX000\0M1023\0DSerializable isolation violation on a table\0\0"
        return body

    def _asked(self, text: str) -> None:
        copied = _COPY.fullmatch(text.strip())
        if copied is not None:
            self.owner.copies.append(text)
            self._copy(copied)
            return
        bare = _TEXTS.sub("''", text)
        lacking = LACKING.search(bare)
        if lacking is not None:
            self._fail(f'syntax error at or near "{lacking[0]}"', "42601")
            return
        for pattern, new in _WORDS:
            text = pattern.sub(new, text)
        _send(self.server, b"Q", text.encode() + b"\0")
        self._until_ready()

    def _fail(self, text: str, state: str = "XX000") -> None:
        """An error within the server's session, so that a transaction fails too."""
        told = text.replace("%", "%%").replace("'", "''").replace("\\", "")
        block = f"DO $$ BEGIN RAISE EXCEPTION '{told}' USING ERRCODE = '{state}'; END $$"
        _send(self.server, b"Q", block.encode() + b"\0")
        self._until_ready()

    def _rows(self, text: str) -> list[list[str | None]]:
        """The rows of a query of ours. CopyError with the server's words."""
        _send(self.server, b"Q", text.encode() + b"\0")
        found: list[list[str | None]] = []
        fault = b""
        while True:
            kind, body = _message(self.server)
            if kind == b"D":
                found.append(_columns(body))
            elif kind == b"E":
                fault = body
            elif kind == b"Z":
                if fault:
                    raise CopyError(fault.decode())
                return found

    def _copy(self, copied: re.Match[str]) -> None:
        table = copied["table"]
        quoted = table.replace("'", "''")
        try:
            kinds = self._rows(
                "SELECT attname, CASE WHEN typtype = 'd' THEN typname::text"
                " ELSE format_type(atttypid, atttypmod) END FROM pg_attribute"
                " JOIN pg_type t ON t.oid = atttypid WHERE attrelid ="
                f" '{quoted}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            )
            system = self.owner.file_system(copied["role"], copied["keys"])
            files = list(_files(system, copied["url"], copied["rest"], dict(kinds)))
        except CopyError as err:
            self._fail(str(err))
            return
        except OSError as err:
            self._fail(_of_s3(str(err)))
            return
        _send(self.server, b"Q", f"COPY {table} FROM STDIN\0".encode())
        kind, body = _message(self.server)
        if kind == b"E":
            _send(self.client, kind, body)
            self._until_ready()
            return
        for body in files:
            for at in range(0, len(body), CHUNK):
                _send(self.server, b"d", bytes(body[at : at + CHUNK]))
        _send(self.server, b"c", b"")
        self._until_ready()


def _of_s3(text: str) -> str:
    for found, said in (
        ("NoSuchBucket", "The specified bucket does not exist,Status 404,Error NoSuchBucket"),
        ("INVALID_ACCESS_KEY_ID", "Invalid,Status 403,Error InvalidAccessKeyId"),
        ("SIGNATURE_DOES_NOT_MATCH", "Wrong,Status 403,Error SignatureDoesNotMatch"),
        ("ACCESS_DENIED", "Access Denied,Status 403,Error AccessDenied"),
        ("Path does not exist", "The specified key does not exist.,Status 404,Error NoSuchKey"),
    ):
        if found.lower() in text.lower():
            return f"S3ServiceException:{said}"
    return f"S3ServiceException:{text}"


def _files(
    system: fs.FileSystem, url: str, rest: str, kinds: dict[Any, Any]
) -> Iterator[memoryview]:
    """The rows of each of a manifest's files as COPY of PostgreSQL takes them."""
    told = re.fullmatch(r"(?:FORMAT AS PARQUET)( SERIALIZETOJSON)?( MANIFEST)?", _ordered(rest))
    if told is None:
        raise CopyError(f"syntax error in {rest}")
    if system.get_file_info(_path(url)).type != fs.FileType.File:
        raise CopyError(_of_s3("Path does not exist"))
    with system.open_input_file(_path(url)) as file:
        entries = json.loads(file.read())["entries"]
    for entry in entries:
        with system.open_input_file(_path(entry["url"])) as file:
            if entry.get("meta", {}).get("content_length") != file.size():
                raise CopyError("Manifest file is not in correct json format: content_length")
            made = pq.ParquetFile(file).read()
        if len(made.column_names) != len(kinds):
            raise CopyError(f"Unmatched number of columns between table and file. {entry['url']}")
        columns = [
            _shown(made.column(n), str(kind), is_nested=bool(told[1]))
            for n, kind in enumerate(kinds.values())
        ]
        rows = pc.binary_join_element_wise(*columns, pa.scalar("\t", _TEXT))
        ended = pc.binary_join_element_wise(rows, pa.scalar("\n", _TEXT), pa.scalar("", _TEXT))
        if len(ended):
            _, ends, body = ended.buffers()
            first, last = (
                int.from_bytes(ends[8 * n : 8 * n + 8], "little") for n in (0, len(ended))
            )
            yield memoryview(body)[first:last]


def _ordered(rest: str) -> str:
    """The options in one order: Redshift takes them in any."""
    words = " ".join(rest.split())
    found = [w for w in ("SERIALIZETOJSON", "MANIFEST") if re.search(rf"\b{w}\b", words)]
    for word in found:
        words = re.sub(rf" ?\b{word}\b", "", words)
    return " ".join([words.strip(), *found])


def _shown(values: pa.ChunkedArray, kind: str, *, is_nested: bool) -> pa.Array:
    """Values of a Parquet file's column as texts, where Redshift reads its type into the
    table's."""
    base = kind.partition("(")[0]
    is_super = kind == "super" and is_nested and pa.types.is_nested(values.type)
    if not is_super and not (base in _TAKES and _TAKES[base](values.type)):
        raise CopyError(
            f"Spectrum Scan Error: column type {kind}, Parquet schema: {values.type} has an"
            " incompatible Parquet schema"
        )
    flat = values.combine_chunks()
    if is_super or pa.types.is_floating(flat.type):
        flat = pa.array([_text(v) for v in flat.to_pylist()], _TEXT)
    shown = flat.cast(_TEXT)
    most = re.fullmatch(r"character varying\((\d+)\)", kind)
    if most and (pc.max(pc.binary_length(shown)).as_py() or 0) > int(most[1]):
        raise CopyError(
            "Spectrum Scan Error: The length of the data column is longer than the table"
        )
    for plain, escaped in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        shown = pc.replace_substring(shown, plain, escaped)
    return pc.fill_null(shown, "\\N")


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)


def _path(url: str) -> str:
    return url.removeprefix("s3://")


def _exactly(sock: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = sock.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _message(sock: socket.socket) -> tuple[bytes, bytes]:
    kind = _exactly(sock, 1)
    length = struct.unpack("!i", _exactly(sock, 4))[0]
    return kind, _exactly(sock, length - 4)


def _send(sock: socket.socket, kind: bytes, body: bytes) -> None:
    sock.sendall(kind + struct.pack("!i", len(body) + 4) + body)


def _columns(body: bytes) -> list[str | None]:
    (count,), at = struct.unpack("!h", body[:2]), 2
    found: list[str | None] = []
    for _ in range(count):
        (length,) = struct.unpack("!i", body[at : at + 4])
        at += 4
        found.append(None if length < 0 else body[at : at + length].decode())
        at += max(length, 0)
    return found


def make_redshift_database(postgres: EmbeddedPostgres, name: str) -> Database:
    """Make a database that looks like one of Redshift."""
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    made = Database(postgres, name)
    made.execute(MADE)
    for setting, value in SETTINGS.items():
        made.execute(f"ALTER DATABASE {name} SET {setting} = {value}")
    return made


@contextmanager
def fresh_redshift_database(server: RedshiftServer) -> Iterator[Database]:
    """A database that looks like one of Redshift, ordered by bytes."""
    name = f"redshift{os.getpid()}_{next(_NUMBERS)}"
    try:
        yield make_redshift_database(server.postgres, name)
    finally:
        drop_database(server.postgres, name)


@contextmanager
def redshift_server(postgres: EmbeddedPostgres) -> Iterator[RedshiftServer]:
    """A server with a bucket, and a role that reads it."""
    with (
        object_store() as store,
        RedshiftServer(postgres, store, {ROLE: LOADER, "default": LOADER}) as made,
    ):
        yield made
