"""What is opened and must be closed."""

from __future__ import annotations

from typing import Protocol, Self


class Closing(Protocol):
    """A context manager that closes."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
