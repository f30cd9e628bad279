"""docs/connectors.md: every field of the capabilities has words, and odd values stay inside their
cell."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest

from replicators.config import plugin_of
from replicators.connectors import registry
from replicators.connectors.capabilities import Delivery, SourceCapabilities, TargetCapabilities
from replicators.connectors.params import describe, param
from replicators.connectors.target import Fit, FitKind, TargetPlugin
from runners.management import connectors


def test_every_capability_has_words() -> None:
    known = {f.name for kind in (SourceCapabilities, TargetCapabilities) for f in fields(kind)}
    assert known - set(connectors.WORDS) == set()


@dataclass(frozen=True, slots=True)
class OddParams:
    key: str = param("Key", secret=True, default="")
    side: str = param("Left | right", choices=("left", "right"), default="left")
    is_big: bool = param("Big", default=False, help="Two\nlines.")


def odd(kind: FitKind) -> TargetPlugin:
    can = TargetCapabilities(delivery=Delivery.AT_LEAST_ONCE)
    plain = registry.targets()["memory"]
    return replace(
        plain,
        name="odd",
        params=OddParams,
        capabilities=can,
        fit=lambda _: Fit(kind, "N|M", "why not"),
        is_hidden=False,
    )


@pytest.mark.parametrize(
    ("kind", "reported"),
    [
        (FitKind.LOSSY, "| JSON | `N\\|M` (loses something: why not) |"),
        (FitKind.UNSUPPORTED, "| JSON | no place: why not |"),
        (FitKind.EXACT, "| JSON | `N\\|M` |"),
    ],
)
def test_what_a_plugin_says_stands_in_its_cell(
    kind: FitKind, reported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = odd(kind)
    monkeypatch.setattr(registry, "targets", lambda: {"odd": plugin})
    lines = connectors.markdown().splitlines()
    assert reported in lines
    assert f"| Delivery | At least once. {Delivery.AT_LEAST_ONCE.about} |" in lines
    assert "| `key` | Key | text | none | Secret: it is kept encrypted and never shown. |" in lines
    assert "| `side` | Left \\| right | `left`, `right` | `left` |  |" in lines
    assert "| `is_big` | Big | yes or no | `no` | Two lines. |" in lines


def test_a_hidden_plugin_is_not_in_the_docs() -> None:
    assert "### Memory" not in connectors.markdown()


@pytest.mark.parametrize(
    ("role", "name"),
    [("source", n) for n in registry.sources()] + [("target", n) for n in registry.targets()],
)
def test_fields_are_shown_by_values_of_fields_that_are_there(role: str, name: str) -> None:
    """Guards `shown_where` against a name that was changed: its field would be in sight always, or
    never."""
    params = plugin_of(role, name).params
    found = describe(params)
    known = {p.name for p in found} | {p.group for p in found}
    assert set(getattr(params, "shown_where", {})) <= known
    by_name = {p.name: p for p in found}
    for p in found:
        assert p.name not in dict(p.where)
        for other, begins in p.where:
            choices = by_name[other].choices
            assert not choices or set(begins) <= set(choices)
