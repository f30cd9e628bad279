"""Parameters of paper."""

from __future__ import annotations

from dataclasses import dataclass

from replicators.connectors.params import param


@dataclass(frozen=True, slots=True)
class PaperParams:
    """`sheets`: how many are left."""

    drawer: str = param("Drawer", help="A folder.")
    sheets: int = param("Sheets", default=500, minimum=0, maximum=500)
    ink: str = param("Ink", default="blue", choices=("blue", "black"))
