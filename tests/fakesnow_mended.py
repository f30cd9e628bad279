"""Starts fakesnow as a server, with what it does differently from Snowflake mended.

It runs in the emulator's own environment (`SnowflakeServer`), and imports nothing of this program.
What it mends, in fakesnow 0.12:
- CREATE OR REPLACE TABLE ... CLONE ... COPY GRANTS: it knew neither REPLACE nor COPY GRANTS there;
- SHOW OBJECTS left the tables' comments out;
- a stage without a schema was looked for in the session's schema in capital letters;
- a NULL moment was read as 1970;
- a MERGE was several statements, which failed inside of a transaction, and knew only some of the
  source's columns. DuckDB has a MERGE of its own;
- transactions that change the same rows: what DuckDB then says ended as an error of the server,
  which clients ask again for minutes. Snowflake lets the second one wait, and says after a while
  that the table is locked (625); here it says so at once. Other errors of values become 100038;
- a client that died left its transaction open for ever. Snowflake ends it when another one waits
  for it, and it was idle for five minutes; here five seconds are enough;
- warehouses: ALTER WAREHOUSE was not known. Now the last state is kept, and SHOW WAREHOUSES has it;
- sign-in: the password `wrong` is refused, and a key must have signed for the user and account.
"""

from __future__ import annotations

import json
import re
import sys
import time
from importlib import import_module
from typing import Any

import duckdb
import jwt
import pyarrow as pa
import pyarrow.compute as pc
import snowflake.connector.errors as errors
import uvicorn
from fakesnow import arrow, cursor
from fakesnow.dialect import parse_one
from fakesnow.transforms import show, stage
from starlette.requests import Request
from starlette.responses import JSONResponse

COMMENT = """coalesce((SELECT e.comment FROM _fs_global._fs_information_schema._fs_tables_ext e
WHERE e.ext_table_catalog = table_catalog AND e.ext_table_schema = table_schema
AND e.ext_table_name = table_name), '') as comment"""
_CLONE = re.compile(r"CREATE OR REPLACE TABLE (.+) CLONE (.+) COPY GRANTS", re.DOTALL)
_WAREHOUSE = re.compile(r'ALTER WAREHOUSE "(\w+)" (SUSPEND|RESUME.*)')
_NOW = re.compile(r"SHOW WAREHOUSES LIKE '(\w+)'")
_states: dict[str, str] = {}
_open: dict[Any, float] = {}
_aborted: dict[Any, bool] = {}
IDLE_SECONDS = 5.0
"""Snowflake waits for five minutes, where another transaction waits for the idle one."""
server: Any = import_module("fakesnow.server")


def mend_statements() -> None:
    """The statements that it lacks, and errors of DuckDB."""
    as_executed = cursor.FakeSnowflakeCursor.execute

    def execute(self: Any, command: str, *rest: Any, **named: Any) -> Any:
        if found := _WAREHOUSE.fullmatch(command):
            state = "SUSPENDED" if found[2] == "SUSPEND" else "STARTED"
            if _states.get(found[1]) == state == "SUSPENDED":
                text = "Invalid state. Warehouse cannot be suspended."
                raise errors.ProgrammingError(msg=text, errno=90064, sqlstate="22000")
            _states[found[1]] = state
            command = "SELECT 'Statement executed successfully.' AS status"
        elif found := _NOW.fullmatch(command):
            state = _states.get(found[1], "STARTED")
            command = f"SELECT '{found[1]}' AS name, '{state}' AS state, 600 AS auto_suspend"
        elif found := _CLONE.fullmatch(command):
            command = f"CREATE OR REPLACE TABLE {found[1]} AS SELECT * FROM {found[2]}"
        _note(self._conn, command)
        try:
            if command.startswith("MERGE "):
                made = self._transform(parse_one(command), None)
                self._duck_conn.execute(made.sql(dialect="duckdb"))
                command = "SELECT 'Merged.' AS status"
            return as_executed(self, command, *rest, **named)
        except duckdb.TransactionException as err:
            _abort_idle(self._conn)
            raise errors.ProgrammingError(msg=str(err), errno=625, sqlstate="57014") from err
        except duckdb.Error as err:
            raise errors.ProgrammingError(msg=str(err), errno=100038, sqlstate="22018") from err

    cursor.FakeSnowflakeCursor.execute = execute


def _note(connection: Any, command: str) -> None:
    """When a session last did something, and whether its transaction is open. A transaction that
    was aborted meanwhile says so."""
    word = command.split(None, 1)[0].upper().rstrip(";")
    if word in {"BEGIN", "COMMIT", "ROLLBACK"}:
        was_aborted = _aborted.pop(connection, False)
        _open.pop(connection, None)
        if word == "BEGIN":
            _open[connection] = time.monotonic()
        if word == "COMMIT" and was_aborted:
            raise errors.ProgrammingError(msg="aborted", errno=604, sqlstate="57014")
    elif _aborted.get(connection):
        raise errors.ProgrammingError(msg="aborted", errno=604, sqlstate="57014")
    elif connection in _open:
        _open[connection] = time.monotonic()


def _abort_idle(waiting: Any) -> None:
    """Roll back transactions that nobody goes on with, such as those of clients that died."""
    for connection, since in list(_open.items()):
        if connection is not waiting and time.monotonic() - since > IDLE_SECONDS:
            _open.pop(connection, None)
            _aborted[connection] = True
            connection._duck_conn.rollback()


def mend_comments() -> None:
    """SHOW OBJECTS with comments."""
    made = show.SQL_CREATE_VIEW_SHOW_OBJECTS.replace("'' as comment", COMMENT)
    server.shared_fs.duck_conn.execute(made.replace("view if not exists", "or replace view"))


def mend_stages() -> None:
    """The session's own schema is not folded."""
    as_parted = stage.parts_from_var

    def parts(var: str, database: str | None, schema: str | None) -> tuple[str, str, str]:
        found = as_parted(var, database, schema)
        return found if "." in var else (database or "", schema or "", found[2])

    def named(
        var: str, current_database: str | None, current_schema: str | None
    ) -> tuple[str, str, str]:
        return parts(var, current_database, current_schema)

    stage.parts_from_var = named


def mend_moments() -> None:
    """A NULL moment stays NULL."""
    as_struct = arrow.timestamp_to_sf_struct

    def struct(moments: Any) -> pa.Array:
        flat = moments.combine_chunks() if isinstance(moments, pa.ChunkedArray) else moments
        filled = as_struct(pc.fill_null(flat, pa.scalar(0, flat.type)))
        return pa.StructArray.from_arrays(
            [filled.field(n) for n in range(filled.type.num_fields)],
            fields=list(filled.type),
            mask=flat.is_null(),
        )

    arrow.timestamp_to_sf_struct = struct


def mend_sign_in() -> None:
    """A wrong password, and a key that did not sign, are refused as Snowflake does."""
    route = next(r for r in server.routes if r.path.endswith("login-request"))
    at = server.app.router.routes.index(route)

    async def login(request: Request) -> Any:
        body = await request.body()
        if request.headers.get("Content-Encoding") == "gzip":
            body = server.gzip.decompress(body)
        fault = _fault(json.loads(body)["data"])
        if fault is None:
            return await server.login_request(request)
        code, text = fault
        return JSONResponse({"data": {}, "code": code, "message": text, "success": False})

    made = server.Route(route.path, login, methods=["POST"])
    server.app.router.routes[at] = made


def _fault(data: dict[str, Any]) -> tuple[str, str] | None:
    if data.get("PASSWORD") == "wrong":
        return "390100", "Incorrect username or password was specified."
    if data.get("AUTHENTICATOR") != "SNOWFLAKE_JWT":
        return None
    told = jwt.decode(data["TOKEN"], options={"verify_signature": False})
    wanted = f"{data['ACCOUNT_NAME']}.{data['LOGIN_NAME']}".upper()
    is_right = str(told["sub"]).upper() == wanted and str(told["iss"]).startswith(f"{told['sub']}.")
    return None if is_right else ("390144", "JWT token is invalid.")


if __name__ == "__main__":
    mend_statements()
    mend_comments()
    mend_stages()
    mend_moments()
    mend_sign_in()
    uvicorn.run(server.app, host=sys.argv[1], port=int(sys.argv[2]), log_level="warning")
