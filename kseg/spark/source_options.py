"""The data source's options: its own, and spark-sql-kafka's, which are taken or named as useless here."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from kseg.errors import UsageError
from kseg.export.settings import MIB

SPLIT_SIZE = 128 * MIB
PARTITION_CHOICES = ("subscribe", "subscribePattern", "assign")
DEFAULTS: dict[str, str | None] = {
    "path": None,
    "paths": None,
    "subscribe": None,
    "subscribePattern": None,
    "assign": None,
    "startingOffsets": None,
    "startingOffsetsByTimestamp": None,
    "startingTimestamp": None,
    "startingOffsetsByTimestampStrategy": "error",
    "endingOffsets": None,
    "endingOffsetsByTimestamp": None,
    "endingTimestamp": None,
    "includeHeaders": "false",
    "includeBatch": "false",
    "includeControl": "false",
    "failOnDataLoss": "true",
    "mode": None,
    "minPartitions": "1",
    "maxOffsetsPerTrigger": None,
    "minOffsetsPerTrigger": None,
    "maxTriggerDelay": "15m",
    "kafka.isolation.level": "read_uncommitted",
    "splitSize": str(SPLIT_SIZE),
    "pushdown": "false",
    "table": "records",
}
"""Each option and its default."""
STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""Those that a batch query doesn't use."""
BATCH_ONLY = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
"""Those that a stream refuses, as the connector's does."""
_UNUSED = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "maxRecordsPerPartition",
)
"""Options of the connector that ask nothing of files."""
_CONSUMERS = "kafka."
"""Begins the names of the connector's settings for Kafka's consumer."""
_KNOWN = {name.lower(): name for name in (*DEFAULTS, *_UNUSED)}


def parse_options(given: Mapping[str, str]) -> dict[str, str | None]:
    """The options with their defaults, by names in small letters.

    Raises UsageError if they are unknown, or contradict each other.
    """
    own = {name.lower(): value for name, value in given.items()}
    for name in own:
        if name not in _KNOWN and not name.startswith(_CONSUMERS):
            raise UsageError(_unknown(name))
    if len([name for name in PARTITION_CHOICES if name.lower() in own]) > 1:
        raise UsageError(f"only one of {', '.join(PARTITION_CHOICES)} can be given")
    return {name.lower(): own.get(name.lower(), default) for name, default in DEFAULTS.items()}


def unused(given: Iterable[str], also: Iterable[str]) -> list[str]:
    """The names of options that ask nothing of files, and of those in `also`."""
    useful = {name.lower() for name in DEFAULTS} - {name.lower() for name in also}
    return sorted(_KNOWN.get(name.lower(), name) for name in given if name.lower() not in useful)


def _unknown(name: str) -> str:
    near = get_close_matches(name, _KNOWN, 1)
    hint = f"did you mean {_KNOWN[near[0]]}?" if near else f"it has {', '.join(DEFAULTS)}"
    return f"the data source has no option {name!r}; {hint}"
