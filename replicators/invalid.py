"""The one error of a configuration that can't be taken."""

from __future__ import annotations


class InvalidConfig(ValueError):
    """`errors` maps a field (`name`, `source.host`, `tables`, `options.seal_seconds`) to a sentence."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{k}: {v}" for k, v in errors.items()))
        self.errors = errors
