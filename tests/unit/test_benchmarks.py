"""What the benchmarks make of what they find: kept, shown, and reported where it is missing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import benchmarks.__main__ as command
from benchmarks import LINES, line, programs, report, resources, snapshot_programs, versions
from benchmarks.page import cells, page, table
from benchmarks.peers import environments
from benchmarks.picture import limit_of, picture
from benchmarks.report import Peer, Result
from runners.engine.processes import is_alive
from setup.machine import Missing

MACHINE = {"processor": "P", "cores": 2, "memory_gib": 4.0, "system": "Linux 1"}
REPORTED = {
    **MACHINE,
    "versions": {"python": "3"},
    "servers": {"MySQL": "9.7"},
    "peers": {"dlt": "1"},
}
OLD = {
    "line": "capture", "unit": "s", "ours": 3.0, "target": 0.9,
    "peers": [{"name": "p", "value": 4.0}],
    "ratio": None, "checked": True,
}  # fmt: skip
SECONDS = 20.0


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The report's files in a folder of the test's own; versions are not asked for each time."""
    for name, file in (
        ("RESULTS", "results.json"),
        ("MACHINE", "machine.json"),
        ("PAGE", "page.md"),
        ("PICTURE", "page.svg"),
    ):
        monkeypatch.setattr(report, name, tmp_path / file)
    monkeypatch.setattr(versions, "machine", lambda _: dict(REPORTED))
    return tmp_path


def test_figures_of_an_older_program_are_read_and_what_they_lack_is_a_dash(kept: Path) -> None:
    """Guards `page.cells`, `report.notes` and the page's groups; fails where a field that older
    files lack is asked for without a default."""
    assert cells(OLD, {})[4:] == ("-", ">= 0.90", "NO", "yes", "-")
    report.RESULTS.write_text(json.dumps([OLD]))
    report.MACHINE.write_text(json.dumps({**MACHINE, "lines": {}}))
    report.rewrite()
    text = report.PAGE.read_text()
    assert "| capture | s | 3.00 | p 4.00 | - | >= 0.90 | NO | yes | - |" in text
    assert "Servers: -." in text


def test_memory_of_both_sides_and_all_versions_are_on_the_page(kept: Path) -> None:
    """Guards the column of memory and the groups of versions; fails where `Result.row` leaves
    `memory_gib` out."""
    result = Result(
        "capture", "s", 1.0, 0.9, (Peer("p", 2.0, 0.25),), 2.0, checked=True, memory_gib=1.5
    )
    report.record("capture", [result], {"load_before": (1.0,), "scale": 1.0})
    text = report.PAGE.read_text()
    assert "| 2.00 | >= 0.90 | yes | yes | 1.50, p 0.25 |" in text
    assert "Servers: MySQL 9.7." in text
    assert "Peers: dlt 1." in text


def test_a_peer_that_is_not_there_is_in_the_table_with_the_reason(kept: Path) -> None:
    """Guards `Peer.missing`: fails where a peer without a figure is left out, or where its row's
    target counts as met without it."""
    err = Missing(
        "Collecting dlt\nERROR: No matching distribution\n\nThe step failed.\nIt needs the network."
    )
    gone = Peer("dlt", None, missing=environments.reason(err))
    result = Result("snapshot", "rows/s", 900.0, 1.5, (gone,), checked=True)
    assert not result.reached
    report.record("snapshot", [result], {})
    assert "dlt not installed: ERROR: No matching distribution" in report.PAGE.read_text()
    assert report.rows()[0]["peers"][0]["value"] is None
    assert environments.reason(RuntimeError("it ended")) == "failed: it ended"


def test_a_peer_that_can_not_be_installed_is_missing_and_ends_nothing(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `snapshot_programs._by_program`; fails where `Missing` is not turned into a peer
    without a figure."""
    (kept / "sling.txt").touch()
    monkeypatch.setattr(environments, "HERE", kept)
    monkeypatch.setattr(environments, "FOLDER", kept / "peers")
    monkeypatch.setattr(environments, "run", _refuse)

    class Made:
        program_url = ""

    (peer,) = snapshot_programs.copy_by_programs(kept, Made(), (1,), ("sling",))  # type: ignore[arg-type]
    assert peer == Peer("sling", None, missing="not installed: ERROR: not-there")


def _refuse(*_: Any, **__: Any) -> None:
    raise Missing("Looking\nERROR: not-there\n\nIt needs the network.")


def test_an_absolute_target_is_for_ours_although_there_is_a_ratio() -> None:
    """Guards `Result.reached`; fails where a ratio always takes the target's place."""
    assert Result(
        "lag", "s", 3.0, 5, ratio=0.1, at_most=True, is_absolute=True, checked=True
    ).reached
    assert not Result(
        "lag", "s", 6.0, 5, ratio=0.1, at_most=True, is_absolute=True, checked=True
    ).reached
    assert not Result("lag", "s", 3.0, 5, at_most=True, is_absolute=True).reached
    assert not Result("backlog", "x/s", 9e5, 10, checked=True).reached


def test_a_figure_from_another_machine_says_so(kept: Path) -> None:
    """Guards each figure's own machine; fails where all lines are shown as of the machine that
    measured last."""
    report.RESULTS.write_text(json.dumps([OLD]))
    older = {**MACHINE, "system": "Linux 0", "lines": {"capture": {"note": "n."}}}
    report.MACHINE.write_text(json.dumps(older))
    report.record("decode", [Result("decode", "x", 1.0, 1.0, is_absolute=True, checked=True)], {})
    lines = report.PAGE.read_text().splitlines()
    (capture,) = (x for x in lines if x.startswith("- **capture**"))
    (decode,) = (x for x in lines if x.startswith("- **decode**"))
    assert "measured on: P, 2 cores, 4.0 GiB, Linux 0" in capture
    assert "measured on" not in decode


def test_a_line_that_fails_is_named_and_the_others_go_on(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guards `__main__.main` and `line.main` with real processes; fails where a failing line ends
    the run, is not recorded, or where the exit code is 0."""
    (kept / "broken.py").write_text("def measure(line):\n    raise ValueError('no such server')\n")
    (kept / "fine.py").write_text(
        "from benchmarks.report import Result\n"
        "def measure(line):\n    return [Result(line, 's', 1.0, 2.0, at_most=True, "
        "is_absolute=True, checked=True)]\n"
    )
    starter = (
        "import sys, benchmarks, benchmarks.line as line\n"
        f"benchmarks.__path__.append({str(kept)!r})\n"
        "benchmarks.LINES.update(capture=('broken', ''), decode=('fine', ''))\n"
        "sys.argv[1:] = sys.argv[-2:]\nsys.exit(line.main())\n"
    )
    started = command.told_by
    monkeypatch.setattr(
        command,
        "told_by",
        lambda c, p, s: started([sys.executable, "-c", starter, *c[-2:]], p, s),
    )
    assert command.main(["capture", "decode"]) == 1
    shown = capsys.readouterr().out
    assert "capture: NOT MEASURED" in shown and "ValueError: no such server" in shown
    (row,) = report.rows()
    assert (row["line"], row["memory_gib"]) == ("decode", None)
    assert "## Not measured" in report.PAGE.read_text()
    (kept / "broken.py").write_text((kept / "fine.py").read_text())
    assert command.main(["capture"]) == 0
    assert report.notes()["failed"] == {}


def test_a_line_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """Guards `__main__.told_by`; fails where only the line's own process is killed, or where
    one that wrote nothing is an exception."""
    script = f"tail -f /dev/null & echo $! > {tmp_path}/pid; wait"
    reported = command.told_by(["sh", "-c", script], tmp_path / "none", 1.0)
    assert reported == {"error": "It took longer than 1 s."}
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + SECONDS
    while is_alive(pid, None):
        assert time.monotonic() < end, "what the line started is still there"
    reported = command.told_by(
        [sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "none", SECONDS
    )
    assert reported["error"] == "Its process ended with 3, and wrote nothing."


def test_memory_counts_for_the_side_whose_turn_it_is(tmp_path: Path) -> None:
    """Guards `resources.turn`: fails where a side's memory is that of everything, or where a turn
    that is shorter than the sampler's interval is never seen. A process of ours in another turn
    does not count."""
    holding = "import sys; held = bytearray(300 << 20); print('x', flush=True); sys.stdin.read()"
    with resources.watched(every=60.0) as memory:
        with resources.turn():
            pass
        with subprocess.Popen(
            [sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            with resources.turn("theirs", child.pid):
                pass
            child.communicate()
    ours, theirs = memory.sides["ours"], memory.sides["theirs"]
    assert theirs > 290 << 20
    assert theirs < (300 << 20) + ours
    assert memory.gib("nobody") is None


def test_a_programs_memory_is_its_own_and_not_its_parents(tmp_path: Path) -> None:
    """Guards `programs.high_water`; fails with `ru_maxrss`, which is at least what the parent had
    when it started the program."""
    held = bytearray(200 << 20)
    lives = "import time; time.sleep(1)"  # longer than a busy machine takes to look at it first
    ran = programs.run("true", [sys.executable, "-c", lives], tmp_path / "log")
    assert len(held) and 0 < ran.memory_gib < 0.1
    with pytest.raises(RuntimeError, match="program ended with 2: wrong"):
        programs.run("program", ["sh", "-c", "echo wrong >&2; exit 2"], tmp_path / "log")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("postgres (PostgreSQL) 18.4", "18.4"),
        ("mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu", "10.11.19-MariaDB"),
        ("mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)", "9.7.4"),
        ("no word of it", versions.UNKNOWN),
    ],
)
def test_a_version_is_found_in_what_a_program_says(said: str, expected: str) -> None:
    """Guards `versions.first_number`."""
    assert versions.first_number(said) == expected


def test_a_program_that_is_not_there_has_no_version() -> None:
    """Guards `versions.said`: fails where a missing program ends the run instead of being
    reported."""
    assert versions.said(["/not/there", "--version"]) == versions.UNKNOWN
    assert versions.said(["false"]) == versions.UNKNOWN


def test_every_line_has_a_module(kept: Path) -> None:
    """Guards `LINES`: a line whose module is not there would only fail when it is measured."""
    folder = Path(line.__file__).parent
    assert all((folder / f"{module}.py").exists() for module, _ in LINES.values())
    assert page([], REPORTED).startswith("# Benchmarks")
    assert table([], [], {}, {}).startswith("line")


def test_a_peer_that_hangs_costs_only_its_own_figure(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `Conversation.hear` and `programs.run`: fails where a peer that never answers, or
    never ends, lets the whole line be ended. A line of its log that begins as an answer does is
    none."""
    (kept / "slow.py").write_text("import time\nprint('{no', flush=True)\ntime.sleep(600)\n")
    (kept / "fast.py").write_text("print('{no')\nprint('{\"rows\": 1}', flush=True)\ninput()\n")
    monkeypatch.setattr(environments, "HERE", kept)
    monkeypatch.setattr(environments, "python", lambda _: sys.executable)
    with (
        environments.talk("dlt", "slow", kept) as peer,
        pytest.raises(RuntimeError, match="no answer within 1 s"),
    ):
        peer.hear(1.0)
    with environments.talk("dlt", "fast", kept) as peer:
        assert peer.hear(SECONDS) == {"rows": 1}
    with pytest.raises(RuntimeError, match="sling took longer than 1 s"):
        programs.run("sling", ["sleep", "600"], kept / "log", 1.0)


def test_a_full_disk_costs_no_figures(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards `report._replace`: fails where a file is emptied before it is known that the new one
    can be written."""
    report.RESULTS.write_text(json.dumps([OLD]))
    write = Path.write_text

    def full(path: Path, text: str) -> int:
        write(path, text[:3])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space"):
            report.record_failure("decode", "it broke")
    assert report.rows() == [OLD]
    assert [p.name for p in kept.iterdir()] == ["results.json"]


def test_a_line_that_is_ended_removes_what_it_made(kept: Path) -> None:
    """Guards `__main__.told_by` and `line.main`: fails where a line that takes too long is killed
    at once, so that its servers' folders, which nobody looks for, stay for ever."""
    (kept / "long.py").write_text(
        "import time, tempfile\n"
        f"def measure(line):\n    with tempfile.TemporaryDirectory(dir={str(kept)!r}, "
        "prefix='server-'):\n"
        f"        open({str(kept / 'there')!r}, 'w').close()\n        time.sleep(600)\n"
    )
    starter = (
        "import sys, benchmarks, benchmarks.line as line\n"
        f"benchmarks.__path__.append({str(kept)!r})\n"
        "benchmarks.LINES.update(capture=('long', ''))\n"
        "sys.argv[1:] = ['capture', sys.argv[-1]]\nsys.exit(line.main())\n"
    )
    out = kept / "told.json"
    reported = command.told_by([sys.executable, "-c", starter, str(out)], out, 5.0)
    assert reported == {"error": "It took longer than 5 s."}
    assert (kept / "there").exists() and not list(kept.glob("server-*"))


def test_a_process_is_known_by_its_program_not_by_its_folder() -> None:
    """Guards `resources._part`: fails where all that runs from a clone below /home/postgres counts
    as the server's, so that our own memory is nothing."""

    class Process:
        def __init__(self, *command: str) -> None:
            self._command = command

        def cmdline(self) -> list[str]:
            return list(self._command)

        def name(self) -> str:
            return Path(self._command[0]).name

    home = "/home/postgres/clone"
    for part, words in (
        ("workers", (f"{home}/.venv/bin/python", "-m", "runners.engine.tasks.worker")),
        ("JVM", ("/usr/bin/java", "-cp", f"{home}/jars/postgresql-42.jar:{home}/jars/*")),
        ("server", (f"{home}/bin/postgres", "-D", "/data")),
        ("server", ("postgres: walsender u 127.0.0.1(1) START_REPLICATION", "")),
        ("server", ("postgres:", "checkpointer")),
        ("server", ("/m/ld-linux-x86-64.so.2", "--library-path", "/m/lib:/m/usr/lib/mysql/private",
        "/m/mysqld")),
        ("peer", ("/clone/var/peers/dlt/bin/python", "x.py")),
    ):  # fmt: skip
        assert resources._part(Process(*words)) == part, words  # type: ignore[arg-type]


def test_a_figure_of_a_smaller_load_says_so_beside_its_name(kept: Path) -> None:
    """Guards `page.cells`: fails where a target that was reached with a hundredth of the rows looks
    like any other."""
    result = Result("decode", "x", 2.0, 1.0, is_absolute=True, checked=True)
    report.record("decode", [result], {"scale": 0.01, "rounds": 1})
    assert "| decode (scale 0.01) | x | 2.00 |" in report.PAGE.read_text()
    report.record("decode", [result], {"scale": 1.0})
    assert "| decode | x | 2.00 |" in report.PAGE.read_text()


def test_the_committed_page_and_picture_are_those_of_the_committed_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Guards `report.rewrite`: a picture that was not drawn again shows figures that nobody
    measured."""
    root, folder = report.ROOT, report.ROOT / "benchmarks"
    monkeypatch.setattr(report, "RESULTS", folder / "results.json")
    monkeypatch.setattr(report, "MACHINE", folder / "machine.json")
    report.rewrite()
    assert report.PICTURE.read_text() == (root / "docs/benchmarks.svg").read_text()
    assert report.PAGE.read_text() == (root / "docs/benchmarks.md").read_text()


def test_the_picture_has_ours_the_peer_and_the_limit_in_our_unit() -> None:
    """Guards `picture.limit_of`: a ratio drawn as it is would lie at the left edge and look met by
    everybody."""
    rate = {
        "line": "capture",
        "unit": "rows/s",
        "ours": 300.0,
        "target": 0.9,
        "ratio": 1.5,
        "peers": [{"name": "p<", "value": 200.0}],
    }
    merge = {
        **rate,
        "line": "merge-delta",
        "unit": "s a merge",
        "ours": 2.0,
        "target": 4,
        "ratio": 1.2,
    }
    lag = {
        **rate,
        "line": "lag-p50",
        "unit": "s",
        "ours": 2.5,
        "target": 5,
        "ratio": None,
        "peers": [],
    }
    assert [limit_of(row) for row in (rate, merge, lag)] == pytest.approx([180.0, 0.6, 5.0])
    text = picture([rate, lag])
    ET.fromstring(text)
    assert text.count('class="ours"') == 2 and text.count('class="peer"') == 1 and "p&lt;" in text
    assert "limit: at least 180" in text and "limit: at most 5" in text
    assert picture([{**lag, "target": None}]).count('class="limit"') == 0
