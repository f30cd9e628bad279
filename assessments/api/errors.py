"""Maps the exceptions of looks to answers. It is imported for this effect."""

from __future__ import annotations

from assessments.looks import TooManyLooks
from replicators.api.errors import Answer, answers


@answers(TooManyLooks)
def _too_many(error: TooManyLooks) -> Answer:
    return Answer(503, "too-many-looks", str(error), retry_after=error.wait)
