"""Maps the exceptions of drafts to answers. It is imported for this effect."""

from __future__ import annotations

from drafts.models import Draft
from drafts.services import DeployRefused, DraftDeployed, StaleDraft
from replicators.api.errors import Answer, answers
from replicators.api.preconditions import PreconditionFailed
from replicators.models import Replicator
from runners.definition import ChangeRefused, StaleReplicator


@answers(StaleDraft)
def _stale(error: StaleDraft) -> Answer:
    text = (
        "The draft was changed elsewhere since you read it. Read it again, then repeat your change."
    )
    return Answer(409, "stale-draft", text)


@answers(DeployRefused)
def _refused(error: DeployRefused) -> Answer:
    text = "The assessment found errors, so nothing was deployed. Mend them, then deploy again."
    problems = [p.to_json() for p in error.problems]
    return Answer(409, "deploy-refused", text, problems=problems)


@answers(ChangeRefused)
def _change_refused(error: ChangeRefused) -> Answer:
    return Answer(409, "change-refused", str(error), problems=[p.to_json() for p in error.problems])


@answers(StaleReplicator)
def _changed_meanwhile(error: StaleReplicator) -> Answer:
    failed = PreconditionFailed()
    return Answer(failed.status_code, failed.default_code, str(failed.detail))


@answers(Draft.DoesNotExist)
@answers(Replicator.DoesNotExist)
def _gone(error: Exception) -> Answer:
    return Answer(404, "not-found", "It was deleted meanwhile.")


@answers(DraftDeployed)
def _deployed(error: DraftDeployed) -> Answer:
    return Answer(409, "draft-deployed", "The draft became a replicator; change that one instead.")
