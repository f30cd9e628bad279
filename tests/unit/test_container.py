"""The container's files, which no test builds: what can be read of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from setup.machine import ROOT

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OURS = ("web", "runs", "default", "beat")


@pytest.mark.parametrize("listing", [".gitignore", ".dockerignore"])
def test_the_file_of_secrets_gets_neither_into_the_repository_nor_into_the_image(
    listing: str,
) -> None:
    """Guards the secrets of `.env`, which `docker-compose.yml` asks people to write beside it:
    `COPY . .` would take it along."""
    assert ".env" in (ROOT / listing).read_text().splitlines()


@pytest.mark.parametrize("name", OURS)
def test_a_service_is_a_command_of_ours_with_every_variable_and_ends_its_orphans(name: str) -> None:
    """Guards what each process needs of its container: all settings of `.env`, a first process that
    reaps what killed runs leave, and a database that is migrated before anything but the web
    process starts."""
    service = SERVICES[name]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(service["command"].split()[1:]) <= set(targets)
    assert service["env_file"] == ".env"
    assert service["init"] is True
    assert name == "web" or service["depends_on"] == {"web": {"condition": "service_healthy"}}


def test_the_image_keeps_compiled_code_where_its_user_may_write() -> None:
    """Guards the start of runs: without a folder that it may write numba compiles everything again
    in each container."""
    text = (ROOT / "Dockerfile").read_text()
    place = re.search(r"^ENV NUMBA_CACHE_DIR=(\S+)$", text, re.M)
    assert place is not None
    assert text.index(place[0]) < text.index("RUN make setup")
    assert re.search(r"chown -R app .*\$NUMBA_CACHE_DIR$", text, re.M)


def test_the_image_is_production_and_nobody_else_reaches_its_port_without_tls() -> None:
    """Guards the defaults of the image and of compose: it listened to everybody over plain HTTP,
    with DEBUG on unless it was turned off."""
    image = (ROOT / "Dockerfile").read_text()
    assert "DEBUG=false" in image and "DEBUG=true" not in image
    web = SERVICES["web"]
    assert web["ports"] == ["${PUBLISH:-127.0.0.1:8000}:8000"]
    assert web["environment"]["HTTPS"] == "${HTTPS:-true}"
    for name in ("SECRET_KEY", "REPLICATOR_SECRET_KEY"):
        assert web["environment"][name] == f"${{{name}:?}}"


def test_the_image_leaves_room_for_warehouses_beside_its_own_files() -> None:
    """Guards the volume: no connection may use the folder of the program's own files, so that one
    can't be all of `/data`."""
    text = (ROOT / "Dockerfile").read_text()
    folders = dict(re.findall(r"(REPLICATOR_VAR_DIR|REPLICATOR_LOG_URL)=(\S+)", text))
    assert re.search(r"^VOLUME /data$", text, re.M)
    assert len(folders) == 2 and all(f.startswith("/data/") for f in folders.values())
