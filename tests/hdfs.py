"""HDFS of the tests' own: a namenode and a datanode in one process, Hadoop's MiniDFSCluster. Nobody
signs in, and rights are checked. The user that runs the tests is its superuser."""

from __future__ import annotations

import contextlib
import getpass
import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from demo.embedded import EmbeddedServer
from demo.postgres import HOST, free_port
from setup import machine, steps

_CLIENT = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "slf4j-api",
    "log4j-",
    "commons-cli",
    "jcl-over",
)


class HdfsError(RuntimeError):
    """The server did not start. The text ends with its log."""


@dataclass
class Hdfs(EmbeddedServer):
    """Its jars are fetched where they are missing: only long tests need them."""

    web_port: int = 0

    label = "hdfs"
    title = "HDFS"
    start_seconds = 90.0
    error = HdfsError

    def _command(self) -> Sequence[str]:
        steps.hdfs()
        self.web_port = self.web_port or free_port()
        jars = Path(pyspark.__file__).parent / "jars"
        client = [str(j) for name in _CLIENT for j in sorted(jars.glob(f"{name}*.jar"))]
        home = machine.java_home()
        return [
            str(home / "bin" / "java") if home else "java",
            "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Dtest.build.data={self.home}/data",
            "-cp", ":".join([f"{steps.HDFS}/*", *client]),
            "org.apache.hadoop.test.MiniDFSClusterManager", "-format",
            "-nnport", str(self.port), "-httpport", str(self.web_port),
        ]  # fmt: skip

    def _answers(self) -> bool:
        asked = f"{self.web}/webhdfs/v1/?op=GETFILESTATUS"
        with contextlib.suppress(OSError), urllib.request.urlopen(asked, timeout=5) as answer:
            return bool(json.load(answer)["FileStatus"]) and self._has_room()
        return False

    def _has_room(self) -> bool:
        """Whether its datanode is there."""
        asked = f"{self.web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        with urllib.request.urlopen(asked, timeout=5) as answer:
            return bool(json.load(answer)["beans"][0]["NumLiveDataNodes"])

    @property
    def web(self) -> str:
        """Where WebHDFS answers."""
        return f"http://{HOST}:{self.web_port}"

    @property
    def url(self) -> str:
        """The cluster, as people write it in a warehouse."""
        return f"hdfs://{HOST}:{self.port}"

    def _asked(self, method: str, path: str, query: str) -> Any:
        asked = f"{self.web}/webhdfs/v1{path}?user.name={getpass.getuser()}&{query}"
        with urllib.request.urlopen(
            urllib.request.Request(asked, method=method), timeout=30
        ) as got:
            return json.loads(got.read() or b"null")

    def give(self, path: str, user: str) -> None:
        """Make a user the owner of a folder."""
        self._asked("PUT", path, f"op=SETOWNER&owner={user}")

    def owners(self, path: str) -> set[str]:
        """The owners of what lies in a folder and in the folders below."""
        found: set[str] = set()
        for one in self._asked("GET", path, "op=LISTSTATUS")["FileStatuses"]["FileStatus"]:
            found.add(one["owner"])
            if one["type"] == "DIRECTORY":
                found |= self.owners(f"{path}/{one['pathSuffix']}")
        return found
