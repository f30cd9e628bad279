"""The habits of this code, held by reading it: folders, names, texts, states, sizes. What a linter
holds is not repeated."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import string
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps

from replicators.connectors import registry
from replicators.connectors.params import secret_names
from replicators.connectors.problems.lookup import message_of
from replicators.connectors.problems.lookup import messages as all_messages
from runners.engine.store.protocol import EVENTS_STATE
from runners.metrics.status import Facts, replicator_state
from runners.states import (
    COLOURS,
    LABELS,
    REPLICATOR_STATES,
    RUN_ACTIVE,
    RUN_TRANSITIONS,
    TABLE_TRANSITIONS,
    RunState,
    TableState,
)
from runners.templatetags import running
from tests import promises

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = all_messages()
APPS = ("replicators", "runners", "assessments", "drafts")
FOLDERS = (*APPS, "demo", "setup", "benchmarks")

SOURCE_FILES = {"params", "types", "catalog", "checks", "snapshot", "errors", "messages"}
LOG_FILES = {"log", "decode", "offsets"}
POLL_FILES = {"poll"}
TARGET_FILES = {"params", "types", "checks", "writer", "errors", "messages"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base"}
MAX_LINES = 600  # A module is split by concept; this only finds those that grew unseen.
LONGER_WITH_REASON = {
    # numba's cache follows one source file: loops that call each other lie together, or a change is
    # not seen.
    "replicators/sources/postgresql/kernels.py",
    "replicators/sources/mysql/kernels.py",
    # One class: what a SQL target has of a table, and each change of it.
    "replicators/connectors/sql/target.py",
    # One table of texts; a part of it would have to be looked for.
    "replicators/connectors/problems/messages.py",
    # The server's whole life (make, start, adopt, stop) with its options: read as one.
    "demo/postgres.py",
}
ERROR_CALLS = {"ReplicationError", "Problem.of", "Problem"}


def modules(*folders: str) -> list[Path]:
    """The Python files of folders, without migrations."""
    found = [p for f in folders for p in (ROOT / f).rglob("*.py")]
    return sorted(p for p in found if "migrations" not in p.parts)


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def calls(folders: tuple[str, ...], names: set[str]) -> Iterator[tuple[Path, ast.Call]]:
    """Every call of one of `names` (as written)."""
    for path in modules(*folders):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                yield path, node


def literal_code(call: ast.Call) -> str | None:
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value
    return None


def placeholders(*texts: str) -> set[str]:
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name}


def all_placeholders(code: str) -> set[str]:
    m = message_of(code)
    return placeholders(m.title, m.text, m.suggestion, m.impact)


# --- plugins -----------------------------------------------------------------------------------------------------  # noqa: E501


@pytest.mark.parametrize("name", [n for n, p in registry.sources().items() if not p.is_hidden])
def test_a_source_has_the_files_that_every_source_has(name: str) -> None:
    files = {p.stem for p in (ROOT / "replicators/sources" / name).glob("*.py")}
    is_log = registry.sources()[name].log is not None
    assert files >= SOURCE_FILES | (LOG_FILES if is_log else POLL_FILES)


@pytest.mark.parametrize("name", [n for n, p in registry.targets().items() if not p.is_hidden])
def test_a_target_has_the_files_that_every_target_has(name: str) -> None:
    files = {p.stem for p in (ROOT / "replicators/targets" / name).glob("*.py")}
    assert files >= TARGET_FILES
    how = {"dialect", "client", "records"}
    assert files & how, "how rows are merged, or how changes are written"


def test_every_folder_of_a_plugin_is_in_the_registry() -> None:
    for kind, known in (("sources", registry.sources()), ("targets", registry.targets())):
        folders = {p.parent.name for p in (ROOT / "replicators" / kind).glob("*/__init__.py")}
        assert folders == set(known)
        for plugin in known.values():
            assert plugin.label
            assert plugin.summary.endswith(".")
            assert secret_names(plugin.params) <= set(plugin.params.__dataclass_fields__)


def test_what_a_source_names_by_path_is_there() -> None:
    for plugin in registry.sources().values():
        for path in filter(None, (plugin.chunk_reader, plugin.log and plugin.log.decoder)):
            module, _, name = path.replace(":", ".").rpartition(".")
            assert callable(getattr(importlib.import_module(module), name))


def test_every_rule_that_is_cited_is_written_down() -> None:
    """A comment that cites a rule without a text leads its reader nowhere."""
    reported = set(re.findall(r"^(\d+)\. \*\*", (ROOT / "docs/correctness.md").read_text(), re.M))
    cited = {
        number
        for path in modules(*FOLDERS, "tests")
        for some in re.findall(r"CORRECTNESS (\d+(?:, \d+)*)", path.read_text())
        for number in some.split(", ")
    }
    assert reported == {str(n) for n in range(1, 36)}
    assert cited and cited <= reported


def test_the_architecture_names_every_room_of_the_engine() -> None:
    """The page is the way in; a room that it lacks is found by chance."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = {p.parent.name for p in (ROOT / "runners/engine").glob("*/__init__.py")}
    assert rooms and {r for r in rooms if f"`{r}/`" not in page} == set()


NAMED = {
    ("assessments/api/views.py", "postgresql"),  # an example in the description of REST
    ("replicators/audit_reading.py", "postgresql"),  # the program's own database
    ("replicators/audit_triggers.py", "postgresql"),  # the program's own database
    ("replicators/reach.py", "postgresql"),  # the program's own database
    ("replicators/connectors/sql/engines.py", "bigquery"),  # the SQL dialect, in sqlglot's words
    ("replicators/connectors/sql/engines.py", "mysql"),  # the SQL dialect, in sqlglot's words
    ("replicators/connectors/sql/engines.py", "redshift"),  # the SQL dialect, in sqlglot's words
    ("replicators/connectors/sql/engines.py", "snowflake"),  # the SQL dialect, in sqlglot's words
}
WORDS_TOO = {"compared", "files", "memory", "subscribers"}  # names that are words as well


def test_no_file_outside_its_folder_names_a_plugin() -> None:
    """What a plugin needs elsewhere is a field of its `PLUGIN`."""
    names = (set(registry.sources()) | set(registry.targets())) - WORDS_TOO
    found = set()
    for path in modules(*APPS):
        if short(path).startswith(("replicators/sources/", "replicators/targets/")):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and node.value in names:
                found.add((short(path), node.value))
    assert found - NAMED == set()


# --- texts -------------------------------------------------------------------------------------------------------  # noqa: E501


def _written_codes() -> Iterator[tuple[str, str]]:
    """Every text in the code that looks like an error's code, and where it stands."""
    areas = {code.partition(":")[0] for code in MESSAGES}
    looks_like_a_code = re.compile(rf"({'|'.join(sorted(areas))}):[a-z0-9]+(-[a-z0-9]+)*")
    for path in modules(*APPS):
        for node in ast.walk(tree(path)):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and looks_like_a_code.fullmatch(node.value)
            ):
                yield node.value, f"{short(path)}:{node.lineno}"


def test_every_code_that_is_written_somewhere_has_a_message() -> None:
    assert {c: where for c, where in _written_codes() if c not in MESSAGES} == {}
    for path, call in calls(APPS, ERROR_CALLS):
        code = literal_code(call)
        assert code is None or code in MESSAGES, f"{short(path)}:{call.lineno} {code}"


def test_every_error_gives_the_values_that_its_message_shows() -> None:
    lacking = []
    for path, call in calls(APPS, {"ReplicationError", "Problem.of"}):
        code = literal_code(call)
        given = {k.arg for k in call.keywords}
        if code is None or None in given:
            continue
        if "table" in given:
            given |= {"schema", "name"}
        missing = all_placeholders(code) - given
        if missing:
            lacking.append(f"{short(path)}:{call.lineno} {code} lacks {sorted(missing)}")
    assert lacking == []


@pytest.mark.parametrize("code", sorted(MESSAGES))
def test_a_message_is_whole_and_shows_every_value_it_is_given(code: str) -> None:
    message = message_of(code)
    values = {name: f"<{name}>" for name in all_placeholders(code)}
    shown = message.render(values)
    assert message.title and not message.title.endswith(".")
    assert shown.text.endswith(".")
    assert shown.suggestion
    whole = " ".join((shown.title, shown.text, shown.suggestion, shown.impact))
    for name, value in values.items():
        assert value in whole
        assert f"({name})" not in whole


def test_no_message_shows_a_secret() -> None:
    plugins = [*registry.sources().values(), *registry.targets().values()]
    secrets = {name for p in plugins for name in secret_names(p.params)}
    secrets |= {"password", "secret", "token", "dsn", "key"}
    assert {
        c: all_placeholders(c) & secrets for c in MESSAGES if all_placeholders(c) & secrets
    } == {}


# --- states ------------------------------------------------------------------------------------------------------  # noqa: E501


def test_every_state_of_a_replicator_is_shown_with_a_label_and_a_colour() -> None:
    later, now = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    shown = [
        replicator_state(Facts(desired, run, is_deleting, is_given_up, retry_at=retry), now)
        for desired, run, is_deleting, is_given_up, retry in itertools.product(
            ("running", "paused"), (None, *RUN_ACTIVE), (False, True), (False, True), (None, later)
        )
    ]
    shown.append(replicator_state(Facts("running", live_runs=1), now))
    shown.append(replicator_state(Facts("running", RunState.RUNNING, is_log_full=True), now))
    assert {s.state for s in shown} == set(REPLICATOR_STATES)
    assert all(s.label and s.colour in set(COLOURS.values()) for s in shown)


def test_every_state_of_runs_and_tables_has_a_label_and_a_colour() -> None:
    for words in (LABELS, COLOURS):
        assert {*RunState, *TableState} <= {s for s in words if words[s]}


def test_an_event_begins_with_what_it_happens_to() -> None:
    run_events = {e for _, e in RUN_TRANSITIONS}
    table_events = {e for _, e in TABLE_TRANSITIONS}
    assert all(e.startswith("run_") for e in run_events)
    assert all(e.startswith("table_") for e in table_events)
    assert table_events == set(EVENTS_STATE)


def test_every_event_has_words_and_an_icon() -> None:
    written = {e for _, e in (*RUN_TRANSITIONS, *TABLE_TRANSITIONS)}
    written |= {c for _, call in calls(APPS, {"event_add"}) if (c := literal_code(call))}
    assert written - set(running.EVENTS) == set()


def test_every_icon_is_among_the_vendored_files() -> None:
    vendored = set(re.findall(r"icons/([a-z0-9-]+)\.svg", (ROOT / "setup/vendor.txt").read_text()))
    named = {icon for icon, _ in running.EVENTS.values()} | set(running.ICONS.values())
    for path in (ROOT / "templates").rglob("*.html"):
        text = path.read_text()
        named |= set(re.findall(r'{% icon "([a-z0-9-]+)"', text))
        named |= set(re.findall(r'icon_name="([a-z0-9-]+)"', text))
    assert named - vendored == set()


def test_only_the_transitions_and_the_stores_write_a_state() -> None:
    allowed = {
        "runners/transitions.py",
        "runners/engine/store/protocol.py",
        "runners/store/django.py",
    }
    writers = {
        f"{short(path)}:{node.lineno}"
        for path in modules("runners", "assessments", "drafts")
        if short(path) not in allowed
        for node in ast.walk(tree(path))
        if _writes_state(node)
    }
    assert writers == set()


def _writes_state(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        aims = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(a, ast.Attribute) and a.attr == "state" for a in aims)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_update = node.func.attr in {"update", "bulk_update", "update_or_create"}
        return is_update and any(k.arg == "state" for k in node.keywords)
    return False


# --- code --------------------------------------------------------------------------------------------------------  # noqa: E501


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        short(p)
        for p in modules(*FOLDERS)
        if p.read_text().strip() and not ast.get_docstring(tree(p))
    ]
    assert silent == []


def test_every_public_class_says_what_it_is() -> None:
    silent = [
        f"{short(path)}:{node.lineno} {node.name}"
        for path in modules(*APPS)
        for node in tree(path).body
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


@pytest.mark.parametrize(
    "model",
    [m for label in APPS for m in apps.get_app_config(label).get_models()],
    ids=lambda m: m.__name__,
)
def test_a_model_says_what_it_is_and_how_it_is_shown(model: type) -> None:
    assert model.__doc__ and not model.__doc__.startswith(f"{model.__name__}(")
    assert "__str__" in vars(model)


def test_modules_are_named_by_what_they_hold() -> None:
    assert [short(p) for p in modules(*FOLDERS, "tests") if p.stem in VAGUE_NAMES] == []


def test_modules_stay_readable() -> None:
    long = {
        short(p): n
        for p in modules(*FOLDERS)
        if (n := len(p.read_text().splitlines())) > MAX_LINES and short(p) not in LONGER_WITH_REASON
    }
    assert long == {}


def test_the_run_only_orders_the_steps() -> None:
    assert len((ROOT / "runners/engine/run.py").read_text().splitlines()) <= 400


def test_the_program_does_not_print() -> None:
    assert [f"{short(p)}:{c.lineno}" for p, c in calls(APPS, {"print"})] == []


def test_only_the_engine_and_what_runs_on_spark_know_spark() -> None:
    allowed = (
        "runners/engine/",
        "replicators/spark/",
        "replicators/targets/lakehouse/",
        "replicators/connectors/compare/",
        "replicators/sources/compared/",
    )
    found = set()
    for path in modules(*APPS):
        for node in ast.walk(tree(path)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(n.split(".")[0] == "pyspark" for n in names):
                found.add(short(path))
    assert {p for p in found if not p.startswith(allowed)} == set()


# --- promises ----------------------------------------------------------------------------------------------------  # noqa: E501


def test_every_test_that_a_promise_names_is_there() -> None:
    missing = []
    for named in promises.named_tests():
        file, *names = named.split("::")
        path = ROOT / "tests" / file
        text = path.read_text() if path.is_file() else ""
        if not text or any(not re.search(rf"^ *(def|class) {n}\b", text, re.M) for n in names):
            missing.append(named)
    assert missing == []


def test_the_page_of_promises_is_the_one_that_the_list_gives() -> None:
    assert promises.PAGE.read_text() == promises.page(promises.areas()), "run `make docs`"


def test_a_promise_has_a_test_or_says_what_shows_it() -> None:
    listed = [one for area in promises.areas() for one in area["promise"]]
    assert [one["text"] for one in listed if bool(one.get("tests")) == ("no_test" in one)] == []
