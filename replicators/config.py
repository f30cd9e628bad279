"""A replicator's configuration, parsed once when it comes in. Pure; knows no database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from replicators.connectors import params, registry
from replicators.connectors.capabilities import TargetCapabilities
from replicators.connectors.filters.language import parse as parse_filter
from replicators.connectors.model.modes import CHOICES, FILTERED, Mode
from replicators.connectors.model.schema import EXCLUDABLE, UNSUPPORTED, TableId, TableSelection
from replicators.connectors.params import InvalidParams
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.source import SourcePlugin
from replicators.connectors.target import TargetPlugin
from replicators.invalid import InvalidConfig as InvalidConfig
from replicators.invalid import SecretAsked as SecretAsked
from replicators.options import Options as Options

NAME_LENGTH = 64
DESCRIPTION_LENGTH = 400
ROLES = ("source", "target")


def plugins_of(role: str) -> Mapping[str, SourcePlugin | TargetPlugin]:
    """Every plugin of that role by its name."""
    return registry.sources() if role == "source" else registry.targets()


def plugin_of(role: str, kind: str) -> SourcePlugin | TargetPlugin:
    """The plugin of that role; `config:unknown-kind` where there is none."""
    known = plugins_of(role)
    if kind not in known:
        shown = ", ".join(sorted(k for k, p in known.items() if not p.is_hidden))
        raise ReplicationError("config:unknown-kind", role=role, kind=str(kind)[:40], known=shown)
    return known[kind]


def source_plugin(kind: str) -> SourcePlugin:
    """The source plugin of that name; `config:unknown-kind` where there is none."""
    return plugin_of("source", kind)  # type: ignore[return-value]


def target_plugin(kind: str) -> TargetPlugin:
    """The target plugin of that name; `config:unknown-kind` where there is none."""
    return plugin_of("target", kind)  # type: ignore[return-value]


def target_can(target_kind: str) -> TargetCapabilities | None:
    """The target's abilities; None where its plugin does not exist any more."""
    target = plugins_of("target").get(target_kind)
    return target.capabilities if isinstance(target, TargetPlugin) else None


def can_filter(source_kind: str, target_kind: str) -> bool:
    """Whether a table's rows can be chosen by a filter: the source applies filters, and the target
    has a mode that follows rows which come and go by them."""
    target = target_can(target_kind)
    has_mode = target is None or not FILTERED.isdisjoint(target.modes)
    return has_mode and source_plugin(source_kind).capabilities.has_row_filters


def mode_of(target_kind: str, own: str, general: str) -> Mode:
    """The mode of a table: its own, or the replicator's. For a target with only one mode, that
    mode."""
    can = target_can(target_kind)
    modes = can.modes if can is not None else ()
    return modes[0] if len(modes) == 1 else Mode(own or general)


def suggested_options(target: TargetPlugin, params_object: Any) -> dict[str, Any]:
    """The defaults of options that this target, with these params, has of its own."""
    seconds = target.merge_seconds(params_object)
    return {} if seconds is None else {"merge_seconds": float(seconds)}


def suggested_for(target_kind: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The same from raw params; empty where they can't be read yet."""
    try:
        target, found = target_plugin(target_kind), parse_params("target", target_kind, raw)
    except (InvalidConfig, ReplicationError):
        return {}
    return suggested_options(target, found)


def parse_params(role: str, kind: str, data: Any, *, is_stored: bool = False) -> Any:
    """The params object of a connector; InvalidConfig with fields like `source.host`. `is_stored`:
    the params were checked when they were stored. Earlier versions took secrets inside a text;
    these must not stop a running replicator."""
    if not kind:
        raise InvalidConfig({f"{role}_kind": "is required"})
    try:
        plugin = plugin_of(role, kind)
    except ReplicationError as err:
        raise InvalidConfig({f"{role}_kind": err.message.text}) from err
    if not isinstance(data, Mapping):
        raise InvalidConfig({f"{role}_params": "must be an object"})
    if not is_stored:
        require_plain(role, kind, data)
    try:
        return params.parse(plugin.params, dict(data), is_stored=is_stored)
    except InvalidParams as err:
        raise InvalidConfig({f"{role}.{k}": v for k, v in err.errors.items()}) from err


def _table(raw: Any) -> TableSelection:
    if isinstance(raw, TableSelection):
        return raw
    if not isinstance(raw, Mapping):
        raise ValueError("each must be an object with schema and name")
    schema, name, columns = raw.get("schema"), raw.get("name"), raw.get("columns") or []
    if not isinstance(schema, str) or not isinstance(name, str) or not name:
        raise ValueError("each must have schema and name as text")
    if not isinstance(columns, (list, tuple)) or not all(isinstance(c, str) for c in columns):
        raise ValueError("columns must be a list of names")
    excluded = raw.get("excluded") or []
    if not isinstance(excluded, (list, tuple)) or not set(map(str, excluded)) <= set(EXCLUDABLE):
        raise ValueError(f"excluded may name {', '.join(EXCLUDABLE[:-1])} and {EXCLUDABLE[-1]}")
    kept = tuple(kind for kind in EXCLUDABLE if kind in excluded)
    mode, row_filter = _mode(raw.get("mode")), _filter(raw.get("filter"))
    unsupported = _unsupported(raw.get("unsupported"))
    return TableSelection(
        TableId(schema, name), tuple(columns), kept, mode, row_filter, unsupported
    )


def _mode(raw: Any) -> str:
    """A table's own mode; empty for the replicator's mode."""
    if raw in (None, "", *CHOICES):
        return str(raw or "")
    raise ValueError(f"mode must be one of {', '.join(CHOICES)}")


def _filter(raw: Any) -> str:
    """A table's row filter, as it was written. The assessment checks whether it fits the table."""
    text = (raw or "").strip() if isinstance(raw, (str, type(None))) else None
    if text is None:
        raise ValueError("filter must be a text")
    if text:
        parse_filter(text)
    return text


def _unsupported(raw: Any) -> str:
    """What a table does at an unsupported value; empty for the replicator's setting."""
    if raw in (None, "", *UNSUPPORTED):
        return str(raw or "")
    raise ValueError(f"unsupported must be {' or '.join(UNSUPPORTED)}")


def parse_tables(data: Any) -> tuple[TableSelection, ...]:
    """`[{"schema", "name", "columns", "excluded", "mode", "filter", "unsupported"}]` as selections;
    InvalidConfig where a table is wrong or comes twice."""
    if not isinstance(data, (list, tuple)):
        raise InvalidConfig({"tables": "must be a list"})
    tables = tuple(_named(raw) for raw in data)
    if not tables:
        raise InvalidConfig({"tables": "Choose at least one table."})
    if twice := [str(t) for t, count in Counter(t.id for t in tables).items() if count > 1]:
        raise InvalidConfig({"tables": f"{twice[0]} is named twice"})
    return tables


def _named(raw: Any) -> TableSelection:
    """One selection. An error names the table, since there may be thousands."""
    try:
        return _table(raw)
    except ValueError as err:
        schema, name = (
            (raw.get("schema"), raw.get("name")) if isinstance(raw, Mapping) else ("", "")
        )
        if isinstance(schema, str) and isinstance(name, str) and name:
            raise InvalidConfig({"tables": f"{TableId(schema, name)}: {err}"}) from err
        raise InvalidConfig({"tables": str(err)}) from err


def tables_to_json(tables: Iterable[TableSelection]) -> list[dict[str, Any]]:
    """The form in which models and REST keep selections."""
    return [
        {
            "schema": t.id.schema,
            "name": t.id.name,
            "columns": list(t.columns),
            "excluded": list(t.excluded),
            "mode": str(t.mode),
            "filter": t.filter,
            "unsupported": t.unsupported,
        }
        for t in tables
    ]


def parse_name(raw: Any) -> str:
    """The name, stripped; InvalidConfig where it is empty or too long."""
    name = raw.strip() if isinstance(raw, str) else ""
    if not name:
        raise InvalidConfig({"name": "is required"})
    if len(name) > NAME_LENGTH:
        reported = f"must be at most {NAME_LENGTH} characters; it has {len(name)}"
        raise InvalidConfig({"name": reported})
    if not name.isprintable():
        raise InvalidConfig({"name": "must have printable characters only"})
    return name


def parse_description(raw: Any) -> str:
    """The description; InvalidConfig where it is too long."""
    text = str(raw or "")
    if len(text) > DESCRIPTION_LENGTH:
        reported = f"must be at most {DESCRIPTION_LENGTH} characters; it has {len(text)}"
        raise InvalidConfig({"description": reported})
    return text


@dataclass(frozen=True, slots=True)
class ReplicatorConfig:
    """The whole configuration of a replicator. `source_params` and `target_params` are the plugins'
    params objects."""

    name: str
    source_kind: str
    source_params: Any
    target_kind: str
    target_params: Any
    tables: tuple[TableSelection, ...]
    options: Options = field(default_factory=Options)
    description: str = ""
    replicator: str = ""

    @property
    def source(self) -> SourcePlugin:
        return source_plugin(self.source_kind)

    @property
    def target(self) -> TargetPlugin:
        return target_plugin(self.target_kind)

    @classmethod
    def parse(
        cls, data: Mapping[str, Any], *, replicator: str = "", is_stored: bool = False
    ) -> Self:
        """From the fields of `Replicator` or `Draft`, with secrets in clear inside the params.
        InvalidConfig names every fault at once. `is_stored`: see `parse_params`."""
        values: dict[str, Any] = {}
        errors: dict[str, str] = {}
        parsers = {
            "name": lambda: parse_name(data.get("name")),
            "description": lambda: parse_description(data.get("description")),
            "source_params": lambda: _params("source", data, is_stored),
            "target_params": lambda: _params("target", data, is_stored),
            "tables": lambda: parse_tables(data.get("tables") or []),
            "options": lambda: _options(data, values.get("target_params")),
        }
        for name, parse in parsers.items():
            try:
                values[name] = parse()
            except InvalidConfig as err:
                errors |= err.errors
        if errors:
            raise InvalidConfig(errors)
        return cls(
            source_kind=data["source_kind"],
            target_kind=data["target_kind"],
            replicator=replicator,
            **values,
        )


def _params(role: str, data: Mapping[str, Any], is_stored: bool) -> Any:
    kind = data.get(f"{role}_kind") or ""
    values = data.get(f"{role}_params") or {}
    return parse_params(role, kind if isinstance(kind, str) else "", values, is_stored=is_stored)


def _options(data: Mapping[str, Any], target_params: Any) -> Options:
    """The options, with the target's own defaults where its params could be read."""
    found = {}
    if target_params is not None:
        found = suggested_options(target_plugin(data["target_kind"]), target_params)
    return Options.parse(data.get("options"), found)


def place_params(kind: str) -> dict[str, Any]:
    """The parameters of a target that say where its tables are, with their defaults: every text
    except secrets, user names (`user`, `catalog_user`) and those that are movable. They can't be
    changed later, since the tables would be written anew in another place."""
    return {
        p.name: p.default
        for p in params.describe(target_plugin(kind).params)
        if p.kind is str and not p.secret and not p.is_movable and not p.name.endswith("user")
    }


def split_secrets(
    role: str, kind: str, data: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what may be stored in clear, the secrets) of raw params."""
    names = params.secret_names(plugin_of(role, kind).params)
    return (
        {k: v for k, v in data.items() if k not in names},
        {k: v for k, v in data.items() if k in names and v not in (None, "")},
    )


def with_stored(
    role: str, kind: str, data: Mapping[str, Any], stored: Mapping[str, Any]
) -> dict[str, Any]:
    """`data`, where a secret that came back as the mask keeps its stored value."""
    return params.unmasked(plugin_of(role, kind).params, dict(data), dict(stored))


def require_plain(role: str, kind: str, data: Mapping[str, Any]) -> None:
    """InvalidConfig where a text that is stored and shown in clear holds a secret. The error says
    where the secret belongs."""
    found = params.revealing(plugin_of(role, kind).params, dict(data))
    if found:
        raise InvalidConfig({f"{role}.{name}": text for name, text in found.items()})


def require_secrets(
    role: str, kind: str, before: Mapping[str, Any], after: Mapping[str, Any], kept: Iterable[str]
) -> None:
    """`SecretAsked` where stored secrets are kept (their names) although `after` would send them to
    another place than `before`."""
    names = sorted(kept)
    moved = params.moved(plugin_of(role, kind).params, dict(before), dict(after)) if names else ()
    if moved:
        labels = " and ".join(p.label for p in moved)
        text = f"has to be entered again: {labels} {'was' if len(moved) == 1 else 'were'} changed"
        errors = {f"{role}.{name}": text for name in names}
        raise SecretAsked(errors, tuple(f"{role}.{p.name}" for p in moved))


def plain(values: Any) -> dict[str, Any]:
    """A params object as raw params."""
    return asdict(values)


def masked(role: str, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Raw params with every secret replaced by the mask."""
    return params.masked(plugin_of(role, kind).params, dict(data))
