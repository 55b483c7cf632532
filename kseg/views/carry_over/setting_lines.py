"""`kafka-features.sh` and `kafka-configs.sh` lines: features, settings, quotas."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from kseg.views.access import Quota, QuotaEntity, ScramUser, entity_text, number_text
from kseg.views.carry_over.tool_line import LeaveOut, Settings, Target, is_plain
from kseg.views.cluster import Config, Feature

ENTITY_TYPES = {
    "topic": "topics",
    "broker": "brokers",
    "client-metrics": "client-metrics",
    "group": "groups",
    "user": "users",
    "client-id": "clients",
    "ip": "ips",
}
"""What `kafka-configs.sh --entity-type` calls a resource, or a quota's entity."""
METADATA_VERSION = "metadata.version"


def feature_lines(features: Iterable[Feature], target: Target) -> Iterator[str]:
    """A line for each feature: `metadata.version` first, which others need."""
    for feature in sorted(features, key=lambda each: (each.name != METADATA_VERSION, each)):
        yield target.line("features", "upgrade", "--feature", f"{feature.name}={feature.level}")


def config_lines(configs: Iterable[Config], target: Target, leave_out: LeaveOut) -> Iterator[str]:
    """The settings of brokers, groups and what else has some; secrets are left out."""
    for (kind, name), own in groupby(configs, key=lambda each: (each.resource_type, each.resource)):
        entity = ENTITY_TYPES.get(kind)
        if entity is None or (name and not is_plain(name)):
            leave_out(f"settings of {kind} {name}: kafka-configs.sh can't name it")
            continue
        named = ("--entity-name", name) if name else ("--entity-default",)
        values = [(each.name, each.value) for each in own]
        yield from Settings.of(values).lines(target, "--entity-type", entity, *named)


def quota_lines(quotas: Iterable[Quota], target: Target, leave_out: LeaveOut) -> Iterator[str]:
    """A line for all quotas of a user, a client, both together or an address."""
    for entity, own in groupby(quotas, key=lambda each: each.entity):
        words = entity_words(entity)
        if words is None:
            leave_out(f"quotas of {entity_text(entity)}: kafka-configs.sh can't name it")
            continue
        values = ((each.name, number_text(each.value)) for each in own)
        yield from Settings.of(values).lines(target, *words)


def entity_words(entity: tuple[QuotaEntity, ...]) -> tuple[str, ...] | None:
    """The options that name an entity, the user before the client; None if they can't."""
    words: list[str] = []
    for part in sorted(entity, key=lambda each: each.type != "user"):
        kind = ENTITY_TYPES.get(part.type)
        if kind is None or (part.name is not None and not is_plain(part.name)):
            return None
        words += ["--entity-type", kind]
        words += ["--entity-default"] if part.name is None else ["--entity-name", part.name]
    return tuple(words)


def scram_template(credential: ScramUser, target: Target) -> str | None:
    """The line that gives a user a new password, which is to be put in; None if it can't name the user."""
    words = entity_words((QuotaEntity("user", credential.user),))
    if words is None:
        return None
    value = f"{credential.mechanism}=[iterations={credential.iterations},password=NEW-PASSWORD]"
    return target.line("configs", "--alter", *words, "--add-config", value)
