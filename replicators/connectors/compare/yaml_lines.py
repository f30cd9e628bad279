"""YAML with the line of every value, so that a fault can name it. Faults are collected: one look
shows them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import yaml

E = TypeVar("E", bound=StrEnum)


@dataclass(slots=True)
class Faults:
    """What is wrong, with its line."""

    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Note a fault."""
        if (line, text) not in self.found:
            self.found.append((line, text))

    def __str__(self) -> str:
        return "; ".join(f"line {line}: {text}" for line, text in sorted(self.found))


@dataclass(frozen=True, slots=True)
class Value:
    """A value and its line. Reading it as something that it is not notes a fault and gives an empty
    value of that type."""

    node: yaml.Node
    name: str
    faults: Faults

    @property
    def line(self) -> int:
        return int(self.node.start_mark.line) + 1

    def fault(self, text: str) -> None:
        """Note a fault of this value."""
        self.faults.add(self.line, f"`{self.name}` {text}")

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def mapping(self, known: Iterable[str] | None = None) -> Mapping[str, Value]:
        """The entries by name. `known`: the names that are allowed."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fault("must have entries of the form `name: value`")
            return {}
        found: dict[str, Value] = {}
        allowed = None if known is None else tuple(known)
        for key, value in self.node.value:
            line, name = int(key.start_mark.line) + 1, str(key.value)
            if name in found:
                self.faults.add(line, f"`{name}` stands twice")
            elif allowed is not None and name not in allowed:
                self.faults.add(line, f"`{name}` is unknown; known are {', '.join(allowed)}")
            else:
                found[name] = Value(value, name, self.faults)
        return found

    def text(self) -> str:
        """A single value as text."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag.endswith(":null"):
            self.fault("must be a text")
            return ""
        return str(self.node.value)

    def texts(self) -> tuple[str, ...]:
        """A list of texts, or one text."""
        if isinstance(self.node, yaml.SequenceNode):
            return tuple(Value(n, self.name, self.faults).text() for n in self.node.value)
        return (self.text(),)

    def flag(self) -> bool:
        """true or false."""
        if isinstance(self.node, yaml.ScalarNode) and self.node.tag.endswith(":bool"):
            return str(self.node.value).lower() in ("true", "yes", "on")
        self.fault("must be true or false")
        return False

    def number(self, minimum: float, maximum: float) -> float:
        """A number within bounds."""
        try:
            found = float(self.text())
        except ValueError:
            found = float("nan")
        if not minimum <= found <= maximum:
            self.fault(f"must be a number from {minimum:g} to {maximum:g}")
            return minimum
        return found

    def choice(self, of: type[E]) -> E | None:
        """One of the enum's values; None where it is none of them."""
        found = self.text()
        if found in list(of):
            return of(found)
        self.fault(f"must be one of {', '.join(of)}")
        return None


def parsed(text: str, name: str, faults: Faults) -> Value | None:
    """The document's value; None, with a fault noted, where it is no YAML."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        line = mark.line + 1 if mark else 1
        faults.add(line, f"this is no YAML: {err.problem or 'it can not be read'}")
        return None
    except yaml.YAMLError:
        faults.add(1, "this is no YAML: it has characters that are not allowed")
        return None
    if node is None:
        faults.add(1, "the file is empty")
        return None
    return Value(node, name, faults)
