"""The base of everything that is opened and must be closed."""

from __future__ import annotations

from typing import Protocol, Self


class Closing(Protocol):
    """A context manager that closes. A class with this base writes only `close`."""

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
