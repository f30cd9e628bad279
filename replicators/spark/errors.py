"""What goes wrong while a notebook reads changes: every text says what to do."""

from __future__ import annotations


class ChangesError(Exception):
    """Changes can't be read."""


def option_missing(name: str) -> ChangesError:
    return ChangesError(f"The option `{name}` is missing: .option({name!r}, ...).")


def option_invalid(name: str, value: str, known: str) -> ChangesError:
    return ChangesError(f"The option `{name}` can't be {value!r}. It takes {known}.")


def no_replicator(name: str) -> ChangesError:
    return ChangesError(
        f"There is no replicator called {name!r}. Use the name that the list of replicators shows, "
        "or the id in the address of its page."
    )


def not_copied(table: str) -> ChangesError:
    return ChangesError(
        f"No schema of {table} is known yet, since it was not copied. Start the replicator, and "
        "read the table once its state is `replicating`."
    )


def refused(status: int, message: str) -> ChangesError:
    advice = {
        401: "Set the option `token` to a token of your account page.",
        404: "Check the options `replicator` and `table` (`schema.name`).",
    }
    text = message if not advice.get(status) else f"{message} {advice[status]}"
    return ChangesError(f"The server answered {status}: {text}".strip())


def unreachable(host: str, reason: str) -> ChangesError:
    return ChangesError(
        f"The server {host} did not answer ({reason}). Check the option `url`, and that Spark's "
        "machines can reach it."
    )


def position_lost(table: str, sequence: int, kept_after: int) -> ChangesError:
    return ChangesError(
        f"The change log of {table} no longer has the changes after sequence {sequence}: it begins "
        f"after {kept_after}. Read the target's table for what is missing, then start a new stream "
        "with a new checkpoint and startingSequence=earliest. To keep changes for longer, raise "
        "the replicator's option `Keep changes for`."
    )


def copied_afresh(table: str, was: int, now: int) -> ChangesError:
    return ChangesError(
        f"{table} was copied afresh (copy {was} before, copy {now} now). The log may lack changes "
        "between the two copies. Read the target's table again, then start a new stream with a new "
        "checkpoint. If you know that nothing is missing, set the option onNewCopy=continue."
    )


def behind(table: str, sequence: int, until: int) -> ChangesError:
    return ChangesError(
        f"The changes of {table} can be read only up to sequence {until} now, and this stream has "
        f"read up to {sequence}. The table fails or is being copied. See its page, and start the "
        "stream again once the table's state is `replicating`."
    )


def schema_changed(table: str, columns: str) -> ChangesError:
    return ChangesError(
        f"The columns of {table} changed after this data frame was made: {columns}. Start the "
        "query again with the same checkpoint, and it reads the new columns. With the option "
        "onSchemaChange=byName it goes on with the columns that it has."
    )


def does_not_fit(table: str, column: str, is_type: str, wanted: str) -> ChangesError:
    return ChangesError(
        f"Values of {table}.{column} do not fit the data frame's type {wanted}: the change log has "
        f"{is_type}. Leave .schema(...) out, or give the column a wider type."
    )


def name_taken(table: str, names: str) -> ChangesError:
    return ChangesError(
        f"{table} has columns of its own called {names}. Set the option `prefix` to another word, "
        "such as `change_`: the columns about the change are then called change_operation, ..."
    )


def damaged(table: str, sequence: int) -> ChangesError:
    return ChangesError(
        f"A change file of {table} (from sequence {sequence}) did not arrive as it was written. "
        "Start the query again. If that does not help, the file is damaged: copy the table afresh."
    )


def file_away(table: str, sequence: int) -> ChangesError:
    return ChangesError(
        f"A change file of {table} (from sequence {sequence}) can't be opened at its path. Spark's "
        "machines must see the folder or the store of the change log. Otherwise leave out "
        "read=direct."
    )
