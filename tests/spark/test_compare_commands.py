"""The commands of the README and of docs/compare.md, as a person types them. Each starts a JVM."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from setup.machine import ROOT

pytestmark = pytest.mark.spark

_BLOCK = re.compile(r"```sh\n(\. \.venv/bin/activate\n.*?)```", re.S)
RESULT = "I        2,000\n  U        4,000\n  D        2,000\n  X            0\n  N        4,000\n"


def commands(page: str) -> str:
    found = _BLOCK.findall((ROOT / page).read_text())
    assert len(found) == 1
    return str(found[0])


def bash(text: str) -> subprocess.CompletedProcess[str]:
    """What the commands wrote. Where they take too long, their JVMs end too."""
    argv = ["bash", "-ec", text]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        argv, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=280)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def test_the_readmes_two_days_give_the_seeds_counts(tmp_path: Path) -> None:
    """Then the second day comes again, by the other command."""
    typed = commands("README.md")
    assert typed == commands("docs/compare.md")
    here = typed.replace("var/days", str(tmp_path / "days"))
    found = bash(here)
    assert found.returncode == 0, found.stderr[-3000:]
    assert "2019-06-18: 10,000 rows were compared.\n  I       10,000\n" in found.stdout
    assert f"2019-06-19: 10,000 rows were compared.\n  {RESULT}" in found.stdout
    days = tmp_path / "days"
    again = bash(
        ". .venv/bin/activate; python manage.py compare "
        f"{days}/config.yaml {days}/data/day2 2019-06-19"
    )
    assert again.returncode == 0, again.stderr[-3000:]
    assert "2019-06-19 was compared before. Nothing was changed." in again.stdout
    assert RESULT in again.stdout


def test_a_faulty_configuration_is_named_by_line_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("keys: {id: int}\nkind: ful\n")
    for command in ("python cdc.py", "python manage.py compare"):
        asked = f"{tmp_path}/config.yaml {tmp_path} 2019-06-18"
        found = bash(f". .venv/bin/activate; {command} {asked}")
        assert found.returncode == 1
        assert f"{tmp_path}/config.yaml: line 1: `current` is missing" in found.stderr
        assert "line 2: `kind` must be one of full, delta" in found.stderr
