"""Who may do what in a cluster, and how much: ACLs, quotas, SCRAM credentials, delegation tokens; without secrets."""

from typing import NamedTuple

DEFAULT = "<default>"
"""For people: all users, clients or addresses that have no quota of their own, as Kafka's tools write it."""


class Acl(NamedTuple):
    """An ACL, in the words of Kafka's enums: resource type `TOPIC`, pattern `LITERAL`, operation `READ`."""

    resource_type: str
    resource: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class QuotaEntity(NamedTuple):
    """What a quota is for, in part: `type` user, client-id or ip; `name` None stands for the default of all others."""

    type: str
    name: str | None


class Quota(NamedTuple):
    """A quota of a user, a client, both together, or an IP address."""

    entity: tuple[QuotaEntity, ...]
    name: str
    value: float


class ScramUser(NamedTuple):
    """That a user can log in by SCRAM; `mechanism` SCRAM-SHA-256 or SCRAM-SHA-512."""

    user: str
    mechanism: str
    iterations: int


class DelegationToken(NamedTuple):
    """A delegation token; times are milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    expires_at_last: int
    """Nobody can renew it beyond."""


def number_text(value: float) -> str:
    """A quota's value; whole numbers without a point."""
    return str(int(value)) if value.is_integer() else repr(value)


def entity_text(entity: tuple[QuotaEntity, ...]) -> str:
    """A quota's entity for people: `user alice, client-id <default>`."""
    return ", ".join(f"{part.type} {DEFAULT if part.name is None else part.name}" for part in entity)
