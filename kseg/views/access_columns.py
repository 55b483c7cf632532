"""The columns of ACLs, quotas, SCRAM credentials and delegation tokens, for JSON, CSV and tables."""

from kseg.output.row_writer import NOT_SHOWN, Section
from kseg.views.access import Acl, DelegationToken, Quota, QuotaEntity, ScramUser, entity_text, number_text
from kseg.views.column_kinds import column, iso_time_column, number_column, timestamp_column


def _entity_objects(entity: tuple[QuotaEntity, ...]) -> list[dict[str, str | None]]:
    return [{"entityType": part.type, "entityName": part.name} for part in entity]


ACLS: Section[Acl] = Section(
    "acl",
    "ACLs",
    (
        column("resourceType", "TYPE", lambda row: row.resource_type),
        column("resource", "RESOURCE", lambda row: row.resource),
        column("patternType", "PATTERN", lambda row: row.pattern_type),
        column("principal", "PRINCIPAL", lambda row: row.principal),
        column("host", "HOST", lambda row: row.host),
        column("operation", "OPERATION", lambda row: row.operation),
        column("permission", "PERMISSION", lambda row: row.permission),
    ),
    lambda row: "yellow" if row.permission == "DENY" else "",
)
QUOTAS: Section[Quota] = Section(
    "quota",
    "Quotas",
    (
        column("entity", "ENTITY", lambda row: _entity_objects(row.entity), lambda row: entity_text(row.entity)),
        column("name", "NAME", lambda row: row.name),
        column("value", "VALUE", lambda row: row.value, lambda row: number_text(row.value)),
    ),
)
SCRAM: Section[ScramUser] = Section(
    "scram",
    "SCRAM credentials",
    (
        column("user", "USER", lambda row: row.user),
        column("mechanism", "MECHANISM", lambda row: row.mechanism),
        number_column("iterations", "ITERATIONS", lambda row: row.iterations),
    ),
)
TOKENS: Section[DelegationToken] = Section(
    "token",
    "Delegation tokens",
    (
        column("tokenId", "TOKEN", lambda row: row.token_id),
        column("owner", "OWNER", lambda row: row.owner),
        column("requester", "REQUESTER", lambda row: row.requester),
        column("renewers", "RENEWERS", lambda row: list(row.renewers), lambda row: ",".join(row.renewers)),
        timestamp_column("issue", NOT_SHOWN, lambda row: row.issued),
        iso_time_column("issue", lambda row: row.issued, "ISSUED"),
        timestamp_column("expiration", NOT_SHOWN, lambda row: row.expires),
        iso_time_column("expiration", lambda row: row.expires, "EXPIRES"),
        timestamp_column("max", NOT_SHOWN, lambda row: row.expires_at_last),
        iso_time_column("max", lambda row: row.expires_at_last, "AT LAST"),
    ),
)
