"""A script with Kafka's own tools that re-creates topics, settings, ACLs and quotas."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple, TypeAlias

from kseg.cluster.model import (
    METADATA_VERSION,
    Acl,
    ClusterMetadata,
    ClusterPartition,
    Config,
    Feature,
    Quota,
    QuotaEntity,
    ScramUser,
    Topic,
    entity_text,
    number_text,
)
from kseg.formats.codes import INTERNAL_TOPICS
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.system.terminal_text import escaped_text
from kseg.times import iso_time

LeaveOut: TypeAlias = Callable[[str], object]
"""Takes omitted things, in words."""
_UNITS = re.compile(rb"(..)", re.DOTALL)


class Target(NamedTuple):
    """The cluster to which the commands connect, with its address and client settings."""

    bootstrap_server: str
    command_config: str | None = None

    def line(self, tool: str, *arguments: str) -> str:
        """Return a command line for a Kafka tool with all arguments quoted."""
        config = () if self.command_config is None else ("--command-config", self.command_config)
        words = ("--bootstrap-server", self.bootstrap_server, *config, *arguments)
        return " ".join((f"kafka-{tool}.sh", *map(shlex.quote, words)))


def is_plain(name: str) -> bool:
    """Return True if a name can safely be copied from a line and passed to a tool."""
    return bool(name) and name.isprintable() and name == name.strip()


class Settings(NamedTuple):
    """The settings of a resource for `kafka-configs.sh`, as arguments or in a file."""

    plain: tuple[str, ...]
    in_file: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[tuple[str, str]]) -> "Settings":
        """Divide names and values. Source: ConfigCommand.parseConfigsToBeAdded, which takes brackets for quotes."""
        plain, in_file = [], []
        for name, value in values:
            if _is_for_command_line(name, value):
                plain.append(f"{name}=[{value}]" if re.search("[,=]", value) else f"{name}={value}")
            else:
                in_file.append(f"{_property(name)}={_property(value)}")
        return cls(tuple(plain), tuple(in_file))

    def lines(self, target: Target, *entity: str) -> Iterator[str]:
        """Yield the lines that set them for an entity, which options name."""
        alter = ("--alter", *entity)
        if self.plain:
            yield target.line("configs", *alter, "--add-config", ",".join(self.plain))
        if self.in_file:
            printed = shlex.join(("printf", "%s\\n", *self.in_file))
            yield f"{printed} | {target.line('configs', *alter, '--add-config-file', '/dev/stdin')}"


def _is_for_command_line(name: str, value: str) -> bool:
    is_name = is_plain(name) and not re.search(r"[\[\],=]", name)
    return is_name and (not value or (is_plain(value) and not re.search(r"[\[\]]", value)))


def _property(text: str) -> str:
    r"""Return a name or value of Java's properties, in ASCII: `\u00e9` for é. Source: java.util.Properties."""
    return "".join(each if each.isalnum() and each.isascii() else _escape(each) for each in text)


def _escape(character: str) -> str:
    if character in "-_./":
        return character
    return "".join(f"\\u{unit.hex()}" for unit in _UNITS.findall(character.encode("utf-16-be", "surrogatepass")))


RESOURCE_OPTIONS = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "CLUSTER": "--cluster",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}
MOST_RESOURCES = 40
"""The most resources in a line, so that it stays readable."""


class Grant(NamedTuple):
    """A principal's permitted or denied operations on resources of a type."""

    principal: str
    host: str
    permission: str
    pattern_type: str
    resource_type: str
    operations: tuple[str, ...] = ()


def acl_lines(acls: Iterable[Acl], target: Target, leave_out: LeaveOut) -> Iterator[str]:
    """Yield as few commands as possible, because the tool takes a second or two to start."""
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


ENTITY_TYPES = {
    "topic": "topics",
    "broker": "brokers",
    "client-metrics": "client-metrics",
    "group": "groups",
    "user": "users",
    "client-id": "clients",
    "ip": "ips",
}
"""The `kafka-configs.sh --entity-type` of a resource, or of a quota's entity."""


def feature_lines(features: Iterable[Feature], target: Target) -> Iterator[str]:
    """Yield a line for each feature: `metadata.version` first, which others need."""
    for feature in sorted(features, key=lambda each: (each.name != METADATA_VERSION, each)):
        yield target.line("features", "upgrade", "--feature", f"{feature.name}={feature.level}")


def config_lines(configs: Iterable[Config], target: Target, leave_out: LeaveOut) -> Iterator[str]:
    """Yield the settings of brokers, groups and other resources, without secrets."""
    for (kind, name), own in groupby(configs, key=lambda each: (each.resource_type, each.resource)):
        entity = ENTITY_TYPES.get(kind)
        if entity is None or (name and not is_plain(name)):
            leave_out(f"settings of {kind} {name}: kafka-configs.sh can't name it")
            continue
        named = ("--entity-name", name) if name else ("--entity-default",)
        values = [(each.name, each.value) for each in own]
        yield from Settings.of(values).lines(target, "--entity-type", entity, *named)


def quota_lines(quotas: Iterable[Quota], target: Target, leave_out: LeaveOut) -> Iterator[str]:
    """Yield a line for all quotas of a user, a client, both together or an address."""
    for entity, own in groupby(quotas, key=lambda each: each.entity):
        words = entity_words(entity)
        if words is None:
            leave_out(f"quotas of {entity_text(entity)}: kafka-configs.sh can't name it")
            continue
        values = ((each.name, number_text(each.value)) for each in own)
        yield from Settings.of(values).lines(target, *words)


def entity_words(entity: tuple[QuotaEntity, ...]) -> tuple[str, ...] | None:
    """Return the options that name an entity, the user before the client, or None if they can't."""
    words: list[str] = []
    for part in sorted(entity, key=lambda each: each.type != "user"):
        kind = ENTITY_TYPES.get(part.type)
        if kind is None or (part.name is not None and not is_plain(part.name)):
            return None
        words += ["--entity-type", kind]
        words += ["--entity-default"] if part.name is None else ["--entity-name", part.name]
    return tuple(words)


def scram_template(credential: ScramUser, target: Target) -> str | None:
    """Return the line that sets a user's new password, with a placeholder for it, or None if it can't name the user."""
    words = entity_words((QuotaEntity("user", credential.user),))
    if words is None:
        return None
    value = f"{credential.mechanism}=[iterations={credential.iterations},password=NEW-PASSWORD]"
    return target.line("configs", "--alter", *words, "--add-config", value)


def topic_lines(
    topics: Iterable[Topic], configs: Iterable[Config], target: Target, *, keeps_brokers: bool, leave_out: LeaveOut
) -> Iterator[str]:
    """Yield the lines for the given topics.

    Args:
        topics: in their order.
        configs: the settings of all of them, without secrets.
        target: the target cluster.
        keeps_brokers: name each replica's broker, which must then exist, instead of the number of replicas.
        leave_out: takes topics that can't be created this way.
    """
    values: dict[str, list[tuple[str, str]]] = {}
    for config in configs:
        values.setdefault(config.resource, []).append((config.name, config.value))
    for topic in topics:
        if not is_plain(topic.name) or not topic.partitions:
            leave_out(
                f"topic {topic.name}: " + ("it has no partitions" if is_plain(topic.name) else "not a valid topic name")
            )
            continue
        own = values.get(topic.name, [])
        at_once = [each for each in own if _is_simple(*each)]
        words = [word for name, value in at_once for word in ("--config", f"{name}={value}")]
        existing_option = ("--if-not-exists",) if topic.name in INTERNAL_TOPICS else ()
        places = _assignment(topic) if keeps_brokers else _counts(topic, leave_out)
        yield target.line("topics", "--create", *existing_option, "--topic", topic.name, *places, *words)
        later = Settings.of(each for each in own if each not in at_once)
        yield from later.lines(target, "--entity-type", "topics", "--entity-name", topic.name)


def _is_simple(name: str, value: str) -> bool:
    """Return True if --config takes a setting. Source: TopicCommand.parseTopicConfigsToBeAdded."""
    return is_plain(name) and is_plain(value) and "=" not in name + value


def _replicas(partition: ClusterPartition) -> tuple[int, ...]:
    """Return the final brokers of the replicas: a move counts as done."""
    return tuple(each for each in partition.replicas if each not in partition.removing_replicas) or partition.replicas


def _counts(topic: Topic, leave_out: LeaveOut) -> tuple[str, ...]:
    factors = {len(_replicas(partition)) for partition in topic.partitions}
    if len(factors) > 1:
        leave_out(
            f"topic {topic.name}: its partitions have {min(factors)} to {max(factors)} replicas; the script"
            f" gives all of them the most"
        )
    return "--partitions", str(len(topic.partitions)), "--replication-factor", str(max(factors))


def _assignment(topic: Topic) -> tuple[str, ...]:
    return "--replica-assignment", ",".join(":".join(map(str, _replicas(each))) for each in topic.partitions)


class CarryOver(NamedTuple):
    """The contents of a script: topics, a single kind of rows (None: all), and the target.

    keeps_brokers: each replica on the broker with the same id, instead of the same number of replicas.
    """

    target: Target
    choice: PartitionChoice = EVERY_PARTITION
    kind: str | None = None
    keeps_brokers: bool = False


class Script(NamedTuple):
    """The lines of a script, also comments; the number of commands; the omissions, in words."""

    lines: tuple[str, ...]
    command_count: int
    left_out: tuple[str, ...]


def carry_over_script(found: ClusterMetadata, wanted: CarryOver) -> Script:
    """Return a script that re-creates the state of a cluster in another cluster."""
    left_out: list[str] = []
    parts = [(heading, [*lines]) for heading, lines in _parts(found, wanted, left_out)]
    written = [line for heading, lines in parts if lines for line in ("", f"# {heading}", *lines)]
    if wanted.kind in (None, "scram"):
        written += _new_passwords(found, wanted.target)
    named = ["", "# Omitted:", *(f"#   {escaped_text(text)}" for text in left_out)] if left_out else []
    return Script((*_head(found), *written, *named), sum(len(lines) for _, lines in parts), tuple(left_out))


def _head(found: ClusterMetadata) -> Iterator[str]:
    yield "#!/bin/sh"
    moment = iso_time(found.timestamp)
    yield f"# A cluster's state at offset {found.offset} of its metadata{f', {moment}' if moment else ''}."
    yield "# Run it with `sh -e`, Kafka's bin directory in the PATH; it stops at the first line that fails."


def _parts(found: ClusterMetadata, wanted: CarryOver, left_out: list[str]) -> Iterator[tuple[str, Iterator[str]]]:
    target, leave_out = wanted.target, left_out.append
    open_configs = [each for each in found.configs if not each.is_secret]
    of_topics = [each for each in open_configs if each.resource_type == "topic"]
    others = [each for each in open_configs if each.resource_type != "topic"]
    topics = [topic for topic in found.topics if wanted.choice.takes_topic(topic.name)]

    def is_wanted(*kinds: str) -> bool:
        return wanted.kind is None or wanted.kind in kinds

    if is_wanted("features"):
        yield "Features: a line fails where the other cluster has a higher level", feature_lines(found.features, target)
    if is_wanted("topics", "partitions"):
        keeps_brokers = wanted.keeps_brokers
        lines = topic_lines(topics, of_topics, target, keeps_brokers=keeps_brokers, leave_out=leave_out)
        yield "Topics and their settings", lines
    if is_wanted("configs"):
        yield "Settings of brokers, groups and client metrics", config_lines(others, target, leave_out)
    if is_wanted("acls"):
        yield "ACLs", acl_lines(found.acls, target, leave_out)
    if is_wanted("quotas"):
        yield "Quotas", quota_lines(found.quotas, target, leave_out)
    left_out += _secrets(found, is_wanted("configs"), is_wanted("tokens"))


def _secrets(found: ClusterMetadata, has_configs: bool, has_tokens: bool) -> Iterator[str]:
    for config in found.configs:
        if has_configs and config.is_secret:
            yield f"{config.name} of {config.resource_type} {config.resource or '<default>'}: a secret"
    if has_tokens and found.tokens:
        yield f"{len(found.tokens)} delegation tokens: only brokers make them"


def _new_passwords(found: ClusterMetadata, target: Target) -> Iterator[str]:
    """Yield comments about the passwords that the metadata doesn't contain."""
    if found.scram:
        yield from ("", "# SCRAM credentials: passwords can't be read from them, so put new ones into these lines")
    for credential in found.scram:
        line = scram_template(credential, target)
        yield f"# {line}" if line else f"# {escaped_text(credential.user)}, {credential.mechanism}: can't be named"
