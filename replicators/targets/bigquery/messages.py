"""Texts of errors and problems that only the BigQuery target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAITS = "Changes wait in the change log."

MESSAGES: Mapping[str, Message] = {
    "target:bigquery-credentials": Message(
        "Google did not accept the credentials",
        "BigQuery does not accept the service account key, or this machine has no application "
        "default credentials.",
        "Enter the JSON of a key that is still valid, or give the machine credentials "
        "(GOOGLE_APPLICATION_CREDENTIALS).",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:bigquery-right-missing": Message(
        "A right is missing in BigQuery",
        "The account lacks the right `{right}` on {place}.",
        "Grant it a role that has the right: BigQuery User on the project, and BigQuery Data "
        "Editor on the dataset (or on the project, if datasets are to be made).",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:bigquery-denied": Message(
        "BigQuery refused access",
        "The account may not do what is needed in project `{project}`.",
        "Look at the account's roles. Policies of the organization or a service perimeter may "
        "refuse access too.",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:bigquery-project": Message(
        "No such project",
        "Project `{project}` does not exist, has no BigQuery, or the account may not see it.",
        "Check the project id, and that the BigQuery API is enabled in the project.",
        _WAITS,
        help=Help.EDIT,
    ),
    "target:bigquery-billing": Message(
        "Billing is not enabled",
        "Project `{project}` has no billing account. Without one BigQuery refuses changes of rows "
        "(MERGE, UPDATE, DELETE), and tables expire.",
        "Link a billing account to the project.",
        _WAITS,
    ),
    "target:bigquery-location": Message(
        "The dataset lies elsewhere",
        "Dataset `{dataset}` lies in {found}, but the target's location is {location}.",
        "Set the location of the target to {found}, or choose another dataset.",
        "Jobs of one location can't read tables of another.",
        help=Help.EDIT,
    ),
    "target:bigquery-dataset-new": Message(
        "A dataset will be made",
        "Dataset `{dataset}` does not exist yet. It will be made in {location}.",
        "Nothing to do. If somebody else is to make it, do it before the replicator starts.",
    ),
    "target:bigquery-expires": Message(
        "Tables of this dataset expire",
        "New tables in dataset `{dataset}` are deleted by BigQuery after {days} days.",
        "Remove the default table expiration from the dataset.",
        "A copy would vanish after that time and be made anew.",
    ),
    "target:bigquery-quota": of_table(
        "A quota of BigQuery is used up",
        "BigQuery refuses a job for table `{table}`, since a quota or a limit is used up.",
        "Raise the quota, or merge less often (the option Merge every). It goes on by itself once "
        "the quota is free again.",
        _WAITS,
        retry=Retry.AUTO,
    ),
    "target:bigquery-cost": of_table(
        "The merge would cost more than allowed",
        "A merge into the target table of `{table}` would read more bytes than the target allows.",
        "Raise the limit of bytes billed a merge.",
        _WAITS,
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:bigquery-refused": of_table(
        "BigQuery refused a job",
        "BigQuery refused a job for table `{table}` as invalid ({reason}).",
        "Look at the run's log for BigQuery's own text. If the table was changed by hand in "
        "BigQuery, re-sync it.",
        _WAITS,
        retry=Retry.AFTER_FIX,
    ),
    "target:bigquery-backend": Message(
        "BigQuery has a fault",
        "BigQuery could not do a job because of a fault of its own ({reason}).",
        "Nothing to do: it is tried again.",
        _WAITS,
        retry=Retry.AUTO,
        waits=True,
    ),
    "target:bigquery-columns": of_table(
        "Two columns, one name",
        "Columns `{column}` and `{other}` of table `{table}` would both become the same column in "
        "BigQuery, where case does not count and other signs become underscores.",
        "Exclude one of the two columns, or rename one at the source.",
        "One would overwrite the other.",
        help=Help.CHANGE,
    ),
    "target:bigquery-renamed": of_table(
        "A name is changed for BigQuery",
        "`{name_there}` of table `{table}` becomes `{made}` in BigQuery.",
        "Nothing to do, if readers use the new name.",
    ),
    "target:bigquery-unclustered": of_table(
        "Merges will read the whole table",
        "No column of the key of table `{table}` can cluster a table of BigQuery.",
        "Nothing to do for a small table. For a large one, choose a longer time between merges.",
        "Each merge reads, and is billed for, the whole table.",
    ),
}
