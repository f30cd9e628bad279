"""What is opened and must be closed."""

from __future__ import annotations

from typing import Protocol, Self


class Closing(Protocol):
    """A context manager that closes. A class that names it as its base writes `close` alone."""

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
