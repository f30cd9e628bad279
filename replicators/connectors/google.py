"""What targets of Google Cloud share: their fields, how one signs in, and which addresses are
taken."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from replicators.connectors.addresses import Url
from replicators.connectors.params import param

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
"""One scope: load jobs that read from a bucket need more than that of BigQuery."""
AGENT = "replicators"


def account_key() -> Any:
    """The field of a service account's key."""
    return param(
        "Service account key",
        help="The JSON file's content; empty: the credentials that the machine has (application "
        "default credentials)",
        default="",
        secret=True,
    )


def api_endpoint() -> Any:
    """The field of the API's address."""
    return param(
        "API endpoint",
        help="Only for a private endpoint or an emulator. An emulator's begins with http:// and "
        "needs no key.",
        default="",
        addresses=True,
    )


def key_fault(text: str) -> str:
    """What is wrong with a service account key. Only Google's own token address is taken: another
    one would be sent a signed request."""
    if not text:
        return ""
    try:
        key: Any = json.loads(text)
    except ValueError:
        key = None
    if not isinstance(key, dict) or key.get("type") != "service_account":
        return "must be the whole content of a service account's JSON file"
    missing = [n for n in ("client_email", "private_key", "token_uri") if not key.get(n)]
    if missing:
        return f"lacks {' and '.join(missing)}"
    host = Url.parse(str(key["token_uri"])).host if "://" in str(key["token_uri"]) else ""
    if host != "googleapis.com" and not host.endswith(".googleapis.com"):
        return "its token_uri must lie at googleapis.com"
    return ""


def endpoint_fault(text: str, example: str) -> str:
    """What is wrong with the address of an API."""
    if not text:
        return ""
    if not text.startswith(("https://", "http://")):
        return "must begin with https:// (an emulator's with http://)"
    try:
        url = Url.parse(text)
    except ValueError as err:
        return str(err)
    if not url.host or url.user or url.query or url.path not in ("", "/"):
        return f"must be an address like https://{example}, without a path"
    return ""


def credentials_of(key: str, *, is_emulated: bool) -> Credentials:
    """The credentials: an emulator's, the key that was entered, or what the machine has."""
    from google.auth import default
    from google.auth.credentials import AnonymousCredentials
    from google.oauth2.service_account import Credentials as AccountCredentials

    if is_emulated:
        anonymous: Credentials = AnonymousCredentials()
        return anonymous
    if key:
        own: Credentials = AccountCredentials.from_service_account_info(
            json.loads(key), scopes=SCOPES
        )
        return own
    found: Credentials = default(scopes=SCOPES)[0]
    return found
