"""A run's log in rows: batched, capped, scrubbed, and never in the engine's way."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError

from replicators.models import Replicator
from runners.logs.read import log_levels, log_lines
from runners.logs.write import RowHandler
from runners.management.commands.run_replicator import _level
from runners.models import LogLine
from runners.supervision.jobs import secrets_of
from tests.app.factories import SECRET, make_replicator, make_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def handler(replicator: Replicator) -> Iterator[RowHandler]:
    made = RowHandler(make_run(replicator), (SECRET,), kept_lines=5)
    yield made
    made.close()


@pytest.fixture
def logger(handler: RowHandler) -> logging.Logger:
    made = logging.Logger("replicator.test")
    made.addHandler(handler)
    return made


def test_lines_come_by_level_table_text_and_cursor(
    replicator: Replicator, handler: RowHandler, logger: logging.Logger
) -> None:
    logger.info("first")
    logger.warning("second of %d", 3, extra={"table": "shop.orders"})
    logger.error("third")
    handler.close()
    lines = log_lines(replicator)
    assert [line.text for line in lines] == ["first", "second of 3", "third"]
    assert [x.text for x in log_lines(replicator, level="warning")] == ["second of 3", "third"]
    assert [x.text for x in log_lines(replicator, table="shop.orders")] == ["second of 3"]
    assert [x.text for x in log_lines(replicator, search="FIR")] == ["first"]
    assert [x.text for x in log_lines(replicator, after=lines[1].pk)] == ["third"]


def test_secrets_never_reach_a_row(
    replicator: Replicator, handler: RowHandler, logger: logging.Logger
) -> None:
    try:
        raise ValueError(f"cannot connect with {SECRET}")
    except ValueError:
        logger.exception("host=h password=hunter2 postgresql://me:hunter3@h/db")
    handler.close()
    text = LogLine.objects.get().text
    assert "ValueError" in text
    for secret in (SECRET, "hunter2", "hunter3"):
        assert secret not in text


def test_secrets_never_reach_the_output_of_the_run(handler: RowHandler) -> None:
    """Guards the file that the supervisor keeps of it, which had every line as it was."""
    out, logger = io.StringIO(), logging.Logger("of a test")
    console = logging.StreamHandler(out)
    plain = logging.Formatter("%(levelname)s %(message)s")
    console.setFormatter(plain)
    logger.addHandler(console)
    handler.cover(logger.handlers)
    try:
        raise ValueError(f"cannot connect with {SECRET}")
    except ValueError:
        logger.exception("password=%s", "hunter2")
    text = out.getvalue()
    assert text.startswith("ERROR password=********") and "ValueError" in text
    assert SECRET not in text and "hunter2" not in text
    handler.close()
    assert console.formatter is plain


def test_old_lines_make_room(
    replicator: Replicator, handler: RowHandler, logger: logging.Logger
) -> None:
    for number in range(12):
        logger.info("line %d", number)
    handler.close()
    assert [x.text for x in log_lines(replicator)] == [f"line {n}" for n in range(7, 12)]


def test_a_locked_database_sends_the_lines_to_stderr(
    handler: RowHandler,
    logger: logging.Logger,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(LogLine.objects, "bulk_create", locked)
    logger.info("still said")
    handler.close()
    assert "still said" in capsys.readouterr().err


def test_lines_of_libraries_are_logged_from_warnings_on(
    replicator: Replicator, handler: RowHandler
) -> None:
    """Guards `is_ours`: "Defaulting to PyArrow FileIO" filled the log of a healthy run."""
    library = logging.Logger("pyiceberg.io")
    library.addHandler(handler)
    library.info("Defaulting to PyArrow FileIO")
    library.warning("The catalog is slow")
    handler.close()
    assert [line.text for line in log_lines(replicator)] == ["The catalog is slow"]


def test_a_fault_is_one_line_with_its_trace_folded(
    replicator: Replicator, handler: RowHandler, logger: logging.Logger
) -> None:
    """Guards `trace_text`: a missing right filled screens with frames of the JVM and what tasks
    carry in base64."""
    frames = "".join(f"\tat org.apache.spark.Part{n}.call(Part.scala:1)\n" for n in range(90))
    try:
        raise RuntimeError(f"replication-error<{'QUJD' * 900}> source:select-right\n{frames}")
    except RuntimeError:
        logger.exception("Table `a.b` can't be read.")
    handler.close()
    (line,) = log_lines(replicator)
    assert line.message == "Table `a.b` can't be read."
    assert "source:select-right" in line.trace and "QUJDQUJD" not in line.trace
    assert line.trace.count("\tat ") == 3


def test_debug_is_offered_where_it_can_be_seen(
    replicator: Replicator, handler: RowHandler, logger: logging.Logger
) -> None:
    """Guards `log_levels`: the page offered DEBUG, and no run wrote such lines."""
    logger.debug("Merged 1 changes")
    handler.flush()
    assert log_levels(replicator) == ("INFO", "WARNING", "ERROR")
    replicator.options = {**replicator.options, "log_level": "debug"}
    assert log_levels(replicator)[0] == "DEBUG"
    handler.setLevel(_level(replicator))
    logger.debug("Merged 2 changes")
    handler.close()
    assert [line.text for line in log_lines(replicator)] == ["Merged 2 changes"]


def test_a_token_of_azure_is_masked_as_it_is_used() -> None:
    """Guards logs: Azure shows a token with a question mark, which no request has."""
    used = "sv=2024-11-04&sp=racwdl&sig=c2VjcmV0LXdvcmQ%3D"
    target = {
        "warehouse": "abfss://lake@account.dfs.core.windows.net/w",
        "catalog_uri": "sqlite:////c.db",
        "adls_sas": f"?{used}",
    }
    made = make_replicator(target_kind="lakehouse", target_params=target)
    assert set(secrets_of(made)) == {SECRET, used}
