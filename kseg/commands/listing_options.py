"""The options of `kseg ls` that a broker has as settings of topics, and how it lists by them."""

from datetime import tzinfo
from typing import Any

from kseg.commands.options import Command, now_option
from kseg.commands.setting_options import setting_options
from kseg.log.partition.cleaning import CleaningSettings
from kseg.log.partition.listing import ListingSettings
from kseg.log.partition.roll import RetentionSettings, RollSettings
from kseg.system.page_cache import tells_cache
from kseg.times import now_ms, time_or_none

_SETTINGS = (
    "retention.ms",
    "retention.bytes",
    "segment.bytes",
    "segment.ms",
    "segment.index.bytes",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "log.cleaner.dedupe.buffer.size",
)

OF_TOPICS = (
    "retention_ms",
    "retention_bytes",
    "min_cleanable_dirty_ratio",
    "min_compaction_lag_ms",
    "max_compaction_lag_ms",
)
"""Those options that hold for all topics if they are given, and otherwise unless a topic has its own setting."""


def broker_settings_options(command: Command) -> Command:
    """`--now` … `--log-cleaner-dedupe-buffer-size`, which `listing_settings` takes."""
    return now_option(setting_options(*_SETTINGS)(command))


def listing_settings(options: dict[str, Any], zone: tzinfo) -> ListingSettings:
    """How to list, as these options, `--deep`, `--cache` and `--keep-cache` ask for; `zone`: of a time without one."""
    wanted = time_or_none(options["now"], zone)
    now = now_ms() if wanted is None else wanted
    return ListingSettings(
        RetentionSettings(now, options["retention_ms"], options["retention_bytes"]),
        RollSettings(options["segment_bytes"], options["segment_ms"], options["segment_index_bytes"]),
        options["deep"],
        options["cache"] and tells_cache(),
        options["keep_cache"],
        CleaningSettings(
            now,
            options["min_cleanable_dirty_ratio"],
            options["min_compaction_lag_ms"],
            options["max_compaction_lag_ms"],
            options["log_cleaner_dedupe_buffer_size"],
        ),
    )
