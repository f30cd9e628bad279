"""The outcomes of verifications in words and colours. Pure; no queries."""

from __future__ import annotations

from dataclasses import dataclass

from runners.engine.verify.report import Kind, Outcome, Step
from runners.states import COLOURS, LABELS, VerificationState

COMPARED = tuple(str(o) for o in (Outcome.EQUAL, Outcome.DIFFERENT, Outcome.UNSETTLED))
"""The outcomes of tables that were compared to the end."""
STEPS = {
    Step.WAIT: "Waits until the target has what was read",
    Step.READ: "Reads rows",
    Step.COMPARE: "Compares",
    Step.CHECK: "Checks rows again, one by one",
}
KINDS = {
    Kind.MISSING: ("Missing", "Only the source has this row."),
    Kind.EXTRA: ("Extra", "Only the target has this row."),
    Kind.DIFFERENT: ("Different", "Both have this row, with other values."),
}
_LABELS = {
    Outcome.EQUAL: ("Equal", "green"),
    Outcome.DIFFERENT: ("Different", "red"),
    Outcome.UNSETTLED: ("Unsettled", "amber"),
    Outcome.NOT_COMPARED: ("Not compared", "slate"),
    Outcome.FAILED: ("Failed", "red"),
    Outcome.STOPPED: ("Stopped", "slate"),
}


@dataclass(frozen=True, slots=True)
class OutcomeShown:
    """An outcome or a state: its name, label and colour, and the words after `verified ... ago`."""

    name: str
    label: str
    colour: str
    words: str


def outcome_shown(outcome: str, wrong: int = 0) -> OutcomeShown:
    """A table's or a verification's outcome; `wrong`: how many rows differ."""
    if outcome not in set(Outcome):
        return OutcomeShown("waiting", "Not yet", "slate", "not yet")
    label, colour = _LABELS[Outcome(outcome)]
    if outcome == Outcome.DIFFERENT:
        words = f"{wrong:,} {'row differs' if wrong == 1 else 'rows differ'}"
        return OutcomeShown(outcome, words, colour, words)
    return OutcomeShown(outcome, label, colour, label.lower())


def state_shown(state: str) -> OutcomeShown:
    """The state of a verification that has no outcome."""
    if state == VerificationState.RUNNING:
        return OutcomeShown("verifying", "Verifying", "blue", "verifying")
    return OutcomeShown(state, LABELS[state], COLOURS[state], LABELS[state].lower())
