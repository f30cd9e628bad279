"""A target's types for neutral types, as a table. Asks no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from replicators.connectors.model.schema import Column
from replicators.connectors.model.types import (
    Array,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Unsupported,
    Uuid,
)
from replicators.connectors.target import Fit, FitKind

Rule = str | Fit
"""A type that loses nothing, or a type and how values change."""


def widened(native: str, reason: str = "") -> Fit:
    """Nothing is lost, but the type says less than the source's."""
    return Fit(FitKind.WIDENED, native, reason)


def as_text(native: str, reason: str = "kept as text") -> Fit:
    """Text takes the place of another type."""
    return widened(native, reason)


def integers(signed: Mapping[int, Rule], unsigned: Mapping[int, Rule]) -> Callable[[Int], Rule]:
    """The types of integers by their bits; a number of bits that is not there has no type."""

    def rule(kind: Int) -> Rule:
        found = (signed if kind.signed else unsigned).get(kind.bits)
        missing = Fit(FitKind.UNSUPPORTED, "", f"there is no integer of {kind.bits} bits")
        return missing if found is None else found

    return rule


def same_items(kind: Array, items: Fit) -> Fit:
    """A list of the items' type, which changes them as that type does."""
    return Fit(items.kind, f"ARRAY<{items.native}>", items.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeTable:
    """A rule for each neutral type; a function where the rule depends on the type's own numbers.
    `floats`: by bits. `moment`: a timestamp with a zone. `array`: of a list and its items' `Fit`,
    which has a type."""

    boolean: Rule
    integer: Callable[[Int], Rule]
    decimal: Callable[[Decimal], Rule]
    floats: Mapping[int, Rule]
    text: str
    binary: Rule | Callable[[Bytes], Rule]
    date: Rule
    time: Rule
    timestamp: Rule
    moment: Rule
    json: Rule
    uuid: Rule
    enum: Rule
    array: Callable[[Array, Fit], Rule]

    def fit(self, kind: LogicalType) -> Fit:
        """The type for a neutral type, and how its values change."""
        rule = self._rule(kind)
        return rule if isinstance(rule, Fit) else Fit(FitKind.EXACT, rule)

    def native(self, column: Column) -> str:
        """The text of a column's type, as CREATE TABLE has it."""
        return self.fit(column.type).native

    def _rule(self, kind: LogicalType) -> Rule:  # noqa: C901 - one line for each type
        match kind:
            case Boolean():
                return self.boolean
            case Int():
                return self.integer(kind)
            case Decimal():
                return self.decimal(kind)
            case Float(bits=bits):
                return self.floats[bits]
            case String():
                return self.text
            case Bytes():
                return self.binary(kind) if callable(self.binary) else self.binary
            case Date():
                return self.date
            case Time():
                return self.time
            case Timestamp(zone=zone):
                return self.moment if zone else self.timestamp
            case Json():
                return self.json
            case Uuid():
                return self.uuid
            case Enum():
                return self.enum
            case Array(of=of):
                items = self.fit(of)
                return items if items.kind is FitKind.UNSUPPORTED else self.array(kind, items)
            case Unsupported(native=native):
                return Fit(FitKind.UNSUPPORTED, "", f"type {native} is not known")
        raise ValueError(f"no fit for {kind}")
