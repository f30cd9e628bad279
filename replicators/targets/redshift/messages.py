"""Texts of the errors and problems that only Redshift as a target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

_WAIT = "Changes wait in the change log."
_STOPS = "Nothing is merged into it; the other tables go on."
_AGAIN = "It is tried again by itself."

MESSAGES: Mapping[str, Message] = {
    "target:redshift-host": of_table(
        "Redshift does not answer",
        "The server `{host}` does not answer on port {port}, or refuses an encrypted connection.",
        f"Check the endpoint, the security group, and whether the cluster is paused. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:redshift-lost": of_table(
        "Connection to Redshift cut",
        "The connection to `{host}` was cut. An open transaction is rolled back, or the progress "
        "row shows that it was committed.",
        f"Nothing to do. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:redshift-other": Message(
        "The server is not Redshift",
        "The server `{host}` answers, but it does not say that it is Redshift.",
        "Correct the host, or choose another target.",
        "Nothing can be written.",
        help=Help.EDIT,
    ),
    "target:redshift-login": Message(
        "Login refused",
        "Redshift refused the user `{user}` or its password.",
        "Check both. The user must be allowed to log in to the database `{database}`.",
        _WAIT,
        help=Help.EDIT,
    ),
    "target:redshift-database": Message(
        "No such database",
        "The database `{database}` is not there.",
        "Make it, or correct its name.",
        "Nothing can be written.",
        help=Help.EDIT,
    ),
    "target:redshift-right": of_table(
        "Right missing at the target",
        "Redshift refused a statement for `{table}`: the user `{user}` lacks a right on "
        "`{target}`.",
        f"The help beside the form has the grants. {_AGAIN}",
        _WAIT,
        retry=Retry.AFTER_FIX,
    ),
    "target:redshift-create": Message(
        "Right missing at the target",
        "The user `{user}` lacks the right {right} on `{target}`.",
        "The help beside the form has the grants.",
        "Tables can't be made there.",
        help=Help.EDIT,
    ),
    "target:redshift-role": of_table(
        "Redshift can't use the IAM role",
        "Redshift may not use the role `{role}`.",
        "Attach the role to the cluster or the workgroup, let Redshift assume it, or correct its "
        f"ARN. {_AGAIN}",
        _WAIT,
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:redshift-read": of_table(
        "Redshift may not read the bucket",
        "The store refused Redshift the files in `{folder}`: the role, or the keys, lack a right.",
        f"Grant s3:ListBucket for the bucket, and s3:GetObject for everything in it. {_AGAIN}",
        _WAIT,
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:redshift-region": of_table(
        "Bucket in another region",
        "The bucket `{bucket}` is not in the region of Redshift. COPY loads Parquet files from its "
        "own region only.",
        "Choose a bucket of the same region.",
        _WAIT,
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:redshift-file": of_table(
        "File gone before it was loaded",
        "Redshift did not find a file of `{table}` in the staging folder.",
        f"Let no lifecycle rule remove files that are younger than a day. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:redshift-full": of_table(
        "Disk full at the target",
        "The disks of Redshift are full.",
        f"Remove tables, or add nodes. {_AGAIN}",
        _WAIT,
        retry=Retry.AFTER_FIX,
    ),
    "target:redshift-connections": of_table(
        "Too many connections at the target",
        "Redshift refused one more connection.",
        f"Close others, or raise the user's CONNECTION LIMIT. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:redshift-cancelled": of_table(
        "Statement cancelled at the target",
        "Redshift cancelled a statement for `{table}`: somebody asked for it, a time limit was "
        "over, or a rule of the workload management.",
        f"Nothing to do. {_AGAIN}",
        _WAIT,
        retry=Retry.AUTO,
    ),
    "target:redshift-dependent": of_table(
        "A view keeps the table",
        "`{target}` can't be replaced or changed: a view or a materialized view of another program "
        "depends on it.",
        "Drop the view, or make it anew WITH NO SCHEMA BINDING, then press Retry now.",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
    "target:redshift-name": of_table(
        "Name too long",
        "`{name}`, of table `{table}`, has more than {most} bytes: Redshift has no longer names.",
        "Leave it out, or rename it at the source.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:redshift-columns": of_table(
        "Too many columns",
        "Table `{table}` has {count} columns. At most {most} are possible.",
        "Leave columns out.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:redshift-long": of_table(
        "Value too long for Redshift",
        "A value of the column `{column}` has {size} bytes when it is loaded. At most {most} are "
        "possible; bytes count twice.",
        "Leave the column out, or shorten the value at the source, then press Retry now (re-sync a "
        "copy that keeps every change).",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:redshift-value": of_table(
        "Value that Redshift can't hold",
        "A row of table `{table}` has a value that Redshift refuses: {number}.",
        "Correct the value at the source, then press Retry now (re-sync a copy that keeps every "
        "change). Or leave the column out.",
        _STOPS,
        help=Help.CHANGE,
    ),
    "target:redshift-refused": of_table(
        "Statement refused by Redshift",
        "Redshift refused a statement for `{table}`: {number}.",
        f"The log has its words. {_AGAIN}",
        _STOPS,
        retry=Retry.AFTER_FIX,
    ),
}
