"""`kseg lookup`: finds an offset or a time, and shows how."""

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import limit_to_contents
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.cluster.taken import taken_of
from kseg.commands.options.command import GivenSelection, RedactOptions, command
from kseg.errors import UsageError
from kseg.log.lookup import Absence, Lookup, SpecialTime, parse_target_time
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines, write_stdout
from kseg.text.lookup import absence_line, lookup_lines, lookup_object
from kseg.text.selected import asked_text
from kseg.times import parse_zone

if TYPE_CHECKING:
    from kseg.dump.record_line import StoredRecord
    from kseg.redaction import Redaction


class LookupOptions(NamedTuple):
    """The wanted offset or time, and the form of the answer."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    selected: GivenSelection
    redacting: RedactOptions
    offset: int | None
    timestamp: str | None
    print_data_log: bool
    output: str
    talk: Talk
    verbose: bool


@command(LookupOptions)
def lookup(options: LookupOptions) -> None:
    """Find the record at an offset or time.

    Use `lookup` to find a record, and to see each step of the search: segment, index entry, scan, batch.

    \b
    Examples:
      kseg lookup --offset 203500
      kseg lookup orders-0/ --offset 203500 --key customer-7
      kseg lookup orders-0/ --offset 203500 --print-data-log --redact keys --redact values
      kseg lookup test-1-0/ --timestamp 2020-02-13T12:37:58.320Z
      kseg lookup kafka-logs/ --topic test-1 --partition 0 --offset 203500 -o json | jq .indexEntry

    PATHS are a partition directory or a file in it, or log directories with --topic and --partition; by default the
    current directory. TIME is ISO 8601, milliseconds since 1970, relative to now (-1h), or one of earliest, latest,
    max-timestamp, earliest-local, latest-tiered and earliest-pending-upload, as in Kafka's ListOffsets. `latest` is the
    log end offset, even if the log is empty.

    With record filters (--key, …), `lookup` finds the first selected record at or after the target. Without a
    target it finds the first one, with --timestamp latest the last one.

    The exit status is 1 if the target has no record.
    """
    cluster = Cluster(options.paths, limit_to_contents(Talk().refuse))
    replicas = cluster.only_partition(options.choice)
    zone = parse_zone(options.selected.zone)
    redaction = options.redacting.redaction()
    selection = options.selected.selection()
    offset, timestamp = options.offset, options.timestamp
    if (offset is None) == (timestamp is None) and (offset is not None or selection.is_everything):
        raise UsageError("specify either --offset or --timestamp")
    target = offset if offset is not None else parse_target_time(timestamp or SpecialTime.EARLIEST, zone)
    beside, talk = AdjacentMetadata(cluster=cluster), options.talk
    answer = look_up_in_copies(replicas, target, selection, is_time=offset is None, beside=beside)
    told = taken_of([replicas]).sentences(verbose=options.verbose)
    for problem in dict.fromkeys((*told, *answer.problems)):
        talk.note(problem)
    form = form_named(options.output)
    if form.has_objects:
        form.write_object(_object(answer, redaction, zone))
    else:
        _write_way(answer, redaction, zone, print_data=options.print_data_log)
    flush_stdout()
    if answer.absence is not None:
        asked = f": {asked_text(selection, zone)}" if answer.absence is Absence.NOT_SELECTED else ""
        talk.warn(f"{answer.partition.path}: {absence_line(answer, zone)}{asked}")
        talk.note(*_ways_on(answer))
        talk.end_with(1)


def _ways_on(answer: Lookup) -> Iterator[str]:
    """Yield the command that moves a consumer group past an unreadable offset."""
    if answer.absence is not Absence.DAMAGED or answer.next_good_offset is None:
        return
    from kseg.text.salvage import reset_command

    command = reset_command(answer.partition.topic, answer.partition.partition, answer.next_good_offset)
    if command is not None:
        yield f"to move a consumer group past it: {command}"


def _record_place(answer: Lookup) -> "StoredRecord | None":
    """Return the place of the found record, or None if there isn't one."""
    from kseg.dump.record_line import StoredRecord

    if answer.record is None or answer.batch is None or answer.step is None:
        return None
    batch = answer.batch
    return StoredRecord(answer.step.segment.path, batch.position, batch.size, answer.record.offset)


def _object(answer: Lookup, redaction: "Redaction | None", zone: tzinfo) -> dict[str, object]:
    from kseg.dump.record_line import record_json
    from kseg.output.rows import JsonText

    stored = _record_place(answer)
    record = None if stored is None else JsonText(record_json(stored, zone=zone, redaction=redaction))
    return lookup_object(answer, record)


def _write_way(answer: Lookup, redaction: "Redaction | None", zone: tzinfo, *, print_data: bool) -> None:
    from kseg.dump.record_line import record_line

    write_lines(lookup_lines(answer, zone))
    stored = _record_place(answer)
    if stored is not None:
        write_stdout(record_line(stored, print_data=print_data, redaction=redaction))
    elif answer.offset is not None:
        write_stdout(f"offset: {answer.offset}\n".encode())
