"""Reads a body as JSON; refuses texts that could be stored but never shown again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

_NUL = "A text must not contain a NUL character."
_HALF = "A text must not contain half of a surrogate pair."
_DEEP = "The body is nested too deeply."


class StrictJsonParser(JSONParser):
    """DRF's parser, which also refuses texts that no answer can hold (half of a surrogate pair),
    texts that PostgreSQL can't store (NUL), and bodies that are nested too deeply to read."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
            json.dumps(data, ensure_ascii=False).encode()
        except RecursionError as err:
            raise ParseError(_DEEP) from err
        except UnicodeEncodeError as err:
            raise ParseError(_HALF) from err
        if _has_nul(data):
            raise ParseError(_NUL)
        return data


def _has_nul(data: Any) -> bool:
    if isinstance(data, str):
        return "\x00" in data
    if isinstance(data, dict):
        return any("\x00" in name or _has_nul(value) for name, value in data.items())
    return isinstance(data, list) and any(map(_has_nul, data))
