"""What an administrator does before tables can be copied into Spanner. Text only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replicators.connectors.setup import SetupStep


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The commands for the chosen database, for Google's own command line."""
    project = _plain(values.get("project"), "my-project")
    instance = _plain(values.get("instance"), "my-instance")
    database = _plain(values.get("database"), "copies")
    email = f"replicators@{project}.iam.gserviceaccount.com"
    return (
        SetupStep(
            "Make a database",
            "It has the GoogleSQL dialect. The instance exists already.",
            (
                f"gcloud spanner databases create {database} --instance={instance} "
                f"--project={project} --database-dialect=GOOGLE_STANDARD_SQL",
            ),
        ),
        SetupStep(
            "Make an account for this program",
            "It may read and write the database's rows, and make and change its tables. Enter the "
            "key file's content as the service account key. On a machine of Google Cloud leave the "
            "key out, and let the machine run as this account.",
            (
                f"gcloud iam service-accounts create replicators --project={project}",
                f"gcloud spanner databases add-iam-policy-binding {database} "
                f"--instance={instance} --project={project} --member=serviceAccount:{email} "
                "--role=roles/spanner.databaseUser",
                f"gcloud iam service-accounts keys create key.json --iam-account={email}",
            ),
        ),
    )


def _plain(value: Any, otherwise: str) -> str:
    """A name as it was entered, unless a shell would take it for more than a name."""
    text = str(value or "")
    return text if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]*", text) else otherwise
