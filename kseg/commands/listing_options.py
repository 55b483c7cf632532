"""The options of `kseg ls` that a broker has as settings of topics, and how it lists by them."""

from datetime import tzinfo
from typing import Any

from kseg.commands.options import Command, now_option
from kseg.commands.setting_options import setting_options
from kseg.log.partition.listing import ListingSettings
from kseg.log.partition.roll import RetentionSettings, RollSettings
from kseg.system.page_cache import tells_cache
from kseg.times import now_ms, time_or_none

_SETTINGS = ("retention.ms", "retention.bytes", "segment.bytes", "segment.ms", "segment.index.bytes")


def broker_settings_options(command: Command) -> Command:
    """`--now` … `--segment-index-bytes`, which `listing_settings` takes."""
    return now_option(setting_options(*_SETTINGS)(command))


def listing_settings(options: dict[str, Any], zone: tzinfo) -> ListingSettings:
    """How to list, as these options, `--deep`, `--cache` and `--keep-cache` ask for; `zone`: of a time without one."""
    now = time_or_none(options["now"], zone)
    return ListingSettings(
        RetentionSettings(now_ms() if now is None else now, options["retention_ms"], options["retention_bytes"]),
        RollSettings(options["segment_bytes"], options["segment_ms"], options["segment_index_bytes"]),
        options["deep"],
        options["cache"] and tells_cache(),
        options["keep_cache"],
    )
