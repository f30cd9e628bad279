"""Takes secrets out of texts of a log, in time that grows with their length only. Knows no
database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, quote_plus

from replicators.connectors.params import MASK

SURE_CHARACTERS = 8
"""A secret of so many characters is masked wherever it stands; a shorter one may be a part of any
word."""
WORD_CHARACTERS = 4
"""A secret of so many is masked where it is a word; a shorter one only in the places below."""
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
    """Masks these secrets, and what looks like one, in texts that it cuts to a length."""

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
        """The text, at most so long, without secrets; also not with the beginning of one that it
        was cut in."""
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
        """Masks the beginning of a secret where the text ends."""
        for secret in (*self._sure, *self._short):
            for length in range(len(secret) - 1, 0, -1):
                if text.endswith(secret[:length]):
                    return f"{text[:-length]}{MASK}"
        return text


def _forms(secret: str) -> set[str]:
    """A secret as it stands in connection strings, in addresses and in JSON."""
    return {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]} - {""}


def _masked_value(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}"


def _masked_url(is_cut: bool, length: int) -> Callable[[re.Match[str]], str]:
    """Masks the passwords of the addresses in a word. In one that the text was cut in, what follows
    `user:` may be one."""

    def masked(found: re.Match[str]) -> str:
        head, *rest = found[0].split("://")
        is_last = is_cut and found.end() == length
        parts = [_masked_part(part, is_last and part is rest[-1]) for part in rest]
        return "://".join([head, *parts])

    return masked


def _masked_part(part: str, is_open: bool) -> str:
    """What follows `://`, up to the next one."""
    colon = part.find(":")
    if colon < 0 or "/" in part[:colon]:
        return part
    at = part.rfind("@")
    if at > colon:
        return f"{part[: colon + 1]}{MASK}{part[at:]}"
    return f"{part[: colon + 1]}{MASK}" if is_open else part
