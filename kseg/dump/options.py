"""What `kseg dump` is asked for, and where its output goes."""

import sys
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, tzinfo
from typing import IO, TYPE_CHECKING, NamedTuple

from kseg.archive.shown_paths import shown
from kseg.codecs.bounds import DEFAULT_LIMIT
from kseg.dump.decoders import class_decoder
from kseg.dump.found import Found
from kseg.errors import UsageError
from kseg.layouts.tool_options import OPTION_RELEASES
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.output.csv import check_csv_safe
from kseg.output.json_lines import json_line
from kseg.output.printable import printable
from kseg.reading.log_file import BUFFER_SIZE
from kseg.releases import LATEST, NEWEST, Release
from kseg.selection import EVERYTHING, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from kseg.decode.record_decoders import Decoding
    from kseg.decode.topic import SchemasTopic
    from kseg.dump.part import Part
    from kseg.kernel.contract import Output
    from kseg.output.growing_table import GrowingTable
    from kseg.output.kcat_script import KcatScript
    from kseg.redaction import Redaction

KCAT = "kcat"
"""The form of output that kcat takes."""
DECODING_OUTPUTS = ("json", "table")
"""Forms of output in which internal topics are decoded unasked."""
MAX_MESSAGE_SIZE = 5 * 1024 * 1024
"""Kafka's default of --max-message-size."""
SMALL_BUFFER_SIZE = 1 << 17
"""Bytes of each log that are read at once where many are read side by side."""


class DumpOptions(NamedTuple):
    """Kafka's options and kseg's; the defaults are those of the command line.

    `like` is the release whose output is wanted; None for kseg's own: the documentation's lines for logs, the latest
    release's for other files. `internal_decoder` is the option of an internal topic's decoder, without dashes. `output`
    is text, json, csv, table or kcat; `fields` are names of columns, `template` a line for each record. The decoders
    are those of kseg.decode.values; with `is_strict` what they can't decode is wrong data. `redaction` is what in
    records is replaced before it is printed. `csv_safe`: no spreadsheet takes what is in the CSV for a formula.
    `zone` is that of times in ISO 8601. `choice`: of which partitions files are printed.
    `is_merged`: records of all logs by their times.
    `has_summary`: whether JSON ends with what there was in a file.
    """

    like: Release | None = None
    shallow: bool = False
    deep_iteration: bool = False
    print_data_log: bool = False
    skip_record_metadata: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_message_size: int = MAX_MESSAGE_SIZE
    max_bytes: int | None = None
    key_decoder_class: str | None = None
    value_decoder_class: str | None = None
    internal_decoder: str | None = None
    output: str = "text"
    only: str | None = None
    max_decompressed: int = DEFAULT_LIMIT
    selection: Selection = EVERYTHING
    fields: tuple[str, ...] = ()
    template: str | None = None
    key_decoder: str | None = None
    value_decoder: str | None = None
    schema: "Path | None" = None
    message: str | None = None
    schema_registry: "Path | None" = None
    is_strict: bool = False
    color: bool | None = None
    redaction: "Redaction | None" = None
    csv_safe: bool = False
    zone: tzinfo = UTC
    choice: PartitionChoice = EVERY_PARTITION
    is_merged: bool = False
    has_summary: bool = True

    @property
    def decoding(self) -> "Decoding":
        """How records are to be decoded."""
        from kseg.decode.record_decoders import Decoding

        decodes_internal = self.output in DECODING_OUTPUTS and not (self.key_decoder_class or self.value_decoder_class)
        return Decoding(
            self.key_decoder,
            self.value_decoder,
            self.schema,
            self.message,
            self._schemas_topic(),
            None if self.output == "text" else self.internal_decoder,
            decodes_internal=decodes_internal,
            redaction=self.redaction,
            keeps_raw=self.output == "json",
        )

    def _schemas_topic(self) -> "SchemasTopic | None":
        if self.schema_registry is None:
            return None
        from kseg.decode.topic import SchemasTopic

        return SchemasTopic(self.schema_registry)

    @property
    def release(self) -> Release:
        """The release whose lines other files than logs get."""
        return self.like or NEWEST


def sent_selection(selection: Selection, *, has_isolation: bool) -> Selection:
    """What of a selection is to be sent to a cluster: no control records, and only what was committed.

    has_isolation: the user chose an isolation level, which then holds. Raises UsageError if control records are wanted.
    """
    if selection.is_control:
        raise UsageError(f"--control: -o {KCAT} has no control records, as brokers alone write them")
    return selection._replace(is_control=False, is_committed=selection.is_committed or not has_isolation)


class GivenPaths(NamedTuple):
    """The paths that the user gave. Of several files rows name theirs, of several partitions records theirs."""

    paths: frozenset[str]
    are_several_files: bool
    are_several_partitions: bool


class DumpContext:
    """One call of dump: its options, its output, what it says on the side, and what it found wrong.

    `talk` takes a line for stderr; `show_progress` a file's name, the bytes read and the bytes in all.
    `given`: the paths. `found`: what is wrong, as damage, mismatches and unreadable files below these paths.
    `failed`: how many of the paths couldn't be opened. `unread_batches`: batches whose records weren't checked. `part`:
    what is selected in the next log, None for all. `is_following`: print only new records. `buffer_size`: bytes of a
    log that are read at once. `table_output`: where tables go, None for standard output. `script`: that of kcat, once
    there is one.
    """

    def __init__(
        self,
        options: DumpOptions,
        output: "Output",
        talk: Callable[[str], None],
        show_progress: Callable[[str, int, int], None],
        given: GivenPaths,
    ) -> None:
        self.options = options
        self.given = given
        self.output = output
        self.talk = talk
        self.show_progress = show_progress
        self.found = Found(options.release)
        self.failed = 0
        self.unread_batches = 0
        self.part: Part | None = None
        self.is_following = False
        self.buffer_size = BUFFER_SIZE
        self.table_output: IO[str] | None = None
        self._table: GrowingTable | None = None
        self.script: KcatScript | None = None
        self._header = ""

    def shown(self, path: str) -> str:
        """A path in a line of text: as a release prints it, else with what harms a terminal escaped."""
        return shown(path) if self.options.like is not None else printable(path)

    def json(self, members: Mapping[str, object]) -> None:
        """Prints an object as a line of JSON."""
        self.output.write(json_line(members))

    def line(self, text: str) -> None:
        """Prints a line on stdout."""
        self.output.write(shown(text).encode("utf-8", "surrogateescape") + b"\n")

    def line_once(self, text: str) -> None:
        """Prints a line unless it is the last one that was printed so: the names of columns."""
        if text != self._header:
            self._header = text
            self.line(text)

    def table(self, names: tuple[str, ...]) -> "GrowingTable":
        """The table of rows with these columns: the last one if it has the same."""
        from kseg.output.growing_table import GrowingTable

        header = ",".join(names)
        if self._table is None or header != self._header:
            self.end_table()
            self._header = header
            self._table = GrowingTable(names, self.table_output or sys.stdout, self.options.color)
        return self._table

    def kcat_script(self) -> "KcatScript":
        """The script that sends all records with kcat."""
        from kseg.output.kcat_script import KcatScript

        def say(line: str) -> None:
            self.found.summaries.append(f"kseg: {line}")

        self.script = self.script or KcatScript(self.output.write, say)
        return self.script

    def beside_others(self, output: "Output") -> "DumpContext":
        """The same with an output of its own and small buffers, for one of the logs that are read side by side."""
        own = copy(self)
        own.output, own.buffer_size = output, SMALL_BUFFER_SIZE
        return own

    def end_table(self) -> None:
        """Prints what the last table still holds."""
        if self._table is not None:
            self._table.print_rows()


def check_options(options: DumpOptions, talk: Callable[[str], None]) -> None:
    """Says which options the release named doesn't have. Raises UsageError for options that don't go together."""
    class_decoder(options.key_decoder_class, options.value_decoder_class)
    if options.output != "text" and options.like is not None:
        raise UsageError(f"--like is about text: leave it or -o {options.output} out")
    check_csv_safe(options.csv_safe, options.output)
    if options.only is not None and options.output != "json":
        raise UsageError("--only is about JSON: add -o json, or take --shallow for batches")
    _check_rows(options)
    _check_redaction(options)
    _check_merging(options)
    if options.like is None:
        return
    if options.like.numbers[:2] > LATEST.numbers[:2]:
        talk(f"kseg: --like {options.like}: its tool isn't out yet: lines are those of {LATEST}")
    for name, (option, since) in OPTION_RELEASES.items():
        if (name == options.internal_decoder or getattr(options, name, None)) and options.like.numbers < since:
            talk(f"kseg: {option}: Kafka {options.like} has no such option; taken as {Release(since)} has it")


def _check_merging(options: DumpOptions) -> None:
    """Raises UsageError for options that print what has no time of its own."""
    if not options.is_merged:
        return
    if options.like is not None or options.shallow or options.only == "batches" or options.output == KCAT:
        raise UsageError(f"--merge is about records: leave --like, --shallow, --only batches and -o {KCAT} out")
    if options.selection.is_followed:
        raise UsageError("--merge: what will be written can't be put in order: leave --follow out")
    if options.internal_decoder is not None and options.output == "text":
        raise UsageError("--merge: internal topics are decoded with -o json and -o table")


def _check_redaction(options: DumpOptions) -> None:
    """Raises UsageError for options that would read what is redacted."""
    parts = () if options.redaction is None else options.redaction.parts
    is_read = {
        "keys": options.key_decoder or options.internal_decoder or options.key_decoder_class,
        "values": options.value_decoder or options.internal_decoder or options.value_decoder_class,
        "headers": options.selection.headers,
    }
    for part in parts:
        if is_read[part]:
            what = "selected by" if part == "headers" else "decoded"
            raise UsageError(f"--redact {part}: what is redacted can't be {what} too: leave one of them out")
    if {"keys", "values"} & set(parts) and (options.key_decoder_class or options.value_decoder_class):
        raise UsageError("--redact: take --key-decoder and --value-decoder in the place of Kafka's classes")


def _check_rows(options: DumpOptions) -> None:
    """Raises UsageError for options of records and rows that don't go together."""
    has_rows = bool(options.fields) or options.template is not None
    decodes = options.key_decoder is not None or options.value_decoder is not None
    if options.like is not None and (has_rows or decodes or not options.selection.is_everything):
        raise UsageError("--like prints whole files as that release: leave it, or selection, fields and decoders out")
    if options.template is not None and (options.fields or options.output != "text"):
        raise UsageError("--template is a line of text: leave --fields and -o out")
    if options.output == KCAT and (options.fields or options.shallow or decodes or options.internal_decoder):
        raise UsageError(f"-o {KCAT} has records as they are: leave --fields, --shallow and decoders out")
    if (options.shallow or options.only == "batches") and options.selection.looks_into_records:
        raise UsageError("--shallow, --only batches: what is asked of records takes reading them; leave these out")
    if options.fields or options.template is not None:
        from kseg.layouts.record_rows import check_fields, template_program

        check_fields(options.fields)
        template_program(options.template or "", "")
    if decodes and (options.internal_decoder or options.key_decoder_class or options.value_decoder_class):
        raise UsageError("--key-decoder and --value-decoder: leave other decoders out")
