"""Parameters of the in-memory source."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.params import param

FAULTS = ("none", "unreachable", "login", "crash")


@dataclass(frozen=True, slots=True)
class MemoryParams:
    """`fault` makes the source behave badly on purpose."""

    host: str = param("Host", help="Any name.", addresses=True)
    password: str = param("Password", secret=True, default="")
    port: int = param("Port", default=1, minimum=1, maximum=65535, addresses=True)
    fault: str = param("Fault", default="none", choices=FAULTS)
