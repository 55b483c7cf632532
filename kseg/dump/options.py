"""Options of a dump, its reports, its decoders, and the problems that it meets."""

import os
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from datetime import UTC, tzinfo
from typing import IO, TYPE_CHECKING, NamedTuple

from kseg.codecs.bodies import DEFAULT_LIMIT
from kseg.errors import UsageError
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import CONTROL_KEY_TYPE
from kseg.layouts import release_lines as layout
from kseg.layouts.release_lines import CLASS_PREFIX, OLD_CLASS_PREFIX, OPTION_RELEASES
from kseg.log.selection import EVERY_PARTITION, EVERYTHING, PartitionChoice, Selection
from kseg.output.rows import check_csv_safe, json_line
from kseg.reading.log_file import BUFFER_SIZE, LogFile
from kseg.releases import LATEST, NEWEST, Release, value_in
from kseg.system.placed_path import PlacedPath, StrPath, as_path, folder_of
from kseg.system.terminal_text import escaped_text, json_bytes_escaped

if TYPE_CHECKING:
    from pathlib import Path

    from kseg.cluster.cluster import FoundAt
    from kseg.cluster.joined_log import JoinedCopies
    from kseg.cluster.schemas_topic import SchemasTopic
    from kseg.decode.record_decoders import Decoding
    from kseg.kernel.contract import Decode, Headers, Output
    from kseg.log.selector import Selector
    from kseg.output.table import GrowingTable
    from kseg.redaction import Redaction
    from kseg.text.kcat_script import KcatScript


class Part:
    """What of logs is selected, while they are printed one after another.

    start: where to begin in the next log; None lets its index tell. skip: how many of what is selected to leave out,
    since only the last are wanted; left: how many are wanted yet. end: up to where the last log was read.
    last_path: its path. is_followed: a log's torn or zero tail is what isn't written yet.
    """

    def __init__(self, selector: "Selector", left: int | None = None) -> None:
        self.selector = selector
        self.start: int | None = None
        self.skip = 0
        self.left = left
        self.end = 0
        self.last_path: str | None = None
        self.is_followed = False

    @property
    def is_full(self) -> bool:
        """Whether nothing is wanted any more."""
        return self.left == 0 or self.selector.is_done


PIECE = 4096
"""Lines that are given at once."""

Columns = tuple[Sequence[int], Sequence[int]]
"""Both numbers of each line."""


class Pairs:
    """Pairs of numbers in the order found, 16 bytes each: an index can have a million."""

    def __init__(self) -> None:
        self._numbers = array("q")

    def add(self, first: int, second: int) -> None:
        """Adds a pair of 64-bit numbers."""
        self._numbers.extend((first, second))

    def as_found(self) -> Columns:
        """The first found first."""
        return self._numbers[::2], self._numbers[1::2]

    def last_found_first(self) -> Columns:
        """The last found first."""
        return self._numbers[-2::-2], self._numbers[::-2]

    def falling(self) -> Columns:
        """By the first number, falling; of pairs with the same one only the last found."""
        last = dict(zip(*self.as_found(), strict=True))
        firsts = sorted(last, reverse=True)
        return firsts, [last[first] for first in firsts]


class Reports:
    """Collects what was found, by path: absolute, as `absolute_path` gives it."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.mismatches: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Offsets of .index entries, and those of the log."
        self.timestamp_mismatches: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Timestamps of .timeindex entries, and the largest of their batches."
        self.out_of_order_timestamps: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Timestamps of .timeindex entries, and those of the entries before them."
        self.offsets_not_found: defaultdict[str, Pairs] = defaultdict(Pairs)
        "Offsets of .timeindex entries, and last offsets of the batches found for them; -1 if there is none."
        self.gaps: dict[str, list[tuple[int, int]]] = {}

    def lines(self, most: int | None = None) -> Iterator[str]:
        """The reports as the release words and orders them, one or more lines at once.

        Args:
            most: lines to show of each file's report at most; those left out are counted.
        """
        last_first = value_in(self.release, layout.LAST_FOUND_FIRST)
        falling = Pairs.last_found_first if last_first else Pairs.falling
        not_found = value_in(self.release, layout.OFFSETS_NOT_FOUND)
        non_consecutive = value_in(self.release, layout.NON_CONSECUTIVE)
        parts: tuple[tuple[str, str, dict[str, Pairs], Callable[[Pairs], Columns]], ...] = (
            (layout.MISMATCHES, layout.MISMATCH, self.mismatches, falling),
            (layout.TIMESTAMP_MISMATCHES, layout.TIMESTAMP_MISMATCH, self.timestamp_mismatches, Pairs.as_found),
            (
                layout.OUT_OF_ORDER_TIMESTAMPS,
                layout.OUT_OF_ORDER_TIMESTAMP,
                self.out_of_order_timestamps,
                Pairs.as_found,
            ),
            (not_found, layout.OFFSET_NOT_FOUND, self.offsets_not_found, Pairs.as_found),
        )
        for header, line, found, in_order in parts:
            for path, pairs in found.items():
                yield header.format(path=escaped_text(path))
                yield from _lines(line, in_order(pairs), most)
        for path, gaps in self.gaps.items():
            yield non_consecutive.format(path=escaped_text(path))
            in_release_order = gaps[::-1] if last_first else sorted(dict(gaps).items())
            yield from _lines(layout.FOLLOWED_BY, _columns(in_release_order), most)


def _columns(pairs: Sequence[tuple[int, int]]) -> Columns:
    return [first for first, _ in pairs], [second for _, second in pairs]


def _lines(line: str, columns: Columns, most: int | None) -> Iterator[str]:
    firsts, seconds = columns
    count = len(firsts) if most is None else min(most, len(firsts))
    for start in range(0, count, PIECE):
        end = min(start + PIECE, count)
        yield "\n".join(map(line.format, firsts[start:end], seconds[start:end]))
    if count < len(firsts):
        yield f"  and {len(firsts) - count} more; `--like latest` shows all"


def absolute_path(path: StrPath) -> str:
    """The path as java.io.File makes it absolute: `.` and `..` stay. If the current directory is gone, as it is."""
    if isinstance(path, PlacedPath):
        return str(path)
    try:
        return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118  pathlib would remove them
    except OSError:
        return str(path)


TextOf = Callable[[bytes], bytes]


def _as_is(data: bytes) -> bytes:
    return data


def _as_hex(data: bytes) -> bytes:
    return data.hex().encode()


def _integer_of(size: int) -> TextOf:
    """Big-endian, as Java's ByteBuffer reads it; bytes that are too few are shown in hex, since the tool dies there."""

    def text_of(data: bytes) -> bytes:
        if len(data) < size:
            return _as_hex(data)
        return str(int.from_bytes(data[:size], "big", signed=True)).encode()

    return text_of


_DECODERS: dict[str, TextOf] = {
    "StringDecoder": _as_is,
    "DefaultDecoder": _as_hex,
    "ByteArrayDecoder": _as_hex,
    "IntegerDecoder": _integer_of(4),
    "LongDecoder": _integer_of(8),
}


def class_decoder(key_class: str | None, value_class: str | None) -> "Decode":
    """What prints keys and values by these classes. Raises UsageError for a class that kseg doesn't know."""
    of_key, of_value = _decoder(key_class, "--key-decoder-class"), _decoder(value_class, "--value-decoder-class")

    def decode(key: bytes | None, value: bytes | None, _: int, __: "Headers") -> tuple[bytes | None, bytes | None]:
        return None if key is None else of_key(key), None if value is None else of_value(value)

    return decode


def _decoder(name: str | None, option: str) -> TextOf:
    short = (name or "StringDecoder").removeprefix(OLD_CLASS_PREFIX).removeprefix(CLASS_PREFIX)
    if short not in _DECODERS:
        raise UsageError(f"{option} {name}: kseg knows {', '.join(_DECODERS)}, also by their Kafka names")
    return _DECODERS[short]


class InternalDecoder:
    """A decoder of an internal topic that goes on where the real tool dies: such records are shown as they are."""

    def __init__(self, option: str, release: Release) -> None:
        """Takes the option without its dashes, and the release whose texts are wanted."""
        from kseg.decode.decoded import DecodeError
        from kseg.decode.kafka_text import decoder_for

        self._decode = decoder_for(option, release.numbers)
        self._error = DecodeError
        self.failures: list[tuple[int, str]] = []

    def __call__(
        self, key: bytes | None, value: bytes | None, offset: int, headers: "Headers"
    ) -> tuple[bytes | None, bytes | None]:
        """The texts of a record; a failure is remembered with its offset."""
        try:
            return self._decode(key, value, offset)
        except self._error as error:
            self.failures.append((offset, error.message))
            return key, value


def control_json(key: bytes, value: bytes | None) -> bytes | None:
    """The JSON of a control record that is no transaction's marker; None if it can't be read."""
    from kseg.decode import internal_records as control
    from kseg.decode.decoded import DecodeError

    read: dict[int, Callable[[bytes], str]] = {
        ControlType.LEADER_CHANGE: control.leader_change_json,
        ControlType.SNAPSHOT_HEADER: control.snapshot_header_json,
        ControlType.SNAPSHOT_FOOTER: control.snapshot_footer_json,
        ControlType.KRAFT_VERSION: control.kraft_version_json,
        ControlType.KRAFT_VOTERS: control.kraft_voters_json,
    }
    kind = CONTROL_KEY_TYPE.read(key)
    try:
        return None if kind not in read or value is None else read[kind](value).encode()
    except DecodeError:
        return None


def escaped_control_json(key: bytes, value: bytes | None) -> bytes | None:
    """The same as `-o json` prints it."""
    text = control_json(key, value)
    return None if text is None else json_bytes_escaped(text)


class Found:
    """What was found wrong in one file, or in all of a call.

    summaries: lines for stderr. problems: those that `add_problem` noted, without the file's name. reports: what the
    tool itself reports. is_wrong: whether the exit status is 1.
    """

    def __init__(self, release: "Release") -> None:
        self.reports = Reports(release)
        self.summaries: list[str] = []
        self.problems: list[str] = []
        self.is_wrong = False

    def add_problem(self, path: StrPath, problem: str) -> None:
        """Notes something wrong in a file."""
        self.is_wrong = True
        self.problems.append(problem)
        self.summaries.append(f"kseg: {path}: {problem}")


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
    `has_summary`: whether JSON ends with what there was in a file. `all_replicas`: each copy of a partition is printed.
    `is_verbose`: it is said of each partition which copy answers.
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
    all_replicas: bool = False
    is_verbose: bool = False

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
        from kseg.cluster.schemas_topic import SchemasTopic

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
    """The paths that the user gave. Of several files rows name theirs, of several partitions records theirs.

    left_out: real paths of directories that aren't printed: others answer for their partitions.
    """

    paths: frozenset[str]
    are_several_files: bool
    are_several_partitions: bool
    left_out: frozenset[str] = frozenset()


class DumpContext:
    """One call of dump: its options, its output, what it says on the side, and what it found wrong.

    `talk` takes a line for stderr; `show_progress` a file's name, the bytes read and the bytes in all.
    `given`: the paths. `found`: what is wrong, as damage, mismatches and unreadable files below these paths.
    `joined`: by the absolute path of its directory, the copies of a partition that is printed from several. `walked`:
    where each record is printed once, the directories whose files were found already, under whatever name.
    `listed`: what was found at the paths then, by path.
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
        self.joined: Mapping[str, JoinedCopies] = {}
        self.walked: set[tuple[int, int]] | None = None
        self.listed: Mapping[Path, FoundAt] = {}
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

    def joined_at(self, directory: StrPath) -> "JoinedCopies | None":
        """The copies of the partition in a directory, if it is printed from several."""
        return self.joined.get(os.path.abspath(directory)) if self.joined else None  # noqa: PTH100

    def open_log(self, path: StrPath) -> LogFile:
        """A log to be printed, with what it has lost if others have it. Raises OpenError if it can't be opened."""
        joined = self.joined_at(folder_of(path))
        if joined is None:
            return LogFile(path, self.options.max_bytes, buffer_size=self.buffer_size)
        return joined.open_log(as_path(path), self.options.max_bytes, buffer_size=self.buffer_size)

    def shown(self, path: StrPath) -> str:
        """A path in a line of text: as a release prints it, else with what harms a terminal escaped."""
        return str(path) if self.options.like is not None else escaped_text(str(path))

    def json(self, members: Mapping[str, object]) -> None:
        """Prints an object as a line of JSON."""
        self.output.write(json_line(members))

    def line(self, text: str) -> None:
        """Prints a line on stdout."""
        self.output.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def line_once(self, text: str) -> None:
        """Prints a line unless it is the last one that was printed so: the names of columns."""
        if text != self._header:
            self._header = text
            self.line(text)

    def table(self, names: tuple[str, ...]) -> "GrowingTable":
        """The table of rows with these columns: the last one if it has the same."""
        from kseg.output.table import GrowingTable

        header = ",".join(names)
        if self._table is None or header != self._header:
            self.end_table()
            self._header = header
            self._table = GrowingTable(names, self.table_output or sys.stdout, self.options.color)
        return self._table

    def kcat_script(self) -> "KcatScript":
        """The script that sends all records with kcat."""
        from kseg.text.kcat_script import KcatScript

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
        from kseg.layouts.record_columns import check_fields, template_program

        check_fields(options.fields)
        template_program(options.template or "", "")
    if decodes and (options.internal_decoder or options.key_decoder_class or options.value_decoder_class):
        raise UsageError("--key-decoder and --value-decoder: leave other decoders out")
