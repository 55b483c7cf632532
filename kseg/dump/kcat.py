"""Prints records as a shell script that sends them to a cluster with kcat."""

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kseg.decode.record_decoders import record_decoder
from kseg.dump.decoders import control_json
from kseg.dump.forms import Form, LogRendering, Printing
from kseg.dump.log_steps import LogSummary, Rendering, WholeLines, new_output
from kseg.errors import OpenError, plural
from kseg.formats.file_names import FileKind, parse_partition_directory
from kseg.layouts.record_columns import fields_program
from kseg.system.placed_path import StrPath
from kseg.text.kcat_script import LARGEST_RECORD, KcatScript, SentRecord, TopicPartition
from kseg.times import time_text

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Output


FIELDS = ("offset", "timestamp", "isValid", "key", "value", "headers")
LARGEST_LINE = 8 * LARGEST_RECORD
"""Most bytes of JSON for a record within the size limit: each byte takes six at most."""
_OFFSET = re.compile(rb'\{"offset":(-?[0-9]+)')


class KcatForm(Form):
    """A shell script that sends the records to a cluster with kcat."""

    prints_unchanged = False

    def __init__(self, printing: Printing) -> None:
        super().__init__(printing)
        self._script: KcatScript | None = None
        self._records: Output | None = None

    def rendering(self, path: StrPath) -> LogRendering:
        """Return the rendering of records as JSON, from which the script is made."""
        decoder = record_decoder(self.options.decoding, path)  # a decoder that only redacts
        program = fields_program("json", FIELDS, path)
        return LogRendering(Rendering(program, decoder, control_json, limit=self.options.max_decompressed))

    def begin_log(self, path: StrPath, *, is_continued: bool) -> "Output":
        """Return the output that turns a log's records into runs of kcat; unsendable records are reported on stderr.

        Raises OpenError if the log's directory isn't named like a partition.
        """
        name = parse_partition_directory(Path(path).absolute().parent)
        if name is None:
            raise OpenError("isn't in a directory with its partition's name, which kcat needs", path)
        self._script = script = self._script or KcatScript(self.printing.output.write, self.problems.note)
        records = _SentRecords((name.topic, name.partition), script)
        self._records = new_output(WholeLines(LARGEST_LINE, records.add, records.refuse_long).take)
        return self._records

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Print the runs of a log."""
        if self._records is not None and self._script is not None:
            self._records.flush()
            self._script.flush()

    def print_file(self, path: StrPath, kind: FileKind) -> None:
        """Raise OpenError, since kcat sends nothing of such a file."""
        raise OpenError("isn't a log, and -o kcat prints only logs", path)

    def finish(self) -> None:
        """Note the records that aren't sent, or are sent changed."""
        script = self._script
        if script is None:
            return
        if script.refused:
            self.problems.is_wrong = True
            self.problems.note(f"the script sends {script.sent} of {plural(script.sent + script.refused, 'record')}")
        if script.last_timestamp is not None:
            zone = self.options.zone
            first, last = time_text(script.first_timestamp, zone), time_text(script.last_timestamp, zone)
            self.problems.note(
                f"kcat can't send timestamps: {plural(script.sent, 'record')}, written from {first} to {last}, get"
                " the time of sending"
            )


class _SentRecords:
    """A partition's records, from lines of JSON, for a script."""

    def __init__(self, place: TopicPartition, script: KcatScript) -> None:
        self._place = place
        self._script = script

    def add(self, line: bytes) -> None:
        """Add a record to the script, unless its batch is damaged."""
        members = json.loads(line)
        if not members["isValid"]:
            self._script.refuse(self._place, members["offset"], "its batch is damaged")
            return
        headers = tuple((_bytes(each, "key") or b"", _bytes(each, "value")) for each in members["headers"] or ())
        timestamp = -1 if members["timestamp"] is None else members["timestamp"]
        record = SentRecord(members["offset"], timestamp, _bytes(members, "key"), _bytes(members, "value"), headers)
        self._script.add(self._place, record)

    def refuse_long(self, line: bytes) -> None:
        """Count a record as refused, from the beginning of its line."""
        found = _OFFSET.match(line)
        self._script.refuse(self._place, int(found[1]) if found else -1, f"it has more than {LARGEST_RECORD} bytes")


def _bytes(members: dict[str, Any], name: str) -> bytes | None:
    """Return a member that is text, or base64 if it isn't UTF-8."""
    if name in members:
        text = members[name]
        return None if text is None else str(text).encode()
    return b64decode(members[f"{name}Base64"])
