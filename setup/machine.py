"""Finds what this machine has and lacks: disk, Java, Maven, Node, browser. This is the only place
that calls apt."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
JAVA_VERSIONS = (17, 21)
NODE_AT_LEAST = 18
SERVER_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
MYSQL_ROOT = "/var/tmp/replicators-mysql"  # noqa: S108 (only root can make and fill it)
OLDER_POSTGRES = Path("/usr/lib/postgresql/15/bin")
NO_CLUSTER = "s/^#?create_main_cluster.*/create_main_cluster = false/"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Missing(RuntimeError):
    """Something is missing that only a person can install. The text names it and the command that
    installs it."""


def free_bytes(folder: Path = ROOT) -> int:
    """Bytes that we may use on the disk of the folder."""
    return shutil.disk_usage(folder).free


def _java_version(home: Path) -> int:
    try:
        said = subprocess.run(
            [str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=False
        ).stderr
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found.group(1)) if found else 0


def java_home() -> Path | None:
    """The home of a Java that Spark can run on: JAVA_HOME, else Debian's folder, else the one on
    PATH."""
    places = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    places += sorted(Path("/usr/lib/jvm").glob("java-17-openjdk*"))
    on_path = shutil.which("java")
    if on_path:
        places.append(Path(on_path).resolve().parents[1])
    for home in places:
        if _java_version(home) in JAVA_VERSIONS:
            return home
    return None


def npm_command() -> list[str] | None:
    """The machine's npm command, if its Node is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", said)
    return [npm] if found and int(found.group(1)) >= NODE_AT_LEAST else None


def browser() -> str | None:
    """A Chromium for the browser tests."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def mysql_root() -> Path | None:
    """The folder with an unpacked MySQL server, for tests; None if it is incomplete."""
    folder = Path(os.environ.get("REPLICATOR_MYSQL_ROOT", MYSQL_ROOT))
    is_complete = (folder / "usr" / "sbin" / "mysqld").exists() and (folder / ".complete").exists()
    return folder if is_complete else None


def python_lacks_venv() -> bool:
    """Whether this Python lacks ensurepip or venv. Debian's python3.11 comes without ensurepip."""
    return importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None


def _is_debian_12() -> bool:
    """Whether this is Debian 12. The tests use its own PostgreSQL beside the wheel's newer one."""
    try:
        return "VERSION_CODENAME=bookworm" in Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return False


def missing_packages(*, with_tests: bool) -> list[str]:
    """The apt packages that we need and this machine lacks."""
    names = []
    if python_lacks_venv():
        names.append(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    if java_home() is None:
        names.append("openjdk-17-jre-headless")
    if shutil.which("mvn") is None:
        names.append("maven")
    if shutil.which("setpriv") is None:
        names.append("util-linux")
    return names + (_missing_for_tests() if with_tests else [])


def _missing_for_tests() -> list[str]:
    names = []
    if browser() is None:
        names.append("chromium")
    if shutil.which("mariadbd", path=SERVER_PATH) is None:
        names.append("mariadb-server")
    if mysql_root() is None and shutil.which("debootstrap", path=SERVER_PATH) is None:
        names.append("debootstrap")
    if not OLDER_POSTGRES.is_dir() and _is_debian_12():
        names.append("postgresql-15")
    return names


def apt_commands(packages: list[str]) -> list[list[str]]:
    """The commands that install these packages. Only these commands need root."""
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive"]
    install = [*as_root, *quiet, "apt-get", "install", "-y", "--no-install-recommends"]
    commands = [[*as_root, "apt-get", "update"]]
    if any(name.startswith("postgresql-") for name in packages):
        # The package would make and start a server; the tests need only its programs.
        place = "/etc/postgresql-common/createcluster.conf"
        commands += [[*install, "postgresql-common"], [*as_root, "sed", "-ri", NO_CLUSTER, place]]
    return [*commands, [*install, *packages]]


def may_install() -> bool:
    """Whether we can call apt: as root, or as a user with sudo."""
    has_apt = shutil.which("apt-get") is not None
    return has_apt and (os.geteuid() == 0 or shutil.which("sudo") is not None)
