"""A client of a schema registry with Confluent's REST interface (Apicurio has it below
`/apis/ccompat/v7`). It opens no connection before it is asked."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from replicators.connectors.feed.avro_schema import key_schema, value_schema
from replicators.connectors.feed.options import KEY_ONLY, FeedOptions, SchemaIds
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError

if TYPE_CHECKING:
    import requests

_FORM = "application/vnd.schemaregistry.v1+json"
_LATER = frozenset({408, 429, 500, 502, 503, 504})
_ids: dict[tuple[str, str, str], int] = {}
_ids_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Registry:
    """Where the registry is, and who asks: a user and a password, or a token, or nobody. `ca_file`:
    the certificates that may have signed the server's; empty: those that are generally trusted."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca_file: str = ""
    timeout_seconds: float = 10.0

    def register(self, subject: str, schema: str, table: TableId | None = None) -> int:
        """The registry's number of a schema. The schema becomes the newest version of the subject
        if it is none yet. A number never changes, so each schema is asked for once.

        Raises: ReplicationError (target:registry-*); the schema's faults are those of `table`.
        """
        place = (self.url, subject, schema)
        with _ids_lock:
            if place in _ids:
                return _ids[place]
        path = f"subjects/{quote(subject, safe='')}/versions"
        found = self._ask("POST", path, {"schema": schema}, subject, table)
        number = found.get("id") if isinstance(found, dict) else None
        if not isinstance(number, int):
            raise ReplicationError("target:registry-answer", status="200")
        with _ids_lock:
            _ids[place] = number
        return number

    def require(self, subject: str, compatibility: str) -> None:
        """Let the registry accept only changes of this kind (BACKWARD, FULL, NONE, ...) for a
        subject."""
        path = f"config/{quote(subject, safe='')}"
        self._ask("PUT", path, {"compatibility": compatibility}, subject, None)

    def subjects(self) -> list[str]:
        """The names of all subjects. Asking for them shows that the registry is there."""
        found = self._ask("GET", "subjects", None, "", None)
        if not isinstance(found, list):
            raise ReplicationError("target:registry-answer", status="200")
        return [str(name) for name in found]

    def _ask(self, method: str, path: str, body: Any, subject: str, table: TableId | None) -> Any:
        import requests

        headers = {"Accept": _FORM, "Content-Type": _FORM}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        with requests.Session() as session:
            session.trust_env = False  # no password of this machine's user
            try:
                answer = session.request(
                    method,
                    f"{self.url.rstrip('/')}/{path}",
                    data=None if body is None else json.dumps(body).encode(),
                    headers=headers,
                    auth=(self.user, self.password) if self.user and not self.token else None,
                    verify=self.ca_file or True,
                    timeout=self.timeout_seconds,
                    allow_redirects=False,
                )
            except requests.exceptions.SSLError as err:
                raise ReplicationError("target:registry-tls") from err
            except (requests.ConnectionError, requests.Timeout) as err:
                raise ReplicationError("target:registry-unreachable") from err
            except (requests.RequestException, OSError) as err:
                raise ReplicationError("target:registry-answer", status="none") from err
            return _read(answer, subject, table)


def ids_of(
    registry: Registry,
    schema: TableSchema,
    options: FeedOptions,
    topic: str,
    *,
    is_shared: bool = False,
) -> SchemaIds:
    """Register a table's schemas. `is_shared`: several tables are written to the topic."""
    keys, values = subjects_of(topic, schema, options, is_shared=is_shared)
    key = registry.register(keys, key_schema(schema), schema.id) if schema.key else 0
    if options.shape == KEY_ONLY:
        return SchemaIds(key, 0)
    return SchemaIds(key, registry.register(values, value_schema(schema, options), schema.id))


def subjects_of(
    topic: str, schema: TableSchema, options: FeedOptions, *, is_shared: bool = False
) -> tuple[str, str]:
    """The subjects of keys and values: those of the topic, or in a topic of several tables those of
    each table's records (TopicNameStrategy and TopicRecordNameStrategy)."""
    if not is_shared:
        return f"{topic}-key", f"{topic}-value"
    key, value = (json.loads(s) for s in (key_schema(schema), value_schema(schema, options)))
    return (
        f"{topic}-{key['namespace']}.{key['name']}",
        f"{topic}-{value['namespace']}.{value['name']}",
    )


def _read(answer: requests.Response, subject: str, table: TableId | None) -> Any:
    status = answer.status_code
    if status in _LATER:
        raise ReplicationError("target:registry-unreachable")
    if status in {401, 403}:
        raise ReplicationError("target:registry-login-refused")
    if status == 409:
        raise ReplicationError("target:registry-incompatible", table=table, subject=subject)
    if status == 422:
        raise ReplicationError("target:registry-schema", table=table, subject=subject)
    if status != 200:
        raise ReplicationError("target:registry-answer", status=status)
    try:
        return answer.json()
    except ValueError as err:
        raise ReplicationError("target:registry-answer", status=status) from err
