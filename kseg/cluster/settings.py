"""A topic's settings in force: its own, its broker's, the cluster's defaults, server.properties, Kafka's own."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.directories import broker_of
from kseg.formats.codes import (
    DELETE_RETENTION_MS,
    INDEX_INTERVAL_BYTES,
    MAX_COMPACTION_LAG_MS,
    MIN_CLEANABLE_DIRTY_RATIO,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_MS,
    UNLIMITED,
)
from kseg.log.partition import COMPACTED_TOPICS

if TYPE_CHECKING:
    from kseg.cluster.model import Broker, ClusterMetadata

NO_SETTINGS: Mapping[str, str] = {}
CLEANUP_POLICY, COMPACT = "cleanup.policy", "compact"


class SettingType(IntEnum):
    """Types of values. Source: DescribeConfigsResponse.ConfigType."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Fallback(NamedTuple):
    """A broker setting that uses another unit, which applies if the setting in milliseconds isn't set."""

    name: str
    milliseconds: int
    default: str = ""


class TopicSetting(NamedTuple):
    """A setting: its name, type and default; the broker's setting for topics without their own, "" if there is none.

    fallbacks: the first one that is set, or has a default, replaces it. since, until: the levels of `metadata.version`
    of the releases with this setting.
    """

    name: str
    type: SettingType
    default: str
    broker_name: str = ""
    fallbacks: tuple[Fallback, ...] = ()
    since: int = 0
    until: int = 2**15 - 1


_LEVEL_3_9, _LEVEL_4_0, _LEVEL_4_4 = 21, 22, 31
"""Levels of `metadata.version`: the last of 3.9, the first of 4.0, the first of 4.4. Source: MetadataVersion."""
_MINUTE, _HOUR = 60_000, 3_600_000
_FOREVER = str(2**63 - 1)

TOPIC_SETTINGS = (
    TopicSetting(CLEANUP_POLICY, SettingType.LIST, "delete", "log.cleanup.policy"),
    TopicSetting("compression.gzip.level", SettingType.INT, "-1", "compression.gzip.level"),
    TopicSetting("compression.lz4.level", SettingType.INT, "9", "compression.lz4.level"),
    TopicSetting("compression.type", SettingType.STRING, "producer", "compression.type"),
    TopicSetting("compression.zstd.level", SettingType.INT, "3", "compression.zstd.level"),
    TopicSetting("delete.retention.ms", SettingType.LONG, str(DELETE_RETENTION_MS), "log.cleaner.delete.retention.ms"),
    TopicSetting("errors.deadletterqueue.group.enable", SettingType.BOOLEAN, "false", since=_LEVEL_4_4),
    TopicSetting("file.delete.delay.ms", SettingType.LONG, "60000", "log.segment.delete.delay.ms"),
    TopicSetting("flush.messages", SettingType.LONG, _FOREVER, "log.flush.interval.messages"),
    TopicSetting(
        "flush.ms",
        SettingType.LONG,
        _FOREVER,
        "log.flush.interval.ms",
        (Fallback("log.flush.scheduler.interval.ms", 1, _FOREVER),),
    ),
    TopicSetting("follower.replication.throttled.replicas", SettingType.LIST, ""),
    TopicSetting("index.interval.bytes", SettingType.INT, str(INDEX_INTERVAL_BYTES), "log.index.interval.bytes"),
    TopicSetting("leader.replication.throttled.replicas", SettingType.LIST, ""),
    TopicSetting("local.retention.bytes", SettingType.LONG, "-2", "log.local.retention.bytes"),
    TopicSetting("local.retention.ms", SettingType.LONG, "-2", "log.local.retention.ms"),
    TopicSetting(
        "max.compaction.lag.ms", SettingType.LONG, str(MAX_COMPACTION_LAG_MS), "log.cleaner.max.compaction.lag.ms"
    ),
    TopicSetting(
        "max.decompressed.message.bytes",
        SettingType.INT,
        "2147483639",
        "max.decompressed.message.bytes",
        since=_LEVEL_4_4,
    ),
    TopicSetting("max.message.bytes", SettingType.INT, "1048588", "message.max.bytes"),
    TopicSetting(
        "message.downconversion.enable",
        SettingType.BOOLEAN,
        "true",
        "log.message.downconversion.enable",
        until=_LEVEL_3_9,
    ),
    TopicSetting(
        "message.format.version", SettingType.STRING, "3.0-IV1", "log.message.format.version", until=_LEVEL_3_9
    ),
    TopicSetting(
        "message.timestamp.after.max.ms",
        SettingType.LONG,
        _FOREVER,
        "log.message.timestamp.after.max.ms",
        until=_LEVEL_3_9,
    ),
    TopicSetting(
        "message.timestamp.after.max.ms",
        SettingType.LONG,
        "3600000",
        "log.message.timestamp.after.max.ms",
        since=_LEVEL_4_0,
    ),
    TopicSetting("message.timestamp.before.max.ms", SettingType.LONG, _FOREVER, "log.message.timestamp.before.max.ms"),
    TopicSetting(
        "message.timestamp.difference.max.ms",
        SettingType.LONG,
        _FOREVER,
        "log.message.timestamp.difference.max.ms",
        until=_LEVEL_3_9,
    ),
    TopicSetting("message.timestamp.type", SettingType.STRING, "CreateTime", "log.message.timestamp.type"),
    TopicSetting(
        "min.cleanable.dirty.ratio",
        SettingType.DOUBLE,
        str(MIN_CLEANABLE_DIRTY_RATIO),
        "log.cleaner.min.cleanable.ratio",
    ),
    TopicSetting("min.compaction.lag.ms", SettingType.LONG, "0", "log.cleaner.min.compaction.lag.ms"),
    TopicSetting("min.insync.replicas", SettingType.INT, "1", "min.insync.replicas"),
    TopicSetting("preallocate", SettingType.BOOLEAN, "false", "log.preallocate"),
    TopicSetting("remote.copy.lag.bytes", SettingType.LONG, "-1", "log.remote.copy.lag.bytes", since=_LEVEL_4_4),
    TopicSetting("remote.copy.lag.ms", SettingType.LONG, "0", "log.remote.copy.lag.ms", since=_LEVEL_4_4),
    TopicSetting("remote.log.copy.disable", SettingType.BOOLEAN, "false"),
    TopicSetting("remote.log.delete.on.disable", SettingType.BOOLEAN, "false"),
    TopicSetting("remote.storage.enable", SettingType.BOOLEAN, "false"),
    TopicSetting("retention.bytes", SettingType.LONG, str(UNLIMITED), "log.retention.bytes"),
    TopicSetting(
        "retention.ms",
        SettingType.LONG,
        str(RETENTION_MS),
        "log.retention.ms",
        (Fallback("log.retention.minutes", _MINUTE), Fallback("log.retention.hours", _HOUR, "168")),
    ),
    TopicSetting("segment.bytes", SettingType.INT, str(SEGMENT_BYTES), "log.segment.bytes"),
    TopicSetting("segment.index.bytes", SettingType.INT, str(SEGMENT_INDEX_BYTES), "log.index.size.max.bytes"),
    TopicSetting(
        "segment.jitter.ms",
        SettingType.LONG,
        "0",
        "log.roll.jitter.ms",
        (Fallback("log.roll.jitter.hours", _HOUR, "0"),),
    ),
    TopicSetting(
        "segment.ms", SettingType.LONG, str(SEGMENT_MS), "log.roll.ms", (Fallback("log.roll.hours", _HOUR, "168"),)
    ),
    TopicSetting("unclean.leader.election.enable", SettingType.BOOLEAN, "false", "unclean.leader.election.enable"),
)
"""All of them from 3.9 on, by name. Source: TopicConfig, LogConfig, ServerTopicConfigSynonyms."""


class SettingSource(IntEnum):
    """The source of a setting. Source: DescribeConfigsResponse.ConfigSource."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8

    def text(self) -> str:
        """Return the source for people."""
        return _SOURCE_TEXTS[self]


_SOURCE_TEXTS = {
    SettingSource.TOPIC: "topic",
    SettingSource.BROKER: "broker",
    SettingSource.ALL_BROKERS: "cluster default",
    SettingSource.STATIC: "server.properties",
    SettingSource.DEFAULT: "Kafka's default",
    SettingSource.CLIENT_METRICS: "client metrics",
    SettingSource.GROUP: "group",
}


class Synonym(NamedTuple):
    """A setting that takes effect if the ones before it aren't set."""

    name: str
    value: str
    source: SettingSource


class ResolvedSetting(NamedTuple):
    """A setting in force; synonyms: the first one decides, unless a default is in another unit."""

    name: str
    value: str
    type: SettingType
    synonyms: tuple[Synonym, ...]
    is_hidden: bool = False

    @property
    def has_broker_name(self) -> bool:
        """True if a broker has a setting for topics that don't set it."""
        return self.name in _WITH_BROKER_NAME

    @property
    def source(self) -> SettingSource:
        """The source of its value."""
        return self.synonyms[0].source if self.synonyms else SettingSource.DEFAULT


_WITH_BROKER_NAME = frozenset(setting.name for setting in TOPIC_SETTINGS if setting.broker_name)


class BrokerSettings(NamedTuple):
    """A broker's settings by their sources; the first source that has a setting decides.

    level: the highest `metadata.version` that the broker supports, which gives its release; None for the newest.
    """

    sources: tuple[tuple[SettingSource, Mapping[str, str]], ...]
    level: int | None = None

    def synonyms(self, name: str) -> Iterator[Synonym]:
        """Yield the settings of a name, the one in effect first."""
        return (Synonym(name, found[name], source) for source, found in self.sources if name in found)

    def topic_settings(self) -> Iterator[TopicSetting]:
        """Yield the settings that the broker's release has for a topic."""
        level = _LEVEL_4_4 if self.level is None else max(self.level, _LEVEL_3_9)
        return (each for each in TOPIC_SETTINGS if each.since <= level <= each.until)


def read_server_properties(path: Path) -> Mapping[str, str]:
    """Read a broker's server.properties. Raises OpenError if it can't be opened, KsegError if it can't be read."""
    from kseg.formats.checkpoints import parse_meta_properties
    from kseg.system.files import read_text_file

    return dict(parse_meta_properties(read_text_file(path)).properties)


class DynamicSettings:
    """The settings in a cluster's metadata, and its brokers' releases."""

    def __init__(self, metadata: "ClusterMetadata | None" = None) -> None:
        self._by_resource: dict[tuple[str, str], dict[str, str]] = {}
        self._levels: dict[int, int] = {}
        self._brokers: frozenset[int] = frozenset()
        if metadata is not None:
            self._brokers = frozenset(broker.broker_id for broker in metadata.brokers)
            for each in metadata.configs:
                self._by_resource.setdefault((each.resource_type, each.resource), {})[each.name] = each.value
            self._levels = _levels_of(metadata.brokers)

    def of(self, kind: str, name: str) -> Mapping[str, str]:
        """Return a resource's own settings; a broker's name is its id, "" stands for all."""
        return self._by_resource.get((kind, name), NO_SETTINGS)

    def brokers_among(self, owners: Iterable[int | None], static: Mapping[str, str] = NO_SETTINGS) -> frozenset[int]:
        """Return the possible brokers: the one of a server.properties, else the owners that aren't controllers.

        If none of the owners is registered, all of them are possible.

        Args:
            owners: node ids in the `meta.properties` of log directories.
            static: the settings of the server.properties.
        """
        named = broker_of(static)
        if named is not None:
            return frozenset((named,))
        known = frozenset(each for each in owners if each is not None)
        return self._brokers & known or known

    def of_the_broker(self, owners: Iterable[int | None], static: Mapping[str, str] = NO_SETTINGS) -> BrokerSettings:
        """Return the settings of the only possible broker; of several brokers, only settings for all brokers count."""
        return self.of_broker(self.only_broker(owners, static), static)

    def only_broker(self, owners: Iterable[int | None], static: Mapping[str, str] = NO_SETTINGS) -> int | None:
        """Return the only possible broker, or None if there are several, or none."""
        brokers = self.brokers_among(owners, static)
        return next(iter(brokers)) if len(brokers) == 1 else None

    def of_owner(self, owner: int, static: Mapping[str, str] = NO_SETTINGS) -> BrokerSettings:
        """Return the settings of a log directory's broker, without another broker's server.properties.

        owner: the node id in its `meta.properties`.
        """
        return self.of_broker(owner, static if broker_of(static) in (None, owner) else NO_SETTINGS)

    def of_broker(self, broker: int | None, static: Mapping[str, str] = NO_SETTINGS) -> BrokerSettings:
        """Return the settings of a broker, None for an unknown one; static: by its server.properties."""
        own = NO_SETTINGS if broker is None else self.of("broker", str(broker))
        return BrokerSettings(
            (
                (SettingSource.BROKER, own),
                (SettingSource.ALL_BROKERS, self.of("broker", "")),
                (SettingSource.STATIC, static),
            ),
            self._levels.get(-1 if broker is None else broker, max(self._levels.values(), default=None)),
        )


def _levels_of(brokers: "Iterable[Broker]") -> dict[int, int]:
    """Return the highest `metadata.version` that each broker supports, as far as the brokers registered it."""
    from kseg.cluster.model import METADATA_VERSION

    return {
        broker.broker_id: feature.maximum
        for broker in brokers
        for feature in broker.features
        if feature.name == METADATA_VERSION
    }


def is_compacted_at_least(policy: str | None, was_cleaned: Callable[[], bool]) -> bool:
    """Return True if the disks show that a topic without metadata was compacted, perhaps besides deletion.

    policy: its broker's setting for topics that don't set it. was_cleaned: the cleaner cleaned one of its partitions.
    In this case the topic itself sets compaction if its broker doesn't.
    """
    return COMPACT not in policies_in(policy or "") and was_cleaned()


def policies_in(value: str) -> list[str]:
    """Return the policies in a value of `cleanup.policy`."""
    return [each.strip() for each in value.split(",")]


def shown_settings(topic: str, brokers: BrokerSettings, was_cleaned: Callable[[], bool]) -> dict[str, str]:
    """Return the settings of a topic without metadata that the disks show: its cleanup policy, or nothing."""
    policy = set_for_topics(brokers).get(CLEANUP_POLICY)
    is_compacted = topic in COMPACTED_TOPICS or is_compacted_at_least(policy, was_cleaned)
    return {CLEANUP_POLICY: COMPACT} if is_compacted else {}


def resolve_all(own: Mapping[str, str], brokers: BrokerSettings) -> Iterator[ResolvedSetting]:
    """Yield all settings of a topic with some of its own; those unknown to kseg come last."""
    left = dict(own)
    for setting in brokers.topic_settings():
        yield resolve(setting, left.pop(setting.name, None), brokers)
    for name, value in sorted(left.items()):
        yield ResolvedSetting(name, value, SettingType.UNKNOWN, (Synonym(name, value, SettingSource.TOPIC),))


def set_for_topics(brokers: BrokerSettings) -> dict[str, str]:
    """Return the brokers' settings for topics that don't set them, by the topics' names."""
    wanted = (setting for setting in brokers.topic_settings() if _is_set(setting, brokers))
    return {setting.name: resolve(setting, None, brokers).value for setting in wanted}


def _is_set(setting: TopicSetting, brokers: BrokerSettings) -> bool:
    names = (setting.broker_name, *(each.name for each in setting.fallbacks))
    return any(name in found for name in names for _, found in brokers.sources)


def resolve(setting: TopicSetting, own: str | None, brokers: BrokerSettings) -> ResolvedSetting:
    """Return a topic setting: its own, the broker's, or Kafka's default. Source: ServerTopicConfigSynonyms."""
    synonyms = [] if own is None else [Synonym(setting.name, own, SettingSource.TOPIC)]
    of_broker = list(brokers.synonyms(setting.broker_name)) if setting.broker_name else []
    value = own if own is not None else of_broker[0].value if of_broker else setting.default
    if not setting.fallbacks and setting.broker_name:
        of_broker.append(Synonym(setting.broker_name, setting.default, SettingSource.DEFAULT))
    elif of_broker:
        of_broker += _fallback_synonyms(setting, brokers)
    elif own is None:
        value = _in_milliseconds(setting, brokers)
    return ResolvedSetting(setting.name, value, setting.type, (*synonyms, *of_broker))


def _fallback_synonyms(setting: TopicSetting, brokers: BrokerSettings) -> Iterator[Synonym]:
    for fallback in setting.fallbacks:
        yield from brokers.synonyms(fallback.name)
        if fallback.default:
            yield Synonym(fallback.name, fallback.default, SettingSource.DEFAULT)


def _in_milliseconds(setting: TopicSetting, brokers: BrokerSettings) -> str:
    """Return the value of the first fallback that is set; the default otherwise."""
    found = _fallback_in_effect(setting, brokers)
    return setting.default if found is None else str(max(int(found[1].value) * found[0].milliseconds, -1))


def whole_number(value: str, least: int = -sys.maxsize) -> int | None:
    """Return a setting's value as a number, or None for another text, and for less than `least`.

    Source: ConfigDef.parseType: spaces around it are ignored, and a sign is allowed.
    """
    text = value.strip()
    number = int(text) if re.fullmatch("[+-]?[0-9]{1,19}", text) else None
    return None if number is None or number < least else number


def _fallback_in_effect(setting: TopicSetting, brokers: BrokerSettings) -> tuple[Fallback, Synonym] | None:
    for fallback in setting.fallbacks:
        found = next(brokers.synonyms(fallback.name), None)
        if found is not None and whole_number(found.value) is not None:
            return fallback, found
    return None


def source_of(name: str, own: str | None, brokers: BrokerSettings) -> SettingSource:
    """Return the source of a topic setting, also if a broker sets it in another unit.

    For the latter, `resolve` has no synonym, like a broker's answer.
    """
    setting = next(each for each in TOPIC_SETTINGS if each.name == name)
    resolved = resolve(setting, own, brokers)
    fallback = None if resolved.synonyms else _fallback_in_effect(setting, brokers)
    return resolved.source if fallback is None else fallback[1].source
