"""What Snowflake as a target decides without a server: types that may grow, the codes of errors,
names, params, and values as COPY takes them."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from snowflake import connector
from snowflake.connector import errors

from replicators.connectors.addresses import Place
from replicators.connectors.model.schema import Column, TableId
from replicators.connectors.model.types import Array, Decimal, Float, Int, Json, String
from replicators.connectors.params import InvalidParams
from replicators.connectors.target import FitKind
from replicators.targets.snowflake import naming
from replicators.targets.snowflake.client import DIALECT, _loadable
from replicators.targets.snowflake.connection import connect
from replicators.targets.snowflake.errors import code_of, is_lost
from replicators.targets.snowflake.params import LONGEST, SnowflakeParams, places
from replicators.targets.snowflake.setup import setup
from replicators.targets.snowflake.types import fit, is_wider, shown

PARAMS = SnowflakeParams(
    account="myorg-main", user="ME", database="D", warehouse="W", password="secret"
)


@pytest.mark.parametrize(
    ("old", "new", "is_allowed"),
    [
        ("number(10,0)", "number(19,0)", True),
        ("number(19,0)", "number(10,0)", False),
        ("number(10,2)", "number(12,4)", False),
        ("number(10,2)", "number(12,2)", True),
        ("number(10,0)", "text", False),
        ("time(6)", "timestamp_ntz(6)", False),
    ],
)
def test_a_type_grows_only_where_no_value_changes(old: str, new: str, is_allowed: bool) -> None:
    assert is_wider(old, new) is is_allowed


@pytest.mark.parametrize(
    ("told", "ours"),
    [
        ("NUMBER(19,0)", "NUMBER(19,0)"),
        ("VARCHAR(16777216)", "TEXT"),
        ("VARCHAR(134217728)", "TEXT"),
        ("BINARY(8388608)", "BINARY"),
        ("TIMESTAMP_TZ(6)", "TIMESTAMP_TZ(6)"),
        ("TIME(6)", "TIME(6)"),
        ("VARIANT", "VARIANT"),
    ],
)
def test_a_described_type_is_spelled_like_ours(told: str, ours: str) -> None:
    """Guards schema changes: a type that is read otherwise than it is written looks changed by
    hand. How long a text may be depends on the account's age."""
    assert shown(told) == ours


def test_types_that_do_not_fit_say_so() -> None:
    assert fit(Int(128)).kind is FitKind.UNSUPPORTED
    assert fit(Int(64, signed=False)).native == "NUMBER(20,0)"
    assert fit(Decimal(38, 37)).kind is FitKind.EXACT
    assert (fit(Decimal(38, 38)).native, fit(Decimal(38, 38)).kind) == ("TEXT", FitKind.WIDENED)
    assert fit(Json()).kind is fit(Array(Float(64))).kind is FitKind.LOSSY
    assert fit(Array(Int(64))).kind is FitKind.WIDENED
    assert fit(Array(Int(128))).kind is FitKind.UNSUPPORTED


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ((errors.DatabaseError, "Incorrect username or password", 250001, "08001"), "login"),
        ((errors.DatabaseError, "JWT token is invalid. [x]", 250001, "08001"), "login"),
        ((errors.OperationalError, "Could not connect", 250001, "08001"), "account"),
        ((errors.ProgrammingError, "No active warehouse selected", 606, "57P03"), "warehouse"),
        ((errors.ProgrammingError, "quota", 90073, "57014"), "quota"),
        ((errors.ProgrammingError, "Insufficient privileges", 3001, "42501"), "right"),
        ((errors.ProgrammingError, "Error parsing JSON", 100069, "22P02"), "value"),
        ((errors.ProgrammingError, "cancelled", 604, "57014"), "cancelled"),
        ((errors.ProgrammingError, "syntax error", 1003, "42000"), "refused"),
        ((errors.ProgrammingError, "does not exist", 2003, "42S02"), "target:table-missing"),
        ((errors.ProgrammingError, "invalid identifier", 904, "42000"), "target:column-missing"),
        ((errors.ProgrammingError, "has locked table", 625, "57014"), "target:conflict"),
    ],
)
def test_each_error_has_a_code(error: tuple[Any, ...], code: str) -> None:
    kind, text, number, state = error
    made = kind(msg=text, errno=number, sqlstate=state)
    assert code_of(made) == (code if ":" in code else f"target:snowflake-{code}")


def test_only_a_lost_session_is_given_up() -> None:
    assert is_lost(errors.OperationalError(msg="x", errno=250003)) and is_lost(OSError())
    assert is_lost(errors.ProgrammingError(msg="session gone", errno=390112))
    assert not is_lost(errors.ProgrammingError(msg="x", errno=100038))
    assert not is_lost(errors.IntegrityError(msg="x", errno=200001))


def test_names_are_the_sources_letter_by_letter() -> None:
    table = TableId("Shop", 'or"ders')
    assert naming.names(PARAMS, table) == ("D", "Shop", 'or"ders')
    assert naming.quoted(("D", 'or"ders')) == '"D"."or""ders"'
    assert naming.view(PARAMS, ("D", "s", "t")) is None
    viewed = replace(PARAMS, current_views=True, schema="S")
    assert naming.names(viewed, table)[1] == "S"
    long = naming.view(viewed, ("D", "S", "t" * LONGEST))
    assert long is not None and len(long[-1]) == LONGEST and long[-1].endswith("t_current")


def test_params_say_what_is_wrong() -> None:
    assert places(PARAMS) == (Place("host", "myorg-main.snowflakecomputing.com", "Account", 443),)
    local = replace(PARAMS, endpoint="http://127.0.0.1:81")
    assert places(local) == (Place("host", "127.0.0.1", "Endpoint", 81),)
    for wrong in ({"password": ""}, {"private_key": "ssh-rsa AAAA"}):
        with pytest.raises(InvalidParams, match="private key"):
            replace(PARAMS, **wrong)  # type: ignore[arg-type]
    assert "secret" not in repr(PARAMS)
    steps = setup({"database": "MINE", "schema": "s", "password": "secret"})
    text = " ".join(s for step in steps for s in step.statements)
    assert '"MINE"."s"' in text and "secret" not in text


def test_a_session_asks_nobody_but_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards *Where replicators may connect to*: the driver would ask the addresses at which clouds
    tell machines their keys. Names are quoted: the service would fold them to capital letters."""
    options: dict[str, Any] = {}
    monkeypatch.setattr(connector, "connect", lambda **given: options.update(given))
    connect(replace(PARAMS, role="r"))
    assert options["platform_detection_timeout_seconds"] == 0.0
    assert options["host"] == "myorg-main.snowflakecomputing.com" and options["protocol"] == "https"
    assert [options[n] for n in ("database", "warehouse", "role")] == ['"D"', '"W"', '"r"']
    assert options["session_parameters"]["CLIENT_TELEMETRY_ENABLED"] is False
    assert logging.getLogger("snowflake.connector").level == logging.WARNING


def test_values_are_written_so_that_nothing_is_guessed() -> None:
    """Guards the files of COPY: a moment that is read as a number of another unit would be wrong
    without an error."""
    moment = dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)
    zoned = pa.array([moment, None], pa.timestamp("us", tz="UTC"))
    assert _loadable(zoned).to_pylist() == ["1969-12-31 23:00:00.000000+00:00", None]
    plain = pa.array([dt.datetime(1, 1, 1)], pa.timestamp("us"))
    assert _loadable(plain).to_pylist() == ["0001-01-01 00:00:00.000000"]
    clock = pa.array([dt.time(23, 59, 59, 7)], pa.time64("us"))
    assert _loadable(clock).to_pylist() == ["23:59:59.000007"]
    lists = pa.array([["a", None], None], pa.list_(pa.string()))
    assert _loadable(lists).to_pylist() == ['["a", null]', None]


def test_a_default_of_a_document_is_no_text() -> None:
    """Guards `fill_column`: CAST('{}' AS VARIANT) would be a text inside of a VARIANT."""
    literal = DIALECT.literals.literal
    assert literal(Column("a", Json(), "json"), '{"a": "it\'s"}', "VARIANT") == (
        'PARSE_JSON(\'{"a": "it\\\'s"}\')'
    )
    assert literal(Column("a", String(), "text"), "x", "TEXT") == "'x'"
