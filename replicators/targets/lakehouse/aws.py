"""pyiceberg's client of AWS Glue, with limits of time, and its faults as error codes."""

from __future__ import annotations

import re
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)
from pyiceberg.catalog.glue import GlueCatalog

from replicators.connectors import limits
from replicators.targets.lakehouse.glue import Glue
from replicators.targets.lakehouse.servers import ANSWER_SECONDS, CONNECT_SECONDS

_ANSWERS = (
    (
        r"UnrecognizedClient|InvalidSignature|InvalidClientTokenId|SignatureDoesNotMatch"
        r"|ExpiredToken|IncompleteSignature|MissingAuthenticationToken|InvalidAccessKeyId",
        "target:catalog-refused",
    ),
    (r"AccessDenied|UnauthorizedOperation", "target:catalog-rights"),
    (r"Throttling|InternalService|InternalFailure|\b50[0234]\b", "target:catalog-unreachable"),
)


def open_glue(name: str, glue: Glue, properties: dict[str, str], *, is_look: bool = False) -> Any:
    """The catalog. A look asks Glue for something small, and does not ask twice."""
    config = Config(
        connect_timeout=limits.left(CONNECT_SECONDS),
        read_timeout=limits.left(ANSWER_SECONDS),
        retries={"max_attempts": 0 if is_look else 5, "mode": "standard"},
    )
    client: Any = boto3.Session(
        region_name=glue.region or None,
        aws_access_key_id=glue.access_key or None,
        aws_secret_access_key=glue.secret_key or None,
    ).client("glue", endpoint_url=glue.where or None, config=config)
    if is_look:
        client.get_databases(MaxResults=1)
    return GlueCatalog(name, client=client, **properties)


def fault(err: BaseException | None) -> str:
    """The code of what an exception, or its cause, says about Glue; empty where it says nothing."""
    while err is not None:
        if isinstance(err, NoRegionError):
            return "target:catalog-region"
        if isinstance(err, (NoCredentialsError, PartialCredentialsError)):
            return "target:catalog-refused"
        if isinstance(err, (ConnectionError, HTTPClientError)):
            return "target:catalog-unreachable"
        if isinstance(err, ClientError):
            return _of_answer(str(err))
        err = err.__cause__
    return ""


def fault_of_opening(err: BaseException) -> str:
    """As `fault`, for a catalog that is opened: what is no answer of Glue's is another server's."""
    return fault(err) or ("target:catalog-unknown" if isinstance(err, ClientError) else "")


def _of_answer(text: str) -> str:
    """A server that stands for Glue may name the reason in its text, and a number as the code."""
    found = (code for pattern, code in _ANSWERS if re.search(pattern, text))
    return next(found, "")
