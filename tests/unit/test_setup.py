"""The set-up's own logic: stamps, and what it says when it can't go on."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from setup import machine, steps
from setup.__main__ import Work, lanes
from setup.machine import ROOT, Missing
from setup.work import Stamp, run


def test_a_stamp_is_valid_for_the_very_inputs_it_was_written_for(tmp_path: Path) -> None:
    """Guards `Stamp.digest`: without the inputs' hash a changed list of packages would not be
    installed."""
    listing = tmp_path / "list.txt"
    listing.write_text("one==1")
    stamp = Stamp(tmp_path / "made" / ".stamp", (listing,))
    assert not stamp.is_valid()
    stamp.write()
    assert stamp.is_valid()
    listing.write_text("one==2")
    assert not stamp.is_valid()


def test_a_step_that_failed_shows_its_output_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards `setup.work.run`: a failed step that does not raise would be stamped as done by its
    caller."""
    monkeypatch.setattr("setup.work.LOGS", tmp_path)
    with pytest.raises(Missing) as caught:
        run("fails", ["sh", "-c", "echo the reason; exit 3"], needs="Do this.")
    assert "the reason" in str(caught.value)
    assert "Do this." in str(caught.value)


def test_without_root_and_sudo_it_names_what_is_missing_and_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `steps.apt_packages`: without the look at `may_install`, apt would be called and fail
    with its own words."""
    monkeypatch.setattr(machine, "missing_packages", lambda *, with_tests: ["maven"])
    monkeypatch.setattr(machine, "may_install", lambda: False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(Missing) as caught:
        steps.apt_packages(with_tests=False)
    assert "Missing on this machine: maven." in str(caught.value)
    assert "apt-get install -y --no-install-recommends maven" in str(caught.value)
    assert "sudo" not in str(caught.value)


def test_too_little_disk_is_said_before_anything_is_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guards `steps.check_disk`: set-up would end in its midst with a full disk."""
    monkeypatch.setattr(machine, "free_bytes", lambda: 1 << 20)
    with pytest.raises(Missing, match="are needed"):
        steps.check_disk()


def test_every_vendor_line_names_a_file_and_a_place_and_no_place_twice() -> None:
    """Guards `setup/vendor.txt`: of two files with one place the second would overwrite the
    first."""
    lines = (ROOT / "setup" / "vendor.txt").read_text().splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs)
    places = [pair[1] for pair in pairs]
    assert len(places) == len(set(places))


def test_nothing_that_is_installed_comes_from_a_named_host() -> None:
    """Guards installs behind a mirror: an address in a list of requirements would go past what the
    machine is set to use."""
    for name in ("requirements.txt", "requirements-dev.txt", ".npmrc"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "index-url" not in text
    assert '"resolved"' not in (ROOT / "package-lock.json").read_text()


def test_the_packaged_postgresql_is_installed_without_starting_a_server(tmp_path: Path) -> None:
    """Guards `machine.apt_commands`: without `NO_CLUSTER` ahead of it, the package makes a server
    of its own and starts it."""
    lines = [" ".join(c) for c in machine.apt_commands(["postgresql-15", "maven"])]
    common, config, rest = lines[1:]
    assert common.endswith("postgresql-common")
    assert config.endswith("createcluster.conf")
    assert rest.endswith("postgresql-15 maven")
    assert len(machine.apt_commands(["maven"])) == 2
    shipped = tmp_path / "createcluster.conf"
    shipped.write_text("# Create a cluster?\n#create_main_cluster = true\nstart_conf = 'auto'\n")
    subprocess.run(["sed", "-ri", machine.NO_CLUSTER, str(shipped)], check=True)
    assert "\ncreate_main_cluster = false\n" in shipped.read_text()


def test_a_machine_that_can_not_archive_classes_is_set_up_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is an optimisation: it must never keep anybody from the program, and is tried again the
    next time."""

    def fail(*_: object, **__: object) -> None:
        raise Missing("no memory")

    stamp = Stamp(tmp_path / "stamp", ())
    monkeypatch.setattr(steps, "CLASSES", stamp)
    monkeypatch.setattr(steps, "run", fail)
    steps.archive_classes()
    assert "runs start more slowly" in capsys.readouterr().out and not stamp.is_valid()
    monkeypatch.setattr(steps, "run", lambda *_, **__: None)
    steps.archive_classes()
    assert stamp.is_valid()


def test_every_input_of_a_step_is_there() -> None:
    """Guards the paths in `setup.steps`: a module that moved would end the set-up of a new
    machine, or leave a step out of it."""
    stamps = [v for v in vars(steps).values() if isinstance(v, Stamp)]
    assert len(stamps) >= 5
    assert [str(p) for stamp in stamps for p in stamp.inputs if not p.is_file()] == []


def test_steps_go_side_by_side_and_all_stop_after_the_first_that_failed() -> None:
    """Guards `Work`: a list that waits for the other one, or goes on after its failure."""
    done: list[str] = []
    met = threading.Barrier(2, timeout=20)

    def fails() -> None:
        met.wait()
        raise Missing("the reason")

    def waits() -> None:
        met.wait()
        work._failed.wait(20)

    work = Work(4)
    later = ("later", lambda: done.append("later"))
    with pytest.raises(Missing, match="the reason"):
        work.side_by_side([[("fails", fails), later], [("waits", waits), later]])
    assert not done


@pytest.mark.parametrize("with_tests", [False, True])
def test_mavens_steps_are_never_side_by_side(with_tests: bool) -> None:
    """Guards `lanes`: two Mavens that write one repository at once."""
    maven = {steps.jars, steps.search_server, steps.kafka_broker, steps.rest_catalog}
    used = [maven & {step for _, step in todo} for todo in lanes(with_tests)]
    assert len([one for one in used if one]) == 1
