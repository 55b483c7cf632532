"""Options that are settings of Kafka's topics and brokers: under its names, with its defaults."""

from collections.abc import Callable
from typing import Any, NamedTuple

import click

from kseg.commands.options import Command
from kseg.commands.parameters import LARGEST_INT, Ratio, Size, long_number, size_text
from kseg.kafka_defaults import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    INDEX_INTERVAL_BYTES,
    MAX_COMPACTION_LAG_MS,
    MAXIMUM_TRANSACTION_MS,
    MIN_CLEANABLE_DIRTY_RATIO,
    PRODUCER_EXPIRATION_MS,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_MS,
    UNLIMITED,
)


class _Setting(NamedTuple):
    """What an option takes, without any, and says."""

    type: "click.ParamType[Any]"
    default: object
    meaning: str


SETTINGS = {
    "retention.ms": _Setting(long_number(-1), RETENTION_MS, "for how long records are kept; -1 for ever"),
    "retention.bytes": _Setting(Size(-1), UNLIMITED, "how much of a partition is kept; -1 for all"),
    "segment.bytes": _Setting(Size(1, LARGEST_INT), size_text(SEGMENT_BYTES), "the size at which segments roll"),
    "segment.ms": _Setting(long_number(1), SEGMENT_MS, "the time after which segments roll"),
    "segment.index.bytes": _Setting(
        Size(12, LARGEST_INT), size_text(SEGMENT_INDEX_BYTES), "the size of indexes at which segments roll"
    ),
    "index.interval.bytes": _Setting(
        Size(0, LARGEST_INT), size_text(INDEX_INTERVAL_BYTES), "the bytes between index entries"
    ),
    "delete.retention.ms": _Setting(long_number(), DELETE_RETENTION_MS, "for how long tombstones and markers stay"),
    "min.compaction.lag.ms": _Setting(long_number(), 0, "how old records are at least"),
    "max.compaction.lag.ms": _Setting(
        long_number(1), MAX_COMPACTION_LAG_MS, "how old records become before they are cleaned at any dirty ratio"
    ),
    "min.cleanable.dirty.ratio": _Setting(
        Ratio(), MIN_CLEANABLE_DIRTY_RATIO, "the dirty ratio from which on a partition is cleaned"
    ),
    "log.cleaner.dedupe.buffer.size": _Setting(
        Size(48), size_text(DEDUPE_BUFFER_SIZE), "memory of the offset map, 24 bytes a key; more keys take more passes"
    ),
    "producer.id.expiration.ms": _Setting(
        long_number(1), PRODUCER_EXPIRATION_MS, "for how long the last batch of an idle producer is kept"
    ),
    "transaction.max.timeout.ms": _Setting(
        long_number(), MAXIMUM_TRANSACTION_MS, "a transaction with a younger last record doesn't hang"
    ),
}
"""By Kafka's names of them."""


def setting_options(*names: str, **own: Any) -> Callable[[Command], Command]:
    """An option for each of these settings; `own` is what click is to be told otherwise."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            setting = SETTINGS[name]
            told = {
                "type": setting.type,
                "default": setting.default,
                "show_default": True,
                "help": f"As {name}: {setting.meaning}.",
            }
            command = click.option(option_of(name), **{**told, **own})(command)
        return command

    return decorate


def option_of(name: str) -> str:
    """The option for a setting."""
    return f"--{name.replace('.', '-')}"
