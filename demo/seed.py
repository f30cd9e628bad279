"""Makes the demo's user, token and replicator through the program's own services. It reads a JSON
request and writes a JSON answer."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from typing import Any

USER = "demo"


def _account(known: Mapping[str, Any]) -> tuple[Any, str, str]:
    """The user, the password and the token: the known ones, or new ones."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from replicators.models import ApiToken
    from replicators.tokens import token_create

    user, _ = get_user_model().objects.get_or_create(username=USER)
    password = known.get("password") or secrets.token_urlsafe(12)
    if not user.check_password(password):
        user.set_password(password)
        user.save()
    for name in ("viewer", "editor"):
        group = Group.objects.filter(name=name).first()
        if group is not None:
            user.groups.add(group)
    token = known.get("token")
    if not token or not ApiToken.objects.filter(user=user, name=USER).exists():
        ApiToken.objects.filter(user=user, name=USER).delete()
        _, token = token_create(user=user, name=USER)
    return user, password, token


def _replicator(given: Mapping[str, Any], user: Any) -> str | None:
    """The replicator's id. The first call makes and starts the replicator; later calls only update
    its address to the server's."""
    from replicators.models import Replicator
    from replicators.services import replicator_create, replicator_update
    from runners.services import replicator_start

    row = Replicator.objects.filter(name=given["name"]).first()
    known = given["known"]
    if row is None and known.get("replicator_id") and known.get("replicator") == given["name"]:
        return None  # a person deleted it
    if row is None:
        tables = [{"schema": given["schema"], "name": n, "columns": []} for n in given["tables"]]
        row = replicator_create(
            actor=user,
            name=given["name"],
            source_kind="postgresql",
            source_params=given["source"],
            target_kind=given["target_kind"],
            target_params=given["target"],
            tables=tables,
            options={"keep_hours": 1.0, **given["options"]},
        )
        replicator_start(replicator=row, actor=user)
    elif row.source_params.get("port") != given["source"]["port"] and row.deleting_since is None:
        replicator_update(replicator=row, actor=user, source_params=given["source"])
    return str(row.pk)


def main() -> int:
    """Read the request from standard input, write the answer to standard output."""
    given = json.load(sys.stdin)
    import django

    django.setup()
    user, password, token = _account(given["known"])
    answer = {
        "user": USER,
        "password": password,
        "token": token,
        "replicator_id": _replicator(given, user),
        "target": given["target"],
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
