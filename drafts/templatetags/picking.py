"""Small components of the wizard's pages, without product logic."""

from __future__ import annotations

import json
from typing import Any

from django import template

register = template.Library()

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@register.filter
def size(value: Any) -> str:
    """Bytes as text such as `1.2 GB`; a dash if unknown."""
    if value is None:
        return "–"
    number = float(value)
    for unit in _UNITS:
        if number < 1000 or unit == _UNITS[-1]:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError("the last unit takes everything")


@register.simple_tag
def packed(*parts: str) -> str:
    """Names as one form value. A table is `["schema", "name"]`."""
    return json.dumps(parts)
