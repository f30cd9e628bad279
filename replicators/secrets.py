"""Encrypts the secrets of connectors; the key comes from a setting and is never stored beside
them."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from replicators.connectors.problems.errors import ReplicationError


def _fernet() -> Fernet:
    key = settings.REPLICATOR_SECRET_KEY
    if not key:
        raise ImproperlyConfigured(
            "REPLICATOR_SECRET_KEY (or REPLICATOR_SECRET_KEY_FILE) must be set: it encrypts "
            "stored secrets."
        )
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()))


def encrypt(secrets: dict[str, Any]) -> str:
    """The secrets as text that can be stored; empty text for no secrets."""
    return _fernet().encrypt(json.dumps(secrets).encode()).decode() if secrets else ""


def decrypt(text: str) -> dict[str, Any]:
    """The inverse of `encrypt`; `config:secrets-unreadable` where another key encrypted the
    text."""
    if not text:
        return {}
    try:
        return dict(json.loads(_fernet().decrypt(text.encode())))
    except InvalidToken as err:
        raise ReplicationError("config:secrets-unreadable") from err


def digest(token: str) -> str:
    """The SHA-256 of an API token. Only this is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
