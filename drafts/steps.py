"""The pages of the wizard in order: which are done, and where to continue a draft. No HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from drafts.models import Draft
from drafts.reports import is_passed
from replicators.config import (
    InvalidConfig,
    Options,
    parse_name,
    parse_params,
    parse_tables,
    plugins_of,
)
from replicators.connectors.params import cleared, describe
from replicators.connectors.problems.errors import ReplicationError
from replicators.services import NameTaken, name_require_free, params_of

NAMES = ("name", "source", "target", "tables", "advanced", "assessment", "summary")
_TITLES = {
    "name": "Name",
    "source": "Source",
    "target": "Target",
    "tables": "Tables",
    "advanced": "Advanced",
    "assessment": "Assessment",
    "summary": "Summary",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A page as the stepper shows it. `note` is a short text on its content."""

    name: str
    title: str
    number: int
    is_current: bool
    is_done: bool
    note: str = ""


def title_of(name: str) -> str:
    """The title of a step."""
    return _TITLES[name]


def before(name: str) -> str:
    """The previous step, or the first."""
    return NAMES[max(0, NAMES.index(name) - 1)]


def after(name: str) -> str:
    """The next step, or the last."""
    return NAMES[min(len(NAMES) - 1, NAMES.index(name) + 1)]


def faults(draft: Draft, name: str) -> dict[str, str]:
    """The reasons why a step is not done, by field."""
    try:
        if name == "name":
            name_require_free(parse_name(draft.name))
        elif name in {"source", "target"}:
            parse_params(name, getattr(draft, f"{name}_kind"), params_of(draft, name))
        elif name == "tables":
            parse_tables(draft.tables)
        elif name == "advanced":
            Options.parse(draft.options)
    except (InvalidConfig, NameTaken) as err:
        return err.errors
    except ReplicationError as err:
        return {name: err.message.text}
    return {}


def _done(draft: Draft) -> dict[str, bool]:
    done = {name: not faults(draft, name) for name in NAMES[:5]}
    done["advanced"] = done["advanced"] and done["tables"]
    done["assessment"] = all(done.values()) and is_passed(draft)
    done["summary"] = False
    return done


def _place(draft: Draft, role: str) -> str:
    """Where a connector leads to: the first of its texts that is filled in, without secrets."""
    plugin = plugins_of(role).get(getattr(draft, f"{role}_kind"))
    values = getattr(draft, f"{role}_params")
    texts = [p for p in describe(plugin.params) if p.kind is str] if plugin else []
    said = (values.get(p.name) for p in texts if not p.secret and not p.choices)
    return str(cleared(next((text for text in said if text), "")))


def _notes(draft: Draft) -> dict[str, str]:
    chosen = len(draft.tables)
    return {
        "name": draft.name,
        "source": _place(draft, "source"),
        "target": _place(draft, "target"),
        "tables": f"{chosen} chosen" if chosen else "",
    }


def steps_of(draft: Draft | None, current: str) -> list[Step]:
    """All pages, for the stepper."""
    done = _done(draft) if draft else {}
    notes = _notes(draft) if draft else {}
    return [
        Step(n, _TITLES[n], i, n == current, done.get(n, False), str(notes.get(n) or ""))
        for i, n in enumerate(NAMES, 1)
    ]


def resumed_at(draft: Draft) -> str:
    """The first page that is not done."""
    done = _done(draft)
    return next((name for name in NAMES if not done[name]), "summary")
