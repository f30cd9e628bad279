"""Parameters of the in-memory target."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.params import param


@dataclass(frozen=True, slots=True)
class MemoryParams:
    """`fault` makes the target fail on purpose."""

    namespace: str = param("Namespace", default="shop", addresses=True)
    token: str = param("Token", secret=True, default="")
    fault: str = param("Fault", default="none", choices=("none", "unreachable", "taken"))
