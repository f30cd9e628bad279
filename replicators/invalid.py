"""The error of a configuration that can't be taken, and the kind of it that asks for a secret
again."""

from __future__ import annotations


class InvalidConfig(ValueError):
    """`errors` maps a field (`name`, `source.host`, `tables`, `options.seal_seconds`) to a
    sentence."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{k}: {v}" for k, v in errors.items()))
        self.errors = errors


class SecretAsked(InvalidConfig):
    """Stored secrets would go to another place than the one they were entered for. `moved` names
    what is different: `source.host`; `errors` names the secrets that have to be entered again."""

    def __init__(self, errors: dict[str, str], moved: tuple[str, ...]) -> None:
        super().__init__(errors)
        self.moved = moved
