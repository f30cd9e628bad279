"""Reads a body as JSON; refuses what could be stored but never shown again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

MOST_BYTES = 20_000_000
"""Far above the definition of a replicator with every table and column named; it is read whole, and held several times over."""
_NUL = "A text must not contain a NUL character."
_HALF = "A text must not contain half of a surrogate pair."
_DEEP = "The body is nested too deeply."


class BodyTooLarge(APIException):
    """Answered before anything of the body is read."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body-too-large"
    default_detail = f"The body is larger than {MOST_BYTES // 1_000_000} MB. Send it in parts."


class StrictJsonParser(JSONParser):
    """DRF's, without texts that no answer can be written with (half of a surrogate pair), that PostgreSQL can't keep (NUL), or
    that are nested deeper than they can be read. `BodyTooLarge` above `MOST_BYTES`, by its own word: servers read no further."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        request = (parser_context or {}).get("request")
        if request is not None and int(request.META.get("CONTENT_LENGTH") or 0) > MOST_BYTES:
            raise BodyTooLarge
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
