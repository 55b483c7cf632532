"""`kafka-acls.sh` lines: each adds what one principal may do, or may not, with some resources."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kseg.views.access import Acl
from kseg.views.carry_over.tool_line import LeaveOut, Target, is_plain

RESOURCE_OPTIONS = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "CLUSTER": "--cluster",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}
MOST_RESOURCES = 40
"""In a line, which somebody should be able to read."""


class Grant(NamedTuple):
    """What one principal may do, or may not, with resources of a type."""

    principal: str
    host: str
    permission: str
    pattern_type: str
    resource_type: str
    operations: tuple[str, ...] = ()


def acl_lines(acls: Iterable[Acl], target: Target, leave_out: LeaveOut) -> Iterator[str]:
    """As few lines as have the same operations: each start of the tool takes a second or two."""
    operations: dict[tuple[Grant, str], list[str]] = {}
    for acl in acls:
        if not _can_be_named(acl):
            leave_out(f"ACL of {acl.principal} on {acl.resource_type} {acl.resource}: kafka-acls.sh can't name it")
            continue
        grant = Grant(acl.principal, acl.host, acl.permission, acl.pattern_type, acl.resource_type)
        operations.setdefault((grant, acl.resource), []).append(acl.operation)
    resources: dict[Grant, list[str]] = {}
    for (grant, resource), own in operations.items():
        resources.setdefault(grant._replace(operations=tuple(own)), []).append(resource)
    for grant, names in sorted(resources.items()):
        for start in range(0, len(names), MOST_RESOURCES):
            yield target.line("acls", *_words(grant, names[start : start + MOST_RESOURCES]))


def _can_be_named(acl: Acl) -> bool:
    names = (acl.resource, acl.principal, acl.host)
    codes = (acl.pattern_type, acl.operation, acl.permission)
    is_known = acl.resource_type in RESOURCE_OPTIONS and not any(code.isdigit() for code in codes)
    return is_known and all(map(is_plain, names))


def _words(grant: Grant, names: list[str]) -> Iterator[str]:
    side = grant.permission.lower()
    yield from ("--add", f"--{side}-principal", grant.principal, f"--{side}-host", grant.host)
    for operation in grant.operations:
        yield from ("--operation", "".join(part.capitalize() for part in operation.split("_")))
    option = RESOURCE_OPTIONS[grant.resource_type]
    for name in names:
        yield from (option,) if grant.resource_type == "CLUSTER" else (option, name)
    if grant.pattern_type != "LITERAL":
        yield from ("--resource-pattern-type", grant.pattern_type.lower())
