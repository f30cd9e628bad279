"""Small components of the pages: icons, numbers, times, texts. No logic of the product."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from replicators import audit_reading
from replicators.audit import AuditEntry
from replicators.connectors.model.modes import Mode, text_of
from replicators.connectors.problems.problem import Severity

register = template.Library()
_BOUNDS = {"exact": "exactly", "at_least": "at least", "at_most": "at most"}

THEME_COOKIE = "theme"
NOTICES = {
    Severity.ERROR: ("red", "alert-circle"),
    Severity.WARNING: ("amber", "alert-triangle"),
    Severity.INFO: ("blue", "info-circle"),
}
"""Colour and icon of a problem."""
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_AGES = ((86400, "d"), (3600, "h"), (60, "min"))


@cache
def _svg(name: str) -> str:
    path = finders.find(f"vendor/icons/{name}.svg")
    if not path:
        return ""
    text = Path(str(path)).read_text()
    body = text[text.index(">") + 1 : text.rindex("</svg>")]
    body = re.sub(r'<path stroke="none"[^>]*/>', "", re.sub(r"\s+", " ", body))
    return (
        f'<svg class="icon icon-tabler-{name}" viewBox="0 0 24 24" fill="none" '
        'stroke="currentColor" '
        'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" '
        f'focusable="false">{body}</svg>'
    )


@register.simple_tag
def icon(name: str, otherwise: str = "") -> SafeString:
    """A Tabler icon as inline SVG. It is hidden from screen readers, which read the word beside it.
    `otherwise` replaces an icon that is not vendored, which a plugin may name."""
    return mark_safe(_svg(name) or _svg(otherwise))  # noqa: S308  the text comes from our own static files


@register.filter
def compact(value: Any) -> SafeString | str:
    """A number as `1.2 M`, with the exact one on hover; a dash where it is unknown."""
    if value is None:
        return "–"
    number = float(value)
    exact = f"{value:,}"
    for size, unit in _UNITS:
        if abs(number) >= size:
            short = f"{number / size:.1f}".removesuffix(".0")
            return format_html('<span title="{}">{}&nbsp;{}</span>', exact, short, unit)
    return exact


@register.filter
def duration(seconds: Any) -> str:
    """Seconds as `0.4 s`, `12 s`, `3 min`, `2 h`, `4 d`; a dash where they are unknown."""
    if seconds is None:
        return "–"
    value = max(0.0, float(seconds))
    if value < 10:
        return f"{value:.1f} s".replace("0.0 s", "0 s")
    for at, (size, unit) in enumerate(_AGES):
        if value >= size * (1 if unit != "min" else 2):
            return _with_rest(value, size, unit, _AGES[at + 1 :])
    return f"{value:.0f} s"


def _with_rest(value: float, size: float, unit: str, smaller: Sequence[tuple[float, str]]) -> str:
    """`1 d 12 h`, `1 h 30 min`: a small number of units also shows its rest. The result is never
    more than the value."""
    whole, rest = divmod(value, size)
    if whole < 4 and smaller and rest >= smaller[0][0]:
        return f"{whole:.0f} {unit} {rest // smaller[0][0]:.0f} {smaller[0][1]}"
    return f"{whole:.0f} {unit}"


@register.filter
def ago(value: datetime | str | None) -> SafeString | str:
    """A moment as relative time, with UTC in the title. app.js updates it."""
    moment = parse_datetime(value) if isinstance(value, str) else value
    if moment is None:
        return "never"
    seconds = max(0.0, (timezone.now() - moment).total_seconds())
    text = "just now" if seconds < 5 else f"{seconds:.0f} s ago"
    for size, unit in _AGES:
        if seconds >= size:
            text = f"{int(seconds // size)} {unit} ago"
            break
    return format_html(
        '<time datetime="{}" title="{} UTC" data-ago>{}</time>',
        moment.isoformat(),
        f"{moment:%Y-%m-%d %H:%M:%S}",
        text,
    )


@register.filter
def prose(text: str | None) -> SafeString:
    """A text of ours, with the parts in backticks as code."""
    escaped = str(conditional_escape(text or ""))
    return mark_safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))  # noqa: S308  escaped above


@register.filter
def breakable(name: str) -> SafeString:
    """A name that may be broken after its underscores, dots and hyphens, rather than within a
    word."""
    escaped = str(conditional_escape(name))
    return mark_safe(re.sub(r"([_.-])(?=[^_.-])", r"\1<wbr>", escaped))  # noqa: S308  escaped above


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> SafeString | str:
    """The attribute of <html> for the chosen theme; none where the system decides."""
    request: HttpRequest | None = context.get("request")
    chosen = request.COOKIES.get(THEME_COOKIE, "") if request else ""
    chosen = context.get("forced_theme") or chosen
    return format_html('data-bs-theme="{}"', chosen) if chosen in {"light", "dark"} else ""


@register.inclusion_tag("components/notice.html")
def problem(found: dict[str, Any], href: str = "", action: str = "") -> dict[str, Any]:
    """A problem or an error: title, what happened, what to do, and a link to where that is done."""
    colour, icon_name = NOTICES[found.get("severity", Severity.ERROR)]
    return {
        "colour": colour,
        "icon_name": icon_name,
        "title": found.get("title", ""),
        "text": found.get("message", ""),
        "suggestion": found.get("suggestion", ""),
        "impact": found.get("impact", ""),
        "code": found.get("code", ""),
        "since": found.get("since"),
        "href": href,
        "action": action,
    }


@register.filter
def mode_label(value: str) -> str:
    """The name of a mode."""
    return text_of(Mode(value)).label


@register.filter
def bound(accuracy: str) -> str:
    """How exact an estimate is, in words before its number."""
    return _BOUNDS.get(accuracy, "about")


@register.filter
def action_label(act: str) -> str:
    """The words of an action of the audit trail."""
    return audit_reading.action_label(act)


@register.filter
def differences(entry: AuditEntry) -> list[tuple[str, str | None, str | None]]:
    """Name, old and new value of everything in an entry; None where there is no value."""
    names = dict.fromkeys([*entry.old_values, *entry.new_values])
    old, new = entry.old_values, entry.new_values
    return [
        (n, _reported(old[n]) if n in old else None, _reported(new[n]) if n in new else None)
        for n in names
    ]


def _reported(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, str):
        return value or "(empty)"
    if isinstance(value, list):
        return ", ".join(_reported(v) for v in value) or "(none)"
    if isinstance(value, dict):
        return "; ".join(f"{k}: {_reported(v)}" for k, v in value.items()) or "(whole)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(empty)" if value is None else str(value)
