"""The S3 server of the lines on S3: Versity's gateway above a folder of this disk, a program in Go
that is built once from a pinned version. Where Go is missing, moto serves: Python, which is slower
than the engine that it serves."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks import programs
from benchmarks.peers.environments import FOLDER
from demo.postgres import free_port
from setup.machine import Missing
from setup.work import run
from tests.stores import ObjectStore, object_store

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
NEEDS = "It needs Go and the network."
MOTO = "The S3 server is moto, a program in Python that shares the cores."
GATEWAY = f"The S3 server is versitygw {VERSION} above a folder of the same disk."
UP_SECONDS = 30.0


def gateway() -> Path:
    """The program. It is built where it is missing. Raises `Missing` where that fails."""
    folder = FOLDER.parent / f"versitygw-{VERSION}"
    found = folder / "versitygw"
    if not found.exists():
        if shutil.which("go") is None:
            raise Missing("Go is not installed")
        environment = {**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": "local"}
        run("versitygw", ["go", "install", f"{MODULE}@{VERSION}"], needs=NEEDS, env=environment)
    return found


@contextmanager
def s3_server(folder: Path) -> Iterator[tuple[ObjectStore, str]]:
    """A server with one empty bucket, and a sentence that says which it is. `folder`: for its
    objects."""
    try:
        program = gateway()
    except Missing:
        with object_store() as store:
            yield store, MOTO
        return
    port = free_port()
    store = ObjectStore(f"http://127.0.0.1:{port}")
    env = store.environment
    (folder / "objects").mkdir()
    (folder / "sidecar").mkdir()
    keys = {
        "ROOT_ACCESS_KEY": env["AWS_ACCESS_KEY_ID"],
        "ROOT_SECRET_KEY": env["AWS_SECRET_ACCESS_KEY"],
    }
    command = [
        str(program), "--port", f"127.0.0.1:{port}", "--region", env["AWS_DEFAULT_REGION"],
        "--quiet", "posix", "--sidecar", str(folder / "sidecar"), str(folder / "objects"),
    ]  # fmt: skip
    with (folder / "versitygw.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **keys}, stdout=log, stderr=log)
    try:
        _make_bucket(store, process)
        yield store, GATEWAY
    finally:
        programs.end(process)


def _make_bucket(store: ObjectStore, process: subprocess.Popen[Any]) -> None:
    import boto3
    from botocore.exceptions import BotoCoreError

    env = store.environment
    client: Any = boto3.client(
        "s3", endpoint_url=store.endpoint, region_name=env["AWS_DEFAULT_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )  # fmt: skip
    end = time.monotonic() + UP_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with suppress(BotoCoreError):
            client.create_bucket(Bucket=store.bucket)
            return
        time.sleep(0.05)
    raise RuntimeError("the S3 server does not answer")
