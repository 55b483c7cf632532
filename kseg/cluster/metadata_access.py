"""The part of a cluster's metadata that says who may do what: ACLs, quotas, credentials and tokens."""

from collections.abc import Callable
from hashlib import sha256

from kseg.cluster.model import Acl, DelegationToken, Quota, QuotaEntity, ScramUser
from kseg.formats.messages import Fields

ACL_RESOURCES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}
"""Source: ResourceType."""
PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
"""Source: AclOperation."""
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def name_of_code(names: dict[int, str], number: int) -> str:
    """Return the name of a code, or its number if the code is unknown."""
    return names.get(number, str(number))


def quota_entity(fields: Fields) -> tuple[QuotaEntity, ...]:
    """The entity of a quota's record, its parts in the order of their types."""
    parts = (QuotaEntity(part["entityType"], part["entityName"]) for part in fields["entity"])
    return tuple(sorted(parts, key=lambda part: part.type))


class AccessReplay:
    """The state of access control after some records."""

    def __init__(self) -> None:
        self._acls: dict[str, Acl] = {}
        self._quotas: dict[tuple[QuotaEntity, ...], dict[str, float]] = {}
        self._scram: dict[tuple[str, int], ScramUser] = {}
        self._tokens: dict[str, DelegationToken] = {}

    @property
    def acls(self) -> tuple[Acl, ...]:
        """ACLs, sorted by resource."""
        return tuple(sorted(self._acls.values()))

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """Return the quotas sorted by entity. Default quotas come first."""
        found = (
            Quota(entity, name, value) for entity, values in self._quotas.items() for name, value in values.items()
        )
        return tuple(
            sorted(found, key=lambda quota: ([(part.type, part.name or "") for part in quota.entity], quota.name))
        )

    @property
    def scram(self) -> tuple[ScramUser, ...]:
        """SCRAM users, sorted by user."""
        return tuple(sorted(self._scram.values()))

    @property
    def tokens(self) -> tuple[DelegationToken, ...]:
        """Delegation tokens, sorted by id."""
        return tuple(sorted(self._tokens.values()))

    def acl(self, acl_id: str) -> Acl | None:
        """An ACL by its id."""
        return self._acls.get(acl_id)

    def quota(self, entity: tuple[QuotaEntity, ...], name: str) -> Quota | None:
        """A quota of an entity by its name."""
        value = self._quotas.get(entity, {}).get(name)
        return None if value is None else Quota(entity, name, value)

    def credential(self, user: str, mechanism: int) -> ScramUser | None:
        """A user's credential for a mechanism."""
        return self._scram.get((user, mechanism))

    def token(self, token_id: str) -> DelegationToken | None:
        """A token by its id."""
        return self._tokens.get(token_id)

    def add_acl(self, fields: Fields) -> bool:
        """Add an ACL."""
        self._acls[fields["id"]] = Acl(
            name_of_code(ACL_RESOURCES, fields["resourceType"]),
            fields["resourceName"],
            name_of_code(PATTERN_TYPES, fields["patternType"]),
            fields["principal"],
            fields["host"],
            name_of_code(OPERATIONS, fields["operation"]),
            name_of_code(PERMISSIONS, fields["permissionType"]),
        )
        return True

    def remove_acl(self, fields: Fields) -> bool:
        """Remove an ACL. Returns False if there is none."""
        return self._acls.pop(fields["id"], None) is not None

    def set_quota(self, fields: Fields) -> bool:
        """Sets a quota, or removes it."""
        values = self._quotas.setdefault(quota_entity(fields), {})
        if fields["remove"]:
            values.pop(fields["key"], None)
        else:
            values[fields["key"]] = fields["value"]
        return True

    def set_scram(self, fields: Fields) -> bool:
        """Set a credential, without its secret parts."""
        user, mechanism = fields["name"], fields["mechanism"]
        secret = b"".join(fields[name] for name in ("salt", "storedKey", "serverKey"))
        digest = sha256(secret).hexdigest()
        self._scram[user, mechanism] = ScramUser(
            user, name_of_code(MECHANISMS, mechanism), fields["iterations"], digest
        )
        return True

    def remove_scram(self, fields: Fields) -> bool:
        """Remove a credential. Returns False if there is none."""
        return self._scram.pop((fields["name"], fields["mechanism"]), None) is not None

    def set_token(self, fields: Fields) -> bool:
        """Set a token, or renew it."""
        self._tokens[fields["tokenId"]] = DelegationToken(
            fields["tokenId"],
            fields["owner"],
            fields["requester"],
            tuple(fields["renewers"]),
            fields["issueTimestamp"],
            fields["expirationTimestamp"],
            fields["maxTimestamp"],
        )
        return True

    def remove_token(self, fields: Fields) -> bool:
        """Remove a token. Returns False if there is none."""
        return self._tokens.pop(fields["tokenId"], None) is not None


ACCESS_APPLIES: dict[str, Callable[[AccessReplay, Fields], bool]] = {
    "AccessControlEntryRecord": AccessReplay.add_acl,
    "RemoveAccessControlEntryRecord": AccessReplay.remove_acl,
    "ClientQuotaRecord": AccessReplay.set_quota,
    "UserScramCredentialRecord": AccessReplay.set_scram,
    "RemoveUserScramCredentialRecord": AccessReplay.remove_scram,
    "DelegationTokenRecord": AccessReplay.set_token,
    "RemoveDelegationTokenRecord": AccessReplay.remove_token,
}
"""Functions that apply a record's message by its type; False if it refers to something unknown."""
