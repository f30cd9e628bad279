"""Parameters of a connector, declared once. The form, the serializer, the JSON schema, masking and
the docs are made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any

from typing_extensions import TypeVar

from replicators.connectors.addresses import MASK as MASK
from replicators.connectors.addresses import hidden, holds_secret

LONGEST = 4096
"""The most characters of a text that is no secret."""
T = TypeVar("T")
P = TypeVar("P", default=Any)
"""The params of a plugin. A plugin of any kind is `SourcePlugin` or `TargetPlugin` alone."""
P_contra = TypeVar("P_contra", contravariant=True, default=Any)


class InvalidParams(ValueError):
    """`errors` maps a parameter's name to a sentence saying what is wrong with it."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{k}: {v}" for k, v in errors.items()))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Param:
    """How a parameter is shown and checked."""

    name: str
    label: str
    kind: type
    help: str = ""
    default: Any = None
    required: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    note: str = ""
    addresses: bool = False
    secrets_go: str = ""
    check: Callable[[str], str] | None = None
    is_movable: bool = False
    group: str = ""
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


def param(
    label: str,
    *,
    help: str = "",
    default: Any = MISSING,
    secret: bool = False,
    choices: tuple[str, ...] = (),
    minimum: int | None = None,
    maximum: int | None = None,
    note: str = "",
    addresses: bool = False,
    secrets_go: str = "",
    check: Callable[[str], str] | None = None,
    is_movable: bool = False,
    group: str = "",
) -> Any:
    """A dataclass field with its metadata. Without a default it is required. Secrets stay out of
    `repr`. `note` stands in forms in place of "optional", for a parameter that is only sometimes
    needed. `addresses`: the parameter says where the secrets are sent, how safely, or whose they
    are; after it changes, the secrets must be entered again. `secrets_go`: where a secret belongs
    that somebody writes into this text, if not into a field. `check` returns what is wrong with a
    text, as a sentence; empty where nothing is. `is_movable`: a target's text that may be changed
    later, since the same tables are found under the new value or not at all. `group`: the heading
    under which a form shows the parameter; those without one come first."""
    metadata = {
        "label": label,
        "help": help,
        "secret": secret,
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
        "note": note,
        "addresses": addresses,
        "secrets_go": secrets_go,
        "check": check,
        "is_movable": is_movable,
        "group": group,
    }
    if default is MISSING:
        return field(metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


def _describe(f: Field[Any]) -> Param:
    kinds: dict[str, type] = {"str": str, "int": int, "bool": bool}
    kind = kinds.get(f.type.__name__ if isinstance(f.type, type) else str(f.type))
    if kind is None:
        raise TypeError(f"the parameter {f.name!r} is none of {', '.join(kinds)}")
    required = f.default is MISSING
    return Param(
        f.name, kind=kind, default=None if required else f.default, required=required, **f.metadata
    )


def describe(cls: type) -> tuple[Param, ...]:
    """The parameters of a params dataclass, in order. Its `shown_where` says where a form shows a
    parameter, or a group of them: where each parameter that is named there begins with one of the
    texts. Elsewhere it has no meaning."""
    shown: Mapping[str, Mapping[str, tuple[str, ...]]] = getattr(cls, "shown_where", {})
    found = (_describe(f) for f in fields(cls))
    return tuple(
        replace(p, where=tuple((shown.get(p.name) or shown.get(p.group, {})).items()))
        for p in found
    )


_TRUE, _FALSE = frozenset({"true", "on", "1", "yes"}), frozenset({"false", "off", "0", "no", ""})


def _flag(raw: Any) -> bool:
    text = str(raw).lower()
    if text not in _TRUE | _FALSE:
        raise ValueError("must be true or false")
    return text in _TRUE


def _number(p: Param, raw: Any) -> int:
    try:
        number = int("" if isinstance(raw, bool) else str(raw).strip())
    except ValueError:
        raise ValueError("must be a whole number") from None
    if p.minimum is not None and number < p.minimum:
        raise ValueError(f"must be at least {p.minimum}")
    if p.maximum is not None and number > p.maximum:
        raise ValueError(f"must be at most {p.maximum}")
    return number


def _text(p: Param, raw: Any) -> str:
    if not isinstance(raw, str):
        raise ValueError("must be text")
    text = raw if p.secret else raw.strip()
    if "\x00" in text:
        raise ValueError("must not contain a NUL character")
    if p.choices and text not in p.choices:
        raise ValueError(f"must be one of {', '.join(p.choices)}")
    return text


def _value(p: Param, raw: Any) -> Any:
    if p.kind is bool:
        return _flag(raw)
    return _number(p, raw) if p.kind is int else _text(p, raw)


def parse(cls: type[T], data: dict[str, Any], *, is_stored: bool = False) -> T:
    """Check `data` and make the params object. InvalidParams names every fault at once. Data that
    `is_stored` passed `Param.check` when it was stored, or was stored before that check existed."""
    errors: dict[str, str] = {}
    values: dict[str, Any] = {}
    known = {p.name: p for p in describe(cls)}
    for name in data:
        if name not in known:
            errors[name] = "is not a parameter of this connector"
    for p in known.values():
        raw = data.get(p.name)
        if raw is None or (raw == "" and p.kind is not bool):
            if p.required:
                errors[p.name] = "is required"
            else:
                values[p.name] = p.default
            continue
        try:
            values[p.name] = _value(p, raw)
            if p.check and not is_stored and (fault := p.check(values[p.name])):
                raise ValueError(fault)
        except ValueError as err:
            errors[p.name] = str(err)
    if errors:
        raise InvalidParams(errors)
    return cls(**values)


def secret_names(cls: type) -> frozenset[str]:
    """The names of the secret parameters."""
    return frozenset(p.name for p in describe(cls) if p.secret)


def moved(cls: type, before: dict[str, Any], after: dict[str, Any]) -> tuple[Param, ...]:
    """The parameters that secrets are bound to (`addresses`) and whose used value is different in
    `after`. Parameters that are missing or faulty there are left out, since nothing can be reached
    with them."""
    found = ((p, _used(p, before), _used(p, after)) for p in describe(cls) if p.addresses)
    return tuple(p for p, was, now in found if now not in {was, None})


def _used(p: Param, data: dict[str, Any]) -> Any:
    """The value that would be used; None where there is none."""
    raw = data.get(p.name)
    if raw is None or (raw == "" and p.kind is not bool):
        return p.default
    try:
        return _value(p, raw)
    except ValueError:
        return None


def revealing(cls: type, data: dict[str, Any]) -> dict[str, str]:
    """The faults of texts, by parameter, that hold a secret although they would be stored and shown
    in clear. The faults do not repeat the texts."""
    found = {}
    known = describe(cls)
    fields_for_it = " or ".join(p.label for p in known if p.secret)
    for p in known:
        text = data.get(p.name)
        if p.secret or not isinstance(text, str):
            continue
        if len(text) > LONGEST:
            found[p.name] = f"must be at most {LONGEST} characters"
        elif holds_secret(text):
            place = p.secrets_go or (f"enter it in {fields_for_it}" if fields_for_it else "")
            found[p.name] = f"must not contain a password or key{'; ' if place else ''}{place}"
    return found


def masked(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    """`data` with every secret that is set replaced by `MASK`, also a secret that was stored inside
    another text."""
    secrets = secret_names(cls)
    return {k: (MASK if k in secrets and v else cleared(v)) for k, v in data.items()}


def cleared(value: Any) -> Any:
    """A value that is no secret, with any secret in it removed."""
    return hidden(value) if isinstance(value, str) else value


def unmasked(cls: type, data: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """`data`, where each value that came back masked, as it was shown, keeps its stored value."""
    secrets = secret_names(cls)
    return {
        k: (stored.get(k, "") if _came_back(k in secrets, v, stored.get(k)) else v)
        for k, v in data.items()
    }


def _came_back(is_secret: bool, value: Any, stored: Any) -> bool:
    if is_secret or not isinstance(value, str) or MASK not in value:
        return is_secret and value == MASK
    return bool(value == cleared(stored))
