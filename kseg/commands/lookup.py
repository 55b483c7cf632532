"""`kseg lookup`: where an offset or a time lies, and the way there."""

import re
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import (
    output_option,
    partition_options,
    quiet_option,
    raw_option,
    redact_options,
    redaction_of,
)
from kseg.commands.parameters import long_number
from kseg.commands.selection_options import selection_of, selection_options
from kseg.errors import UsageError
from kseg.log.lookup.lookup import (
    SPECIAL_TIME_OF_CODE,
    Lookup,
    SpecialTime,
    lookup_offset,
    lookup_selected,
    lookup_time,
)
from kseg.log.partition.log_dir import partitions_at
from kseg.log.partition.partition_log import PartitionLog
from kseg.output.lookup import absence_line, lookup_lines, lookup_object
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line, write_stdout
from kseg.output.talk import talk
from kseg.times import parse_time, parse_zone

if TYPE_CHECKING:
    from kseg.log.partition.remote_tier import RemoteTier
    from kseg.redaction import Redaction


def _target_time(text: str, zone: tzinfo) -> int | SpecialTime:
    """A special time, by its name or Kafka's code; or milliseconds. Raises UsageError for anything else."""
    if text in list(SpecialTime):
        return SpecialTime(text)
    if re.fullmatch("-[0-9]{1,19}", text):
        if int(text) not in SPECIAL_TIME_OF_CODE:
            codes = ", ".join(f"{code} {special}" for code, special in SPECIAL_TIME_OF_CODE.items())
            raise UsageError(f"{text}: below 0 there are {codes}")
        return SPECIAL_TIME_OF_CODE[int(text)]
    return parse_time(text, zone)


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@click.option("--offset", type=long_number(), help="Look for this offset.")
@click.option(
    "--timestamp", metavar="TIME", help="Look for the first record of this time or later, or earliest, latest, …"
)
@partition_options
@selection_options("limit", "tail", "sample", "is_followed")
@click.option("--print-data-log", is_flag=True, help="Print the record's key and payload.")
@redact_options
@output_option("text", "json")
@raw_option
@quiet_option
@reads_archives("path")
@click.pass_context
def lookup(
    command: click.Context,
    /,
    path: Path,
    offset: int | None,
    timestamp: str | None,
    topic: str | None,
    partition: int | None,
    print_data_log: bool,
    output: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Find the record of an offset or of a time, and show the way: segment, index entry, scan, batch.

    \b
    Examples:
      kseg lookup --offset 203500
      kseg lookup orders-0/ --offset 203500 --key customer-7
      kseg lookup orders-0/ --offset 203500 --print-data-log --redact keys --redact values
      kseg lookup test-1-0/ --timestamp 2020-02-13T12:37:58.320Z
      kseg lookup kafka-logs/ --topic test-1 --partition 0 --offset 203500 -o json | jq .indexEntry

    PATH is a partition's directory, a file in it, or a log directory with --topic and --partition; none means the
    current directory. TIME is in milliseconds since 1970, in ISO 8601, some time ago (-1h), or earliest, latest,
    max-timestamp. Ends with 1 where no record is at the target; `latest` is the log end offset, of an empty log too.

    With a selection, as `kseg dump` takes it, the first record at or behind the target is found that is selected: of
    all that are there if no target is given, the last one with --timestamp latest.
    """
    place = _one_partition(path, topic, partition)
    zone = parse_zone(options["zone"])
    redaction = redaction_of(options)
    selection = selection_of(options)
    if (offset is None) == (timestamp is None) and (offset is not None or selection.is_everything):
        raise UsageError("give either --offset or --timestamp")
    target = offset if offset is not None else _target_time(timestamp or SpecialTime.EARLIEST, zone)
    tier = _tier_of(place, target) if selection.is_everything else None
    if not selection.is_everything:
        answer = lookup_selected(place, target, selection, is_time=offset is None)
    elif offset is not None:
        answer = lookup_offset(place, offset, tier)
    else:
        answer = lookup_time(place, target, tier)
    if not quiet:
        for problem in dict.fromkeys(answer.problems):
            talk(f"kseg: {problem}")
    if output == "json":
        _write_object(answer, redaction, zone)
    else:
        _write_way(answer, redaction, print_data=print_data_log)
    flush_stdout()
    if answer.absence is not None:
        talk(f"kseg: {place.path}: {absence_line(answer)}")
        command.exit(1)


def _tier_of(place: PartitionLog, target: int | SpecialTime) -> "RemoteTier | None":
    from kseg.views.metadata_beside import MetadataBeside
    from kseg.views.remote_tiers import RemoteCopies, find_tier
    from kseg.views.topic_retention import CHEAP_METADATA

    tier = find_tier(place, MetadataBeside(CHEAP_METADATA))
    if tier is None or target is not SpecialTime.LATEST_TIERED:
        return tier
    return tier._replace(highest_offset=RemoteCopies().highest_offset(place))


def _write_object(answer: Lookup, redaction: "Redaction | None", zone: tzinfo) -> None:
    from kseg.dump.record_line import record_json
    from kseg.output.json_lines import JsonText, write_json

    record = None
    if answer.record is not None and answer.batch is not None and answer.step is not None:
        path, batch = answer.step.segment.path, answer.batch
        text = record_json(path, batch.position, batch.size, answer.record.offset, zone=zone, redaction=redaction)
        record = JsonText(text)
    write_json(lookup_object(answer, record))


def _write_way(answer: Lookup, redaction: "Redaction | None", *, print_data: bool) -> None:
    from kseg.dump.record_line import record_line

    for line in lookup_lines(answer):
        write_line(line)
    if answer.record is not None and answer.batch is not None and answer.step is not None:
        path, batch, offset = answer.step.segment.path, answer.batch, answer.record.offset
        text = record_line(path, batch.position, batch.size, offset, print_data=print_data, redaction=redaction)
        write_stdout(text)
    elif answer.offset is not None:
        write_stdout(f"offset: {answer.offset}\n".encode())


def _one_partition(path: Path, topic: str | None, partition: int | None) -> PartitionLog:
    """The partition meant; of several replicas of it the first in use."""
    refuse = Refusals()
    found = [place for place in partitions_at(path, refuse) if _is_meant(place, topic, partition)]
    found.sort(key=lambda place: place.state is not None)
    if not found:
        raise UsageError("no such partition here: give a partition's directory, or --topic and --partition", path)
    if len({(place.topic, place.partition) for place in found}) > 1:
        raise UsageError(f"{len(found)} partitions are here: choose one by --topic and --partition", path)
    return found[0]


def _is_meant(place: PartitionLog, topic: str | None, partition: int | None) -> bool:
    return (topic is None or place.topic == topic) and (partition is None or place.partition == partition)
