"""The options of `kseg ls` that a broker has as settings of topics, and how it lists by them."""

from typing import Any

import click

from kseg.commands.options import Command
from kseg.commands.parameters import int_number, long_number
from kseg.log.partition.listing import ListingSettings
from kseg.log.partition.roll import (
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_MS,
    UNLIMITED,
    RetentionSettings,
    RollSettings,
)
from kseg.system.page_cache import tells_cache
from kseg.times import now_ms

_OPTIONS = (
    click.option("--now", type=long_number(), metavar="MS", help="Time to judge retention by; the clock's by itself."),
    click.option(
        "--retention-ms",
        type=long_number(-1),
        default=RETENTION_MS,
        show_default=True,
        help="As retention.ms; -1 none.",
    ),
    click.option(
        "--retention-bytes",
        type=long_number(-1),
        default=UNLIMITED,
        show_default=True,
        help="As retention.bytes; -1 none.",
    ),
    click.option(
        "--segment-bytes", type=int_number(1), default=SEGMENT_BYTES, show_default=True, help="As segment.bytes."
    ),
    click.option("--segment-ms", type=long_number(1), default=SEGMENT_MS, show_default=True, help="As segment.ms."),
    click.option(
        "--segment-index-bytes",
        type=int_number(4),
        default=SEGMENT_INDEX_BYTES,
        show_default=True,
        help="As segment.index.bytes.",
    ),
)


def broker_settings_options(command: Command) -> Command:
    """`--now` … `--segment-index-bytes`, which `listing_settings` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def listing_settings(options: dict[str, Any]) -> ListingSettings:
    """How to list, as these options, `--deep`, `--cache` and `--keep-cache` ask for."""
    now = options["now"]
    return ListingSettings(
        RetentionSettings(now_ms() if now is None else now, options["retention_ms"], options["retention_bytes"]),
        RollSettings(options["segment_bytes"], options["segment_ms"], options["segment_index_bytes"]),
        options["deep"],
        options["cache"] and tells_cache(),
        options["keep_cache"],
    )
