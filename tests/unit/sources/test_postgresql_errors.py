"""The table from driver errors to codes, and positions, without a server."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from replicators.connectors.model.schema import TableId
from replicators.connectors.params import parse
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.postgresql.errors import translate
from replicators.sources.postgresql.offsets import lsn_to_int, lsn_to_text
from replicators.sources.postgresql.params import PostgresqlParams
from replicators.sources.postgresql.slots import switch_point

PARAMS = parse(
    PostgresqlParams,
    {"host": "db", "database": "shop", "user": "copier", "password": "s3cret-word"},
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UndefinedObject('replication slot "r1" does not exist'), "source:slot-missing"),
        (errors.UndefinedObject('publication "r1_full" does not exist'), "source:position-lost"),
        (errors.ObjectInUse('replication slot "r1" is active for PID 7'), "source:slot-in-use"),
        (
            errors.ObjectNotInPrerequisiteState('can no longer get changes from replication slot '
                                                '"r1"'),
            "source:slot-invalidated",
        ),
        (
            errors.ConfigurationLimitExceeded("all replication slots are in use"),
            "source:slots-used-up",
        ),
        (
            errors.TooManyConnections("number of requested standby connections exceeds "
                                      "max_wal_senders"),
            "source:senders-used-up",
        ),
        (errors.InsufficientPrivilege("permission denied for table orders"), "source:select-right"),
        (errors.InsufficientPrivilege("permission denied for schema shop"), "source:usage-right"),
        (errors.InsufficientPrivilege("must be owner of table orders"), "source:publication-right"),
        (errors.UndefinedTable('relation "x" does not exist'), "source:table-missing"),
        (errors.InsufficientPrivilege('query would be affected by row-level security policy for '
                                      'table "t"'),
         "source:row-security"),
        (errors.ObjectNotInPrerequisiteState("recovery is in progress"), "source:standby"),
        (errors.ReadOnlySqlTransaction("cannot execute CREATE PUBLICATION during recovery"),
        "source:standby"),
        (errors.UntranslatableCharacter('character 0x81 in encoding "WIN1252" has no equivalent '
                                        'in encoding "UTF8"'),
         "source:text-encoding"),
        (errors.CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0xe9'),
        "source:text-encoding"),
        (errors.AdminShutdown("terminating connection"), "source:connection-lost"),
        (psycopg.OperationalError("consuming input failed: server closed the connection "
                                  "unexpectedly"),
         "source:connection-lost"),
        (psycopg.OperationalError("sending query failed: no connection to the server"),
        "source:connection-lost"),
        (psycopg.OperationalError("could not receive data from server: Connection reset by peer"),
         "source:connection-lost"),
        (ValueError("something else"), "internal:unexpected"),
    ],
)  # fmt: skip
def test_a_driver_error_has_its_code(error, code):
    """Guards the table `RULES` of `postgresql.errors` and its order: a lost slot reported as a cut
    connection would be tried again for ever."""
    found = translate(error, PARAMS)
    assert isinstance(found, ReplicationError)
    assert found.code == code


def test_no_secret_and_no_driver_text_reaches_the_user():
    """Guards `translate`: libpq's texts may quote a connection string, so none of them may be a
    fact of ours."""
    raw = psycopg.OperationalError("password authentication failed, tried s3cret-word")
    found = translate(raw, PARAMS, table=TableId("shop", "orders"))
    shown = f"{found} {found.message}"
    assert "s3cret-word" not in shown
    assert "tried" not in shown


def test_one_that_nobody_knows_is_named_by_its_kind_and_state():
    """Guards against a text with a hole in it, which helps nobody."""
    shown = str(translate(errors.DatatypeMismatch("column secret is of another type"), PARAMS))
    assert "DatatypeMismatch 42804" in shown and "secret" not in shown


def test_a_translated_error_stays_as_it_is():
    """Guards `translate` at nested borders: a code translated twice would become an unexpected
    error."""
    error = ReplicationError("source:no-tables")
    assert translate(error, PARAMS) is error


def test_a_log_sequence_number_survives_its_text():
    """Guards `lsn_to_int` and `lsn_to_text`: a shift that is wrong above 4 GiB would acknowledge
    another place than the one recorded."""
    for value in (0, 1, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1):
        assert lsn_to_int(lsn_to_text(value)) == value
    assert lsn_to_text(lsn_to_int("16/B374D848")) == "16/B374D848"


def test_the_switch_point_of_a_timeline_is_found_in_the_history():
    """Guards `slots.switch_point` (CORRECTNESS 23): with it wrong, a promoted server that forked
    before what was captured would be taken for the same log."""
    history = "1\t0/5000000\tno recovery target specified\n\n2\t1/10\tbefore x\n"
    assert switch_point(history, 1) == 0x5000000
    assert switch_point(history, 2) == (1 << 32) + 0x10
    assert switch_point(history, 7) == 0
