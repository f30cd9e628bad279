"""The error of a faulty configuration, and its subclass that asks for a secret again."""

from __future__ import annotations


class InvalidConfig(ValueError):
    """`errors` maps a field (`name`, `source.host`, `tables`, `options.seal_seconds`) to a
    sentence."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{k}: {v}" for k, v in errors.items()))
        self.errors = errors


class SecretAsked(InvalidConfig):
    """Stored secrets would be sent to another place than the one for which they were entered.
    `moved` names what is different: `source.host`. `errors` names the secrets that must be entered
    again."""

    def __init__(self, errors: dict[str, str], moved: tuple[str, ...]) -> None:
        super().__init__(errors)
        self.moved = moved
