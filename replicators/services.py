"""Makes and changes replicators. Only this module writes their rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F, Model

from replicators import audit
from replicators import config as configs
from replicators.config import InvalidConfig, ReplicatorConfig, SecretAsked
from replicators.connectors.model.schema import TableSelection
from replicators.connectors.params import MASK, cleared, secret_names
from replicators.connectors.problems.errors import ReplicationError
from replicators.models import Replicator
from replicators.permissions import require_make
from replicators.secrets import decrypt, encrypt

SECRET_LOST = "can't be read any more: enter it again"  # noqa: S105 - what is said of one
PLACE_FIXED = (
    "can't be changed: the tables would be written anew elsewhere. Duplicate the "
    "replicator for that"
)
_FIELDS = frozenset(
    {
        "name", "description", "source_kind", "source_params", "target_kind", "target_params",
        "tables", "options",
    }
)  # fmt: skip


class Definition(Protocol):
    """What `Replicator` and `Draft` have in common: a name, two connections, tables and options."""

    pk: uuid.UUID
    name: str
    description: str
    source_kind: str
    source_params: dict[str, Any]
    source_secrets: str
    target_kind: str
    target_params: dict[str, Any]
    target_secrets: str
    tables: list[dict[str, Any]]
    options: dict[str, Any]


class NameTaken(ReplicationError):
    """Another replicator has that name. `errors` names the field."""

    def __init__(self, name: str) -> None:
        super().__init__("config:name-taken", name=name)
        self.errors = {"name": self.message.text}

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (NameTaken, (self.facts["name"],))


def params_of(row: Definition, role: str) -> dict[str, Any]:
    """The raw params of a `Replicator` or `Draft`, with secrets in clear. Never show them."""
    return {**getattr(row, f"{role}_params"), **decrypt(getattr(row, f"{role}_secrets"))}


def params_shown(row: Definition, role: str) -> dict[str, Any]:
    """The raw params of a `Replicator` or `Draft` with masked secrets. This also works where the
    plugin or the key of the secrets no longer exists."""
    kind = getattr(row, f"{role}_kind")
    try:
        return configs.masked(role, kind, params_of(row, role)) if kind else {}
    except ReplicationError as err:
        if err.code not in {"config:unknown-kind", "config:secrets-unreadable"}:
            raise
        plain = _plain_shown(getattr(row, f"{role}_params"))
        return {**plain, **dict.fromkeys(_secrets_reported(row, role), MASK)}


def _plain_shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cleared(value) for name, value in values.items()}


def _secrets_reported(row: Definition, role: str) -> Iterable[str]:
    """The names of the stored secrets. Where they can't be read, the names of all secrets that the
    plugin has."""
    try:
        return decrypt(getattr(row, f"{role}_secrets"))
    except ReplicationError:
        known = configs.plugins_of(role).get(getattr(row, f"{role}_kind"))
        return sorted(secret_names(known.params)) if known else ()


def params_merged(row: Definition, role: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The stored raw params with `data` over them, with secrets in clear. A mask in `data` keeps
    the stored value. InvalidConfig where stored secrets can't be read and `data` does not give them
    anew; `SecretAsked` where they would go to another place."""
    kind = getattr(row, f"{role}_kind")
    secrets = secret_names(configs.plugin_of(role, kind).params)
    shown = params_shown(row, role)
    given = {k: v for k, v in data.items() if k not in secrets or v != MASK}
    given = {k: v for k, v in given.items() if v != shown.get(k) or k in secrets}
    configs.require_plain(role, kind, given)
    try:
        before = params_of(row, role)
    except ReplicationError as err:
        if err.code != "config:secrets-unreadable":
            raise
        lost = {f"{role}.{name}": SECRET_LOST for name in secrets if name not in given}
        if lost:
            raise InvalidConfig(lost) from err
        return {**getattr(row, f"{role}_params"), **given}
    after = {**before, **given}
    kept = [name for name in secrets if before.get(name) and name not in given]
    configs.require_secrets(role, kind, before, after, kept)
    return after


def params_store(row: Definition, role: str, kind: str, data: Mapping[str, Any]) -> None:
    """Put raw params into a `Replicator` or `Draft`, without saving it. Secrets are encrypted; the
    mask keeps the stored value. `SecretAsked` where a kept secret would go to another place."""
    is_same_kind = getattr(row, f"{role}_kind") == kind
    stored = decrypt(getattr(row, f"{role}_secrets")) if is_same_kind else {}
    kept = [name for name, value in stored.items() if value and data.get(name) == MASK]
    configs.require_secrets(role, kind, getattr(row, f"{role}_params"), data, kept)
    clear, hidden = configs.split_secrets(role, kind, configs.with_stored(role, kind, data, stored))
    setattr(row, f"{role}_kind", kind)
    setattr(row, f"{role}_params", clear)
    setattr(row, f"{role}_secrets", encrypt(hidden))


def audited_values(row: Definition) -> tuple[dict[str, Any], set[str]]:
    """Everything that a person can change in a `Replicator` or `Draft`, with secrets in clear, and
    the names of the secrets. It is for `audit.changed`, which masks them. Unreadable secrets are
    given by their stored text."""
    found: dict[str, Any] = {"name": row.name, "description": row.description}
    secrets: set[str] = set()
    for role in configs.ROLES:
        stored = getattr(row, f"{role}_secrets")
        try:
            hidden = decrypt(stored)
        except ReplicationError:
            hidden = dict.fromkeys(_secrets_reported(row, role), stored)
        params = {**getattr(row, f"{role}_params"), **hidden}
        found[f"{role}.kind"] = getattr(row, f"{role}_kind")
        found |= {f"{role}.{name}": value for name, value in params.items()}
        secrets |= {f"{role}.{name}" for name in hidden}
    found |= {f"options.{name}": value for name, value in row.options.items()}
    tables = {f"table {t['schema']}.{t['name']}": _said(t) for t in row.tables}
    return found | tables, secrets


def table_choice(selection: TableSelection) -> dict[str, Any]:
    """What of a table is copied, for the audit trail."""
    return _said(configs.tables_to_json([selection])[0])


def _said(table: Mapping[str, Any]) -> dict[str, Any]:
    """What of a table is copied, without the table's name and without empty values."""
    return {k: v for k, v in table.items() if k not in {"schema", "name"} and v not in ([], "")}


def changes_record(
    act: str, row: Definition, before: tuple[dict[str, Any], set[str]], actor: audit.Actor = None
) -> None:
    """Record in the audit trail how a `Replicator` or `Draft` differs from `before`. No row is
    added where nothing differs."""
    values, secrets = audited_values(row)
    old, new = audit.changed(before[0], values, secrets | before[1])
    if old or new:
        audit.record(act, audit.Thing.of(cast(Model, row)), actor=actor, old=old, new=new)


def config_of(row: Definition) -> ReplicatorConfig:
    """The parsed configuration of a `Replicator` or `Draft`; InvalidConfig where it is
    incomplete."""
    data = {name: getattr(row, name) for name in _FIELDS}
    for role in configs.ROLES:
        data[f"{role}_params"] = params_of(row, role)
    return ReplicatorConfig.parse(data, replicator=str(row.pk), is_stored=True)


def source_of(replicator: Replicator) -> Any:
    """The source's params object."""
    values = params_of(replicator, "source")
    return configs.parse_params("source", replicator.source_kind, values, is_stored=True)


def target_of(replicator: Replicator) -> Any:
    """The target's params object."""
    values = params_of(replicator, "target")
    return configs.parse_params("target", replicator.target_kind, values, is_stored=True)


def name_require_free(name: str, *, besides: Any = None) -> None:
    """`NameTaken` where another replicator has the name."""
    if Replicator.objects.filter(name=name).exclude(pk=besides).exists():
        raise NameTaken(name)


def _fill(row: Replicator, config: ReplicatorConfig) -> None:
    row.name, row.description = config.name, config.description
    params_store(row, "source", config.source_kind, configs.plain(config.source_params))
    params_store(row, "target", config.target_kind, configs.plain(config.target_params))
    row.tables = configs.tables_to_json(config.tables)
    row.options = config.options.to_json()


def _save(row: Replicator) -> None:
    name_require_free(row.name, besides=row.pk)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as err:
        raise NameTaken(row.name) from err


@transaction.atomic
def replicator_create(
    *,
    actor: User | None,
    name: str,
    description: str = "",
    source_kind: str,
    source_params: Mapping[str, Any],
    target_kind: str,
    target_params: Mapping[str, Any],
    tables: Any,
    options: Mapping[str, Any] | None = None,
) -> Replicator:
    """Make a new replicator, paused. InvalidConfig names the faulty fields; `NameTaken` where
    another replicator has the name; `NoRight` where the actor may make no such one."""
    require_make(actor, target_kind)
    config = ReplicatorConfig.parse(
        {
            "name": name,
            "description": description,
            "source_kind": source_kind,
            "source_params": source_params,
            "target_kind": target_kind,
            "target_params": target_params,
            "tables": tables,
            "options": options,
        }
    )
    row = Replicator(created_by=actor)
    _fill(row, config)
    _save(row)
    changes_record("replicator_made", row, ({}, set()), actor)
    return row


@transaction.atomic
def replicator_update(*, replicator: Replicator, actor: User | None, **changes: Any) -> Replicator:
    """Change name, description, params (same kinds), or options. A param or an option that is left
    out keeps its value, as does a secret that is sent as the mask.

    `config:not-now` while the replicator is being deleted. InvalidConfig for changes of the kinds
    or of the target's place, which are fixed, and of tables, which are added and removed one by
    one.
    """
    row = Replicator.objects.select_for_update(no_key=True).get(pk=replicator.pk)
    before = audited_values(row)
    _change(row, changes)
    _save(row)
    changes_record("replicator_changed", row, before, actor)
    return row


def replicator_filled(*, replicator: Replicator, **changes: Any) -> Replicator:
    """The row as `replicator_update` would store it, not saved. It raises the same errors."""
    row = Replicator.objects.get(pk=replicator.pk)
    _change(row, changes)
    name_require_free(row.name, besides=row.pk)
    return row


def _change(row: Replicator, changes: Mapping[str, Any]) -> None:
    fixed = {"tables", "source_kind", "target_kind"} & set(changes)
    unknown = set(changes) - _FIELDS
    if fixed or unknown:
        raise InvalidConfig(
            dict.fromkeys(fixed, "can't be changed") | dict.fromkeys(unknown, "is not a field")
        )
    if row.deleting_since is not None:
        raise ReplicationError("config:not-now", name=row.name, reason="it is being deleted")
    place = dict(row.target_params)
    _change_params(row, changes)
    for name in ("name", "description"):
        if name in changes:
            setattr(row, name, changes[name])
    row.options = {**row.options, **(changes.get("options") or {})}
    _fill(row, config_of(row))
    row.tables_version += 1
    _require_place(row, place)


def _change_params(row: Replicator, changes: Mapping[str, Any]) -> None:
    merged: dict[str, dict[str, Any]] = {}
    errors: dict[str, str] = {}
    moved: tuple[str, ...] = ()
    for role in configs.ROLES:
        try:
            merged[role] = params_merged(row, role, changes.get(f"{role}_params") or {})
        except InvalidConfig as err:
            errors |= err.errors
            moved += err.moved if isinstance(err, SecretAsked) else ()
    if errors:
        raise SecretAsked(errors, moved) if moved else InvalidConfig(errors)
    for role, values in merged.items():
        setattr(row, f"{role}_secrets", "")  # they are in `values`; nothing has to be read again
        params_store(row, role, getattr(row, f"{role}_kind"), values)


def _require_place(row: Replicator, before: Mapping[str, Any]) -> None:
    known = configs.place_params(row.target_kind)
    moved = [n for n, default in known.items() if before.get(n, default) != row.target_params[n]]
    if moved:
        raise InvalidConfig({f"target.{name}": PLACE_FIXED for name in moved})


def replicator_choose(*, replicator: Replicator, tables: Iterable[TableSelection]) -> Replicator:
    """Let the replicator copy exactly these tables; a live run takes up the change. Only
    `runners.services` calls this, since it keeps the tables' rows in step. InvalidConfig where no
    table is left or one is named twice."""
    chosen = configs.parse_tables(list(tables))
    replicator.tables = configs.tables_to_json(chosen)
    replicator.save(update_fields=["tables", "updated_at"])
    tables_changed(replicator)
    return replicator


def tables_changed(replicator: Replicator) -> None:
    """Let the replicator's run read its tables again. Call this before changing them, in the same
    transaction.

    The reason for "before": every action first locks the replicator's row and then its tables'
    rows.
    """
    found = Replicator.objects.filter(pk=replicator.pk)
    found.update(tables_version=F("tables_version") + 1)


def replicator_export(replicator: Replicator) -> dict[str, Any]:
    """The definition without secrets, to be kept or imported elsewhere."""
    return {
        "name": replicator.name,
        "description": replicator.description,
        "source_kind": replicator.source_kind,
        "source_params": _plain_shown(replicator.source_params),
        "target_kind": replicator.target_kind,
        "target_params": _plain_shown(replicator.target_params),
        "tables": [{**t, "table": t["name"]} for t in replicator.tables],
        "options": replicator.options,
    }
