"""An S3 server of the tests' own, in a process of its own; the change log's files go there as to a
real one."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

_UP_SECONDS = 60.0
_NUMBERS = itertools.count(1)
RIGHTS = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject",
    "s3:AbortMultipartUpload", "s3:HeadBucket")  # fmt: skip
"""As docs say, and one that Amazon has as a part of s3:ListBucket."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Of a user, or of a role's session, which has a token too."""

    access: str
    secret: str
    token: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Where it listens, and what a process needs in its environment to reach it."""

    endpoint: str
    bucket: str = "logs"

    @property
    def url(self) -> str:
        """A folder in its bucket."""
        return f"s3://{self.bucket}/change-log"

    @property
    def environment(self) -> dict[str, str]:
        """As the SDKs read it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _asked(self, service: str, by: Keys) -> Any:
        import boto3

        how = {"endpoint_url": self.endpoint, "region_name": "us-east-1"}
        mine = {"aws_access_key_id": by.access, "aws_secret_access_key": by.secret}
        return boto3.client(service, **how, **mine)

    def _policy(self, actions: tuple[str, ...], below: str = "") -> str:
        named = (self.bucket, "nowhere")
        inner = f"/{below}/*" if below else "/*"
        places = [f"arn:aws:s3:::{b}{end}" for b in named for end in ("", inner)]
        here = [a for a in actions if a.startswith("s3:")]
        rights = [{"Effect": "Allow", "Action": here, "Resource": places}]
        if other := [a for a in actions if a not in here]:
            rights.append({"Effect": "Allow", "Action": other, "Resource": ["*"]})
        return json.dumps({"Version": "2012-10-17", "Statement": rights})

    def user(self, *actions: str) -> Keys:
        """A new user who may do these things in the bucket, and in one that is not there, and
        those of other services everywhere."""
        client = self._asked("iam", Keys("tester", "not-a-secret"))
        name = f"user{next(_NUMBERS)}"
        client.create_user(UserName=name)
        policy = self._policy(actions)
        client.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=policy)
        made = client.create_access_key(UserName=name)["AccessKey"]
        return Keys(made["AccessKeyId"], made["SecretAccessKey"])

    def session(self, *actions: str, by: Keys, below: str) -> Keys:
        """Keys of a session, by which one may do these things in a folder of the bucket. `by`: who
        may make such."""
        client, name = self._asked("iam", by), f"role{next(_NUMBERS)}"
        who = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [who]})
        role = client.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]
        policy = self._policy(actions, below)
        client.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy)
        asked = {"RoleArn": role["Arn"], "RoleSessionName": name}
        made = self._asked("sts", by).assume_role(**asked)["Credentials"]
        found = (made[n] for n in ("AccessKeyId", "SecretAccessKey", "SessionToken"))
        return Keys(*found, role=name)

    def end(self, session: Keys, by: Keys) -> None:
        """The session's keys open nothing any more."""
        self._asked("iam", by).delete_role_policy(RoleName=session.role, PolicyName="p")

    def require_keys(self) -> None:
        """From now on only users with a right may do what they ask for."""
        asked = f"{self.endpoint}/moto-api/reset-auth"
        plain = {"Content-Type": "text/plain"}
        request = urllib.request.Request(asked, b"0", plain)
        urllib.request.urlopen(request, timeout=10).close()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A server with one empty bucket."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = ObjectStore(f"http://127.0.0.1:{port}")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, **store.environment},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + _UP_SECONDS
        while not _answers(f"{store.endpoint}/moto-api/data.json"):
            assert process.poll() is None and time.monotonic() < end, "no S3 server"
            time.sleep(0.05)
        made = urllib.request.Request(f"{store.endpoint}/{store.bucket}", method="PUT")
        urllib.request.urlopen(made, timeout=10).close()
        yield store
    finally:
        process.terminate()
        process.wait(20)
