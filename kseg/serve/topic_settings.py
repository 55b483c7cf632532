"""A topic's settings as Kafka 4.3 has them: types, defaults, and the brokers' settings that stand for them."""

from enum import IntEnum
from typing import NamedTuple

from kseg.kafka_defaults import (
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
    """A broker's setting in another unit, for when the one in milliseconds isn't set; default: "" for none."""

    name: str
    milliseconds: int
    default: str = ""


class TopicSetting(NamedTuple):
    """A setting: its name, type and default; the broker's setting for topics without an own one, "" if there is none.

    fallbacks: the first one that is set, or has a default, is taken in its place.
    """

    name: str
    type: SettingType
    default: str
    broker_name: str = ""
    fallbacks: tuple[Fallback, ...] = ()


_MINUTE, _HOUR = 60_000, 3_600_000
_FOREVER = str(2**63 - 1)

TOPIC_SETTINGS = (
    TopicSetting("cleanup.policy", SettingType.LIST, "delete", "log.cleanup.policy"),
    TopicSetting("compression.gzip.level", SettingType.INT, "-1", "compression.gzip.level"),
    TopicSetting("compression.lz4.level", SettingType.INT, "9", "compression.lz4.level"),
    TopicSetting("compression.type", SettingType.STRING, "producer", "compression.type"),
    TopicSetting("compression.zstd.level", SettingType.INT, "3", "compression.zstd.level"),
    TopicSetting("delete.retention.ms", SettingType.LONG, str(DELETE_RETENTION_MS), "log.cleaner.delete.retention.ms"),
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
    TopicSetting("max.message.bytes", SettingType.INT, "1048588", "message.max.bytes"),
    TopicSetting("message.timestamp.after.max.ms", SettingType.LONG, "3600000", "log.message.timestamp.after.max.ms"),
    TopicSetting("message.timestamp.before.max.ms", SettingType.LONG, _FOREVER, "log.message.timestamp.before.max.ms"),
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
"""All of them, by name. Source: TopicConfig, LogConfig, ServerTopicConfigSynonyms."""
