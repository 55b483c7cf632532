"""Selections of records as command options, and the message for an empty selection."""

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from shlex import quote

from kseg.errors import OpenError, plural
from kseg.formats.codes import NO_TIMESTAMP
from kseg.kernel.contract import MOST
from kseg.log.partition import PartitionLog
from kseg.log.selection import Selection
from kseg.system.placed_path import StrPath, as_path
from kseg.times import iso_time, time_text


def asked_text(selection: Selection, zone: tzinfo = UTC) -> str:
    """Return the options of a selection, with the values that kseg made of them."""
    return " ".join(_list_options(selection, zone))


def _moment(timestamp: int | None, zone: tzinfo) -> str | None:
    return iso_time(timestamp, zone) or (f"{timestamp}ms" if timestamp is not None and timestamp >= 0 else None)


def _list_options(selection: Selection, zone: tzinfo) -> Iterator[str]:
    for option, value in (
        ("--from-offset", selection.from_offset),
        ("--to-offset", selection.to_offset),
        ("--from-time", _moment(selection.from_time, zone)),
        ("--to-time", _moment(selection.to_time, zone)),
        ("--key", _bytes_text(selection.key)),
        ("--key-regex", selection.key_regex),
        ("--grep", selection.grep),
        ("--producer-id", selection.producer_id),
        ("--limit", selection.limit if selection.limit == 0 else None),
        ("--tail", selection.tail if selection.tail == 0 else None),
        ("--sample", selection.sample),
    ):
        if value is not None:
            yield f"{option} {quote(str(value))}"
    for name, header_value in selection.headers:
        wanted = f"{_bytes_text(name)}{'' if header_value is None else f'={_bytes_text(header_value)}'}"
        yield f"--header {quote(wanted)}"
    for option, is_asked in (
        ("--transactional-only", selection.transactional_only),
        ("--control", selection.is_control),
        ("--no-control", selection.is_control is False),
        ("--isolation read_committed", selection.is_committed),
    ):
        if is_asked:
            yield option


def _bytes_text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"hex:{value.hex()}"


def no_match_line(selection: Selection, directories: Sequence[StrPath], zone: tzinfo = UTC) -> str:
    """Return the message for an empty selection: the searched places, the selection, and the nearest hints."""
    through = _extent(directories[0]) if len(directories) == 1 else f"in {plural(len(directories), 'partition')}"
    times = _times(directories, zone) if selection.has_times else ""
    return f"no record {through} matches {asked_text(selection, zone)}{times}{''.join(_hints(selection))}"


def _times(directories: Sequence[StrPath], zone: tzinfo) -> str:
    """Return the range of timestamps in partitions, as far as it can be read."""
    from kseg.log.listing import ListingSettings, list_partition
    from kseg.log.segments import RetentionSettings

    settings = ListingSettings(RetentionSettings(0))
    first, last = MOST, NO_TIMESTAMP
    for directory in directories:
        try:
            segments = list_partition(PartitionLog(as_path(directory)), settings).segments
        except OpenError:
            continue
        first = min([first, *(each.first_timestamp for each in segments if each.first_timestamp >= 0)])
        last = max([last, *(each.largest_timestamp for each in segments)])
    return (
        (f"; the timestamps are from {time_text(min(first, last), zone)} to {time_text(last, zone)}")
        if last >= 0
        else ""
    )


def _extent(directory: StrPath) -> str:
    """Return the offsets of a partition's logs, as far as they can be read, and its directory."""
    try:
        log = PartitionLog(as_path(directory))
        start, end = log.disk_start_offset, log.read_log_end_offset()
    except OpenError:
        return f"in {directory}"
    return f"in {directory}, offsets {start} to {end - 1}," if end > start else f"in {directory}, which is empty,"


def _hints(selection: Selection) -> Iterator[str]:
    if selection.key is not None:
        yield "; --key compares complete keys; use --key-regex to find parts"
    if selection.grep is not None:
        yield "; --grep searches values as stored, before any decoder"
    if selection.has_times:
        yield "; a time range never includes records without a timestamp"
    if selection.is_committed:
        yield "; read_committed excludes aborted records, and all records from the last stable offset on"
