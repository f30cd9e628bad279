"""Checks signatures of requests (AWS4-HMAC-SHA256) as a service of Amazon does: it makes each again
with botocore's signer, from what came."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.stores import Keys

_FORM = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)"
    r"/(?P<service>[^/]+)/aws4_request, ?SignedHeaders=(?P<headers>[^,]+)"
    r", ?Signature=(?P<signature>[0-9a-f]{64})"
)
_NEEDED = {"host", "x-amz-date"}
_AGE = timedelta(minutes=15)


class _Service(SigV4Auth):
    """A service takes the body's hash from the body, not from what the client says of it. Iceberg's
    client says it in base64."""

    def canonical_request(self, request: AWSRequest) -> str:
        text: str = super().canonical_request(request)
        digest = hashlib.sha256(request.data or b"").hexdigest()
        return f"{text.rpartition(chr(10))[0]}\n{digest}"


@dataclass(frozen=True, slots=True)
class Signer:
    """Who may sign, and for what."""

    keys: Keys
    region: str
    service: str

    def fault(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> str:
        """What is wrong with a request's signature; empty where nothing is."""
        given = _FORM.fullmatch(headers.get("Authorization") or "")
        if given is None:
            return "no signature"
        wanted = (self.keys.access, self.region, self.service)
        if given.group("key", "region", "service") != wanted:
            return "signed by another, or for another service or region"
        names = given["headers"].split(";")
        if not _NEEDED.issubset(names):
            return "a header is not signed"
        at = headers["x-amz-date"]
        signed_at = datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(datetime.now(UTC) - signed_at) > _AGE:
            return "signed at another time"
        digest = hashlib.sha256(body)
        stated = headers.get("x-amz-content-sha256")
        if stated not in {None, digest.hexdigest(), base64.b64encode(digest.digest()).decode()}:
            return "the body is another"
        kept = {name: headers[name] for name in names}
        request = AWSRequest(method, f"http://{headers['Host']}{path}", kept, body)
        request.context["timestamp"] = at
        mine = Credentials(self.keys.access, self.keys.secret)
        signer = _Service(mine, self.service, self.region)
        text = signer.string_to_sign(request, signer.canonical_request(request))
        is_same = hmac.compare_digest(signer.signature(text, request), given["signature"])
        return "" if is_same else "the signature is another"
