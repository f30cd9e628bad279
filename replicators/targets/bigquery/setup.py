"""Steps to prepare a Google Cloud project before it can be written. Text only; nothing is opened
here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from replicators.connectors.setup import SetupStep

ACCOUNT = "replicators"


def setup(values: Mapping[str, Any]) -> tuple[SetupStep, ...]:
    """The commands for the chosen project and dataset, for Google's own command line."""
    project = _plain(values.get("project"), "my-project")
    dataset = _plain(values.get("dataset"), "")
    location = _plain(values.get("location"), "US")
    email = f"{ACCOUNT}@{project}.iam.gserviceaccount.com"
    member = f"--member=serviceAccount:{email}"
    return (
        SetupStep(
            "Prepare the project",
            "A project with billing. In the free sandbox BigQuery refuses changes of rows. The "
            "commands are for the Cloud Shell, or for a machine with Google's command line.",
            (f"gcloud services enable bigquery.googleapis.com --project={project}",),
        ),
        SetupStep(
            "Make an account for this program",
            "It may run jobs in the project, and make and change tables.",
            (
                f"gcloud iam service-accounts create {ACCOUNT} --project={project}",
                f"gcloud projects add-iam-policy-binding {project} {member} "
                "--role=roles/bigquery.user",
                *_data_editor(project, dataset, location, email, member),
            ),
        ),
        SetupStep(
            "Make a key",
            "Enter the file's content as the service account key. On a machine of Google Cloud "
            "leave the key out, and let the machine run as this account.",
            (
                f"gcloud iam service-accounts keys create key.json --iam-account={email}",
                "cat key.json",
            ),
        ),
    )


def _plain(value: Any, otherwise: str) -> str:
    """A name as it was entered, unless a shell would take it for more than a name."""
    text = str(value or "")
    return text if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]*", text) else otherwise


def _data_editor(
    project: str, dataset: str, location: str, email: str, member: str
) -> tuple[str, ...]:
    """The right to change tables: in the one dataset, or in all of the project."""
    if not dataset:
        return (
            f"gcloud projects add-iam-policy-binding {project} {member} "
            "--role=roles/bigquery.dataEditor",
        )
    return (
        f"bq --location={location} mk --dataset {project}:{dataset}",
        f"bq query --use_legacy_sql=false 'GRANT `roles/bigquery.dataEditor` ON SCHEMA "
        f'`{project}`.`{dataset}` TO "serviceAccount:{email}"\'',
    )
