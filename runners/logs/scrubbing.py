"""Masks secrets in log texts, in time linear in their length. Uses no database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

from replicators.connectors.params import MASK

SURE_CHARACTERS = 8
"""A secret of at least this length is masked wherever it stands; a shorter one may be a part of any
word."""
WORD_CHARACTERS = 4
"""A secret of at least this length is masked where it is a word; a shorter one only in the places
below."""
_NAMES = (
    r"password|passwd|passphrase|pwd|secret(?:[_.-]?(?:access[_.-]?)?key)?|token|credential|sslkey"
    r"|(?:api|access|account|private)[_.-]?key"
)
_NAMED = re.compile(
    rf"(?i)((?:{_NAMES})s?(?:[_.-][\w.-]{{0,24}})?\\?['\"]?\s{{0,8}}[=:]\s{{0,8}})"
    r"('[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|[^\s,;)&]+)"
)
_STATEMENT = re.compile(
    r"(?i)(\b(?:identified\s{1,8}by|password)\s{1,8}(?:password\s{1,8})?)('[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z))"
)
_TOKENS = re.compile(r"\S+")


class Scrubber:
    """Masks the given secrets, and whatever looks like a secret, in texts that it cuts to a
    length."""

    def __init__(self, secrets: Iterable[str] = (), *, characters: int) -> None:
        self._characters = characters
        known = {form for secret in secrets for form in _forms(secret)}
        ordered = sorted(known, key=len, reverse=True)
        self._sure = tuple(s for s in ordered if len(s) >= SURE_CHARACTERS)
        self._short = tuple(s for s in ordered if WORD_CHARACTERS <= len(s) < SURE_CHARACTERS)
        words = [re.escape(s) for s in self._short]
        self._words = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)") if words else None
        self._margin = max(map(len, ordered), default=0)

    def __call__(self, text: str) -> str:
        """The text without secrets, cut to the length limit. Where the cut runs through a secret,
        the secret's beginning is masked too."""
        end = self._characters + self._margin
        is_cut = len(text) > end
        text = self._without_cut_one(text[:end]) if is_cut else text
        for secret in self._sure:
            text = text.replace(secret, MASK)
        if self._words is not None:
            text = self._words.sub(MASK, text)
        text = _NAMED.sub(_masked_value, _STATEMENT.sub(_masked_value, text))
        return _TOKENS.sub(_masked_url(is_cut, len(text)), text)[: self._characters]

    def _without_cut_one(self, text: str) -> str:
        """Masks the beginning of a secret at the text's end."""
        for secret in (*self._sure, *self._short):
            for length in range(len(secret) - 1, 0, -1):
                if text.endswith(secret[:length]):
                    return f"{text[:-length]}{MASK}"
        return text


def _forms(secret: str) -> set[str]:
    """The forms of a secret in connection strings, in addresses and in JSON."""
    return {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]} - {""}


def _masked_value(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}"


def _masked_url(is_cut: bool, length: int) -> Callable[[re.Match[str]], str]:
    """Masks the passwords of the addresses in a word. Where the text was cut in an address, what
    follows `user:` may be a password."""

    def masked(found: re.Match[str]) -> str:
        head, *rest = found[0].split("://")
        is_last = is_cut and found.end() == length
        parts = [_masked_part(part, is_last and part is rest[-1]) for part in rest]
        return "://".join([head, *parts])

    return masked


def _masked_part(part: str, is_open: bool) -> str:
    """Masks what follows `://`, up to the next one."""
    colon = part.find(":")
    if colon < 0 or "/" in part[:colon]:
        return part
    at = part.rfind("@")
    if at > colon:
        return f"{part[: colon + 1]}{MASK}{part[at:]}"
    return f"{part[: colon + 1]}{MASK}" if is_open else part
