"""The token as the key-value texts that a commit of a lakehouse table carries."""

from __future__ import annotations

from replicators.connectors.target import Token

OWNER = "replicator.id"
GENERATION = "replicator.generation"
SEQUENCE = "replicator.sequence"
UUID = "replicator.uuid"


def token_values(token: Token) -> dict[str, str]:
    """A token as the key-value texts that a commit carries."""
    return {
        OWNER: token.replicator,
        GENERATION: str(token.generation),
        SEQUENCE: str(token.sequence),
        UUID: token.table_uuid,
    }


def token_from(values: dict[str, str], uuid: str) -> Token | None:
    """The token in a commit's key-value texts, if there is one."""
    if not all(name in values for name in (OWNER, GENERATION, SEQUENCE)):
        return None
    return Token(values[OWNER], int(values[GENERATION]), int(values[SEQUENCE]), uuid)
