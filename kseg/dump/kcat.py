"""Prints records as a shell script that sends them to a cluster with kcat."""

import json
import re
from base64 import b64decode
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kseg.decode.record_decoders import INTERNAL_TOPICS, record_decoder
from kseg.dump.log_steps import Rendering, WholeLines, new_output
from kseg.dump.log_text import summary_lines
from kseg.dump.options import control_json
from kseg.dump.selected import note_findings, read_log
from kseg.errors import OpenError
from kseg.formats.file_names import FileKind, parse_file_name, parse_partition_directory
from kseg.layouts.record_columns import fields_program
from kseg.system.placed_path import StrPath, folder_of
from kseg.text.kcat_script import LARGEST_RECORD, KcatScript, SentRecord, TopicPartition
from kseg.times import time_text

if TYPE_CHECKING:
    from kseg.dump.options import DumpContext


SHOWN_NAMES = 3
"""The most names that a note lists of what isn't sent."""
FIELDS = ("offset", "timestamp", "isValid", "key", "value", "headers")
LARGEST_LINE = 8 * LARGEST_RECORD
"""Bytes of JSON that a record may need which is small enough: each byte takes six at most."""
_OFFSET = re.compile(rb'\{"offset":(-?[0-9]+)')


def dump_log_as_kcat(path: StrPath, context: "DumpContext") -> None:
    """Prints a log's records as runs of kcat; reports on stderr what it can't send.

    Raises OpenError if the log can't be opened, or isn't in a directory that has the name of a partition.
    """
    name = parse_partition_directory(Path(path).absolute().parent)
    if name is None:
        raise OpenError("isn't in a directory that is named after its partition, as kcat must be told it", path)
    script = context.kcat_script()
    records = _SentRecords((name.topic, name.partition), script)
    output = new_output(WholeLines(LARGEST_LINE, records.add, records.refuse_long).take)
    decoder = record_decoder(context.options.decoding, path)  # only what redacts
    limit = context.options.max_decompressed
    rendering = Rendering(fields_program("json", FIELDS, path), decoder, control_json, limit=limit)
    summary = read_log(path, context, rendering, output=output)
    output.flush()
    script.flush()
    note_findings(path, summary, context)
    if summary.damages:
        context.found.summaries += summary_lines(path, summary)


def logs_to_send(directory: StrPath, logs: Iterable[StrPath], context: "DumpContext") -> list[StrPath]:
    """Of the logs in a directory those whose records a cluster is to get; notes the others.

    Not files that a broker put aside: their records aren't the partition's any more, or are in others too. Nor internal
    topics, of which a cluster has its own, unless one is named. What was given itself is always meant.
    """
    chosen: list[StrPath] = []
    internal: dict[str, None] = {}
    aside: dict[StrPath, None] = {}
    for log in logs:
        folder, file = folder_of(log), parse_file_name(log)
        name = None if folder == directory else parse_partition_directory(folder)
        if file.suffix is not None:
            aside[log] = None
        elif name is None:
            if file.kind is FileKind.LOG or parse_partition_directory(Path(folder).absolute()) is not None:
                chosen.append(log)  # else it is bootstrap.checkpoint
        elif name.topic in INTERNAL_TOPICS and name.topic not in context.options.choice.topics:
            internal[name.topic] = None
        else:
            chosen.append(log)
    notes = context.found.summaries
    if internal:
        notes.append(f"kseg: not sent: {_listed(internal)}: a cluster has its own; --topic NAME sends one")
    if aside:
        notes.append(f"kseg: not sent: {_listed(aside)}: a broker put them aside; a PATH of its own sends one")
    return chosen


def _listed(names: Collection[StrPath]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - SHOWN_NAMES
    first = ", ".join(map(str, islice(names, SHOWN_NAMES)))
    return f"{first} and {more} more" if more > 0 else first


def note_sent(script: KcatScript, context: "DumpContext") -> None:
    """Notes what of all records isn't sent as it is."""
    found = context.found
    if script.refused:
        found.is_wrong = True
        found.summaries.append(f"kseg: {script.refused} records are not sent, {script.sent} are")
    if script.last_timestamp is not None:
        zone = context.options.zone
        first, last = time_text(script.first_timestamp, zone), time_text(script.last_timestamp, zone)
        found.summaries.append(
            f"kseg: kcat can't send times: {script.sent} records, written from {first} to {last}, get that of sending"
        )


class _SentRecords:
    """A partition's records, of lines of JSON, for a script."""

    def __init__(self, place: TopicPartition, script: KcatScript) -> None:
        self._place = place
        self._script = script

    def add(self, line: bytes) -> None:
        """Adds a record to the script, unless its batch is damaged."""
        members = json.loads(line)
        if not members["isValid"]:
            self._script.refuse(self._place, members["offset"], "its batch is damaged")
            return
        headers = tuple((_bytes(each, "key") or b"", _bytes(each, "value")) for each in members["headers"] or ())
        timestamp = -1 if members["timestamp"] is None else members["timestamp"]
        record = SentRecord(members["offset"], timestamp, _bytes(members, "key"), _bytes(members, "value"), headers)
        self._script.add(self._place, record)

    def refuse_long(self, line: bytes) -> None:
        """Leaves out a record by its line's beginning."""
        found = _OFFSET.match(line)
        self._script.refuse(self._place, int(found[1]) if found else -1, f"it has more than {LARGEST_RECORD} bytes")


def _bytes(members: dict[str, Any], name: str) -> bytes | None:
    """A member that is text, or base64 where it isn't UTF-8."""
    if name in members:
        text = members[name]
        return None if text is None else str(text).encode()
    return b64decode(members[f"{name}Base64"])
