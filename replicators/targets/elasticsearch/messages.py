"""Texts of errors and problems that only search indexes have."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

WAITING = "Changes wait in the change log."
MESSAGES: Mapping[str, Message] = {
    "target:search-login": Message(
        "The cluster refuses the login",
        "The cluster does not accept the user, the password or the API key.",
        "Correct them in the target's settings.",
        WAITING,
        help=Help.EDIT,
    ),
    "target:search-tls": Message(
        "No encrypted connection to the cluster",
        "The encrypted connection to the cluster could not be made: {reason}.",
        "Correct the address, or name the file of certificates that prove the server (CA file).",
        WAITING,
        help=Help.EDIT,
    ),
    "target:search-denied": Message(
        "A right is missing in the cluster",
        "The cluster does not allow this user to {act}.",
        "Give the user the rights to make, write, read and delete the indexes of this replicator, "
        "and to change their aliases.",
        WAITING,
        help=Help.EDIT,
    ),
    "target:search-version": Message(
        "Version of the cluster not supported",
        "The cluster is {product} {version}. Elasticsearch 7.10 or newer and OpenSearch are "
        "supported.",
        "Use a newer cluster.",
        "Nothing is written to it.",
        help=Help.EDIT,
    ),
    "target:search-busy": Message(
        "The cluster has too much to do",
        "The cluster went on refusing requests ({status}), although they were repeated for "
        "{seconds} seconds.",
        "Nothing to do: it is tried again. If it repeats, look at the cluster's load and queues.",
        WAITING,
        retry=Retry.AUTO,
        waits=True,
    ),
    "target:search-refused": of_table(
        "The cluster refuses a request",
        "For table `{table}`, the cluster refused to {act}: {reason}.",
        "Look at the target's settings and at the cluster's log.",
        WAITING,
        retry=Retry.AFTER_FIX,
    ),
    "target:index-read-only": of_table(
        "The index is read only",
        "The cluster does not let anybody write to the index of `{table}`. It sets this block by "
        "itself when a disk is nearly full.",
        "Free space on the cluster's disks, and remove the block if it does not go by itself "
        "(`index.blocks.read_only_allow_delete`). The table then goes on by itself.",
        WAITING,
        retry=Retry.AFTER_FIX,
    ),
    "target:index-name": of_table(
        "The table's name can't be an index's name",
        "Table `{table}` would be searched as `{target}`, which {reason}.",
        "Choose another rule for the names of indexes in the target's settings.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:index-shared": of_table(
        "Two tables, one index",
        "Tables `{table}` and `{other}` would both use the index `{target}`.",
        "Put {{schema}} and {{table}} into the rule for the names of indexes, or choose only one "
        "of the tables.",
        "One would overwrite the other.",
        help=Help.CHANGE,
    ),
    "target:index-needs-key": of_table(
        "An index needs a key",
        "Table `{table}` has no key, so its documents can't be told apart.",
        "Add a primary key at the source, or leave the table out.",
        "The table can't be copied.",
        help=Help.CHANGE,
    ),
    "target:field-name": of_table(
        "A column's name can't be a field's name",
        "Column `{column}` of `{table}` can't be a field of a document: {reason}.",
        "Leave the column out, or rename it at the source.",
        "The table can't be copied.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
}
