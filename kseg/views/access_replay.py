"""ACLs, quotas, SCRAM credentials and delegation tokens that records of `__cluster_metadata` add up to.

Source: AclsDelta, ClientQuotasDelta, ScramDelta, DelegationTokenDelta.
"""

from collections.abc import Callable

from kseg.formats.messages import Fields
from kseg.views.access import Acl, DelegationToken, Quota, QuotaEntity, ScramUser

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


def named(names: dict[int, str], number: int) -> str:
    """The name of a code; the number of one that isn't known."""
    return names.get(number, str(number))


class AccessReplay:
    """What is known after some records."""

    def __init__(self) -> None:
        self._acls: dict[str, Acl] = {}
        self._quotas: dict[tuple[QuotaEntity, ...], dict[str, float]] = {}
        self._scram: dict[tuple[str, int], ScramUser] = {}
        self._tokens: dict[str, DelegationToken] = {}

    @property
    def acls(self) -> tuple[Acl, ...]:
        """Sorted by resource."""
        return tuple(sorted(self._acls.values()))

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """Sorted by entity, a default before names."""
        found = (
            Quota(entity, name, value) for entity, values in self._quotas.items() for name, value in values.items()
        )
        return tuple(
            sorted(found, key=lambda quota: ([(part.type, part.name or "") for part in quota.entity], quota.name))
        )

    @property
    def scram(self) -> tuple[ScramUser, ...]:
        """Sorted by user."""
        return tuple(sorted(self._scram.values()))

    @property
    def tokens(self) -> tuple[DelegationToken, ...]:
        """Sorted by id."""
        return tuple(sorted(self._tokens.values()))

    def add_acl(self, fields: Fields) -> bool:
        """Takes an ACL."""
        self._acls[fields["id"]] = Acl(
            named(ACL_RESOURCES, fields["resourceType"]),
            fields["resourceName"],
            named(PATTERN_TYPES, fields["patternType"]),
            fields["principal"],
            fields["host"],
            named(OPERATIONS, fields["operation"]),
            named(PERMISSIONS, fields["permissionType"]),
        )
        return True

    def remove_acl(self, fields: Fields) -> bool:
        """Removes an ACL; False if there is none."""
        return self._acls.pop(fields["id"], None) is not None

    def set_quota(self, fields: Fields) -> bool:
        """Sets a quota, or removes it."""
        entity = tuple(QuotaEntity(part["entityType"], part["entityName"]) for part in fields["entity"])
        entity = tuple(sorted(entity, key=lambda part: part.type))
        values = self._quotas.setdefault(entity, {})
        if fields["remove"]:
            values.pop(fields["key"], None)
        else:
            values[fields["key"]] = fields["value"]
        return True

    def set_scram(self, fields: Fields) -> bool:
        """Takes a credential, without what it is made of."""
        user, mechanism = fields["name"], fields["mechanism"]
        self._scram[user, mechanism] = ScramUser(user, named(MECHANISMS, mechanism), fields["iterations"])
        return True

    def remove_scram(self, fields: Fields) -> bool:
        """Removes a credential; False if there is none."""
        return self._scram.pop((fields["name"], fields["mechanism"]), None) is not None

    def set_token(self, fields: Fields) -> bool:
        """Takes a token, or its renewal."""
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
        """Removes a token; False if there is none."""
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
"""Takes the message of a record by its type; False if it refers to what isn't known."""
