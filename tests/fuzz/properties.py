"""Properties that hold for any bytes: no exception, a meaningful status, each byte accounted for, equal readers."""

import json
import os
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple, NoReturn

import pyarrow as pa
from construct import ConstructError

from kseg import kernel as kernels
from kseg.codecs.bodies import decompress
from kseg.decode.decoded import decoded_text, one_line
from kseg.decode.protobuf import described_message
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.dump.log_steps import LogSummary, Rendering, new_output, render_log
from kseg.errors import KsegError
from kseg.export.columns.typed_cells import WriterSchema, column_reader
from kseg.formats.batch import LOG_ENTRY, RECORD_BATCH
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, LOG_OVERHEAD
from kseg.kernel.contract import ROW, GapRule, Problem, RecordProblem
from kseg.kernel.record import Record
from kseg.layouts.programs import LogOptions, documented_program, release_program
from kseg.reading.batch import Batch
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.releases import parse_release
from tests.fuzz.cases import Case
from tests.fuzz.commands import NEW, RELEASES, Outcome, all_commands, on_terminal, outcome, some_commands
from tests.fuzz.definitions import COLUMNS
from tests.fuzz.disks import MARK
from tests.kernel.runs import program_of, records_in
from tests.run import KERNELS
from tests.terminal import COLOR, HARMFUL, plain

COMMANDS_OF_A_CASE = 4
LONGEST_COMMAND = 20
"""Processor seconds of a command; the slowest takes one, with sanitizers a few."""
MOST_MEMORY = 512 << 20
"""The most bytes above the process's former memory: the first command that needs them loads large libraries."""
GRAMMAR_SHARE = 0.03
"""The share of batches that the grammars parse: they are a hundred times as slow as the kernel."""
STATUSES = (0, 1, 2)


class BrokenError(Exception):
    """A property doesn't hold; the first argument names it."""


def check(
    case: Case, directory: Path, random: Random, *, whole: bool = False, grammar_share: float = GRAMMAR_SHARE
) -> int:
    """Check all properties of a case in a directory; return the number of commands that ran.

    Args:
        case: the files.
        directory: their directory.
        random: chooses the checks.
        whole: run all checks.
        grammar_share: the share of batches that the grammars parse.
    """
    for path in case.files:
        if path.endswith((".log", ".checkpoint")) and (whole or not case.is_partition):
            wanted = _RENDERINGS if whole else random.choices(_RENDERINGS, k=1)
            check_log(directory / path, wanted, random, 1 if whole else grammar_share)
    if any(path.startswith(COLUMNS) for path in case.files):
        with cheap("columns"):
            check_columns(directory / COLUMNS)
    if not case.is_partition:
        return 0
    commands = all_commands(case, random) if whole else some_commands(case, random, COMMANDS_OF_A_CASE)
    for place, arguments in enumerate(commands):
        check_command(arguments, directory)
        if whole or place == 0:
            check_terminal(arguments, directory)
    return len(commands)


# --- logs, kernel by kernel ------------------------------------------------------------------------------------------

EVERYTHING = "{baseOffset} {crc} {offset} {timestamp} {keySize} {valueSize} {headers:json} {key:json} {value}\n"
DEEP = LogOptions(deep=True, print_data=True)


def renderings() -> list[Rendering]:
    """Return the forms of printing a log: as the documentation, as JSON texts, as releases."""
    found = [Rendering(program_of(EVERYTHING, EVERYTHING, EVERYTHING))]
    for options in (DEEP, LogOptions()):
        found.append(Rendering(documented_program(options)))
        for release in map(parse_release, RELEASES):
            rule = GapRule.ALL_RECORDS if options.deep else GapRule.PLAIN_MESSAGES
            found.append(Rendering(release_program(release, options), gap_rule=rule, as_kafka=True))
    return found


_RENDERINGS = renderings()


class LogRead(NamedTuple):
    """A kernel's results for a log: runs and damages, columns, and the printed log."""

    items: list[object]
    columns: list[object]
    printed: list[tuple[bytes, LogSummary]]


def check_log(path: Path, wanted: Sequence[Rendering], random: Random, grammar_share: float) -> None:
    """Check that kernels and grammars agree on a log, and that its parts' sizes add up to the file's."""
    reads = []
    for name in KERNELS:
        os.environ[kernels.KERNEL_VARIABLE] = name
        with cheap("a log"):
            reads.append(read_log(path, wanted))
    for part in LogRead._fields:
        by_fast, by_twin = (getattr(read, part) for read in (reads[0], reads[-1]))
        if by_fast != by_twin:
            raise BrokenError(f"the kernels' {part} differ", _first_difference(by_fast, by_twin))
    os.environ[kernels.KERNEL_VARIABLE] = KERNELS[0]
    with LogFile(path) as log_file:
        for raw, is_valid in _batches(log_file):
            if random.random() < grammar_share:
                check_grammar(Batch.parse(raw, 0, is_valid=is_valid))


def read_log(path: Path, wanted: Sequence[Rendering]) -> LogRead:
    """Read a log by the kernel of the environment."""
    with LogFile(path) as log_file:
        items = [_item(item) for item in _whole(log_file.runs(), log_file.size)]
        items += [_item(item) for item in _whole(log_file.runs_as_kafka(), log_file.size)]
        pieces = with_bodies(log_file.runs(), log_file.size)
        return LogRead(items, _columns(pieces), [_print_log(log_file, rendering) for rendering in wanted])


def _whole(items: Iterator[Run | Damage], size: int) -> Iterator[Run | Damage]:
    """Yield the items of a log, which must be adjacent up to the end of the file."""
    position = 0
    for item in items:
        for start, length in _extents(item):
            if start != position:
                raise BrokenError("sizes don't add up", f"{start} follows {position}")
            position += length
        yield item
    if position != size:
        raise BrokenError("sizes don't add up", f"{position} of {size} bytes")


def _extents(item: Run | Damage) -> list[tuple[int, int]]:
    """Return position and size of each batch or damage; a damage inside a batch has size 0."""
    if isinstance(item, Damage):
        return [(item.position, item.size)]
    return [(item.position + item.rows[at], item.rows[at + 1]) for at in range(0, ROW * item.row_count, ROW)]


def _item(item: Run | Damage) -> object:
    if isinstance(item, Damage):
        return item
    return item.position, item.rows[: ROW * item.row_count].tobytes(), item.codecs


def _columns(pieces: Iterable[Slice | Damage]) -> list[object]:
    """Return records, their control flags, and problems, independent of a kernel's slices."""
    records, problems, damages, control = list[Record](), list[RecordProblem](), list[Damage](), bytearray()
    for piece in pieces:
        if isinstance(piece, Damage):
            damages.append(piece)
            continue
        run = piece.run
        place = (run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)
        columns, parts = kernels.load().columns(*place), list(kernels.load().records(*place))
        positions = [run.position + run.rows[ROW * row] for row in range(run.row_count)]
        found = [record for part in parts if isinstance(part, list) for record in part]
        if found != records_in(columns, positions):
            raise BrokenError("the records aren't those of the columns", "")
        if columns.problems != [part for part in parts if isinstance(part, RecordProblem)]:
            raise BrokenError("the problems of the records aren't those of the columns", "")
        records += found
        control += bytes(columns.control)
        problems += columns.problems
        damages += [damage for _, damage in piece.damages]
    return [records, bytes(control), problems, damages]


def _print_log(log_file: LogFile, rendering: Rendering) -> tuple[bytes, LogSummary]:
    pieces: list[bytes] = []
    output = new_output(lambda piece: pieces.append(bytes(piece)))
    summary = render_log(log_file, rendering, output)
    output.flush()
    return b"".join(pieces), summary


def _first_difference(one: Sequence[object], other: Sequence[object]) -> str:
    for first, second in zip(one, other, strict=False):
        if isinstance(first, bytes | str) and isinstance(second, bytes | str) and first != second:
            differing = (one != other for one, other in zip(first, second, strict=False))
            at = max(next((place for place, differs in enumerate(differing) if differs), 0) - 100, 0)
            return f"from {at}: {first[at:]!r:.500} | {second[at:]!r:.500}"
        if isinstance(first, dict) and isinstance(second, dict) and first != second:
            return _first_difference(*([*chain.from_iterable(sorted(each.items()))] for each in (first, second)))
        if isinstance(first, tuple) and isinstance(second, tuple) and first != second:
            return _first_difference(first, second)
        if first != second:
            return f"{first!r:.500} | {second!r:.500}"
    return f"{len(one)} and {len(other)} items"


# --- grammars --------------------------------------------------------------------------------------------------------


def _batches(log_file: LogFile) -> Iterator[tuple[bytes, bool]]:
    for item in log_file.runs():
        if isinstance(item, Run):
            for row in range(item.row_count):
                start, size, valid = item.rows[ROW * row : ROW * row + ROW]
                yield bytes(item.buffer[start : start + size]), bool(valid)


def check_grammar(batch: Batch) -> None:
    """Check the records of a batch against the grammar's, or its problem against the grammar's failure."""
    if batch.magic not in (0, 1, 2):
        return
    problem = batch.problem()
    if problem is not None and problem.problem is None:
        return  # its body can't be decompressed: no grammar can parse it
    try:
        expected = _v2_records(batch) if batch.magic == 2 else _legacy_records(batch)
    except ConstructError as error:
        if problem is None or problem.problem not in (Problem.BAD_RECORD, Problem.BAD_COUNT):
            raise BrokenError("the grammar reads less than the kernel", str(error)) from error
        return
    if expected is None:
        return
    if problem is not None:
        raise BrokenError("the grammar reads more than the kernel", repr(problem))
    found = [(record.key, record.value, record.offset) for record in batch.records()]
    if found != expected:
        raise BrokenError("records differ from the grammar's", _first_difference(found, expected))


def _body(batch: Batch, compressed: bytes) -> bytes:
    return decompress(batch.codec, batch.magic, memoryview(compressed)).data if batch.codec else compressed


def _v2_records(batch: Batch) -> list[tuple[bytes | None, bytes | None, int]]:
    body = _body(batch, batch.raw[BATCH_HEADER_SIZE:])
    size = (BATCH_HEADER_SIZE - LOG_OVERHEAD + len(body)).to_bytes(4, "big")
    parsed = RECORD_BATCH.parse(batch.raw[:8] + size + batch.raw[LOG_OVERHEAD:BATCH_HEADER_SIZE] + body)
    base = parsed.header.base_offset
    return [(record.key, record.value, _int64(base + record.offset_delta)) for record in parsed.records]


def _int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _legacy_records(batch: Batch) -> list[tuple[bytes | None, bytes | None, int]] | None:
    """Return the record of a message that isn't a wrapper; the kernels' tests cover odd ones."""
    parsed = LOG_ENTRY.parse(batch.raw)
    if batch.attributes & CODEC_MASK:
        return None
    return [(parsed.message.key, parsed.message.value, parsed.offset)]


# --- columns ---------------------------------------------------------------------------------------------------------


MESSAGE = "shop.Order"


def check_columns(directory: Path) -> None:
    """Check that a definition gives a decoder and a column, or a one-line error."""
    message = directory / "message"
    body = message.read_bytes() if message.exists() else b""
    for path in sorted(directory.iterdir()):
        if path != message:
            with _one_line():
                _check_value(path, body)
            with _one_line():
                _check_cell(path, body)


def _check_value(path: Path, body: bytes) -> None:
    """Check that a message becomes JSON, or stays as bytes with a one-line reason."""
    kind = {".avsc": "avro", ".set": "protobuf"}.get(path.suffix, "json")
    is_described = kind != "json"
    decode = value_decoder(kind, DecoderOptions(path if is_described else None, MESSAGE), "value")
    decoded = decode(body, ())
    if decoded.reason is not None and decoded.reason != one_line(decoded.reason):
        raise BrokenError("a reason isn't one line", decoded.reason)
    decoded_text(decoded.value)


def _check_cell(path: Path, body: bytes) -> None:
    """Check that a message becomes a cell of the column, or has pyarrow's error."""
    if path.suffix == ".set":
        descriptors, name = described_message(path, MESSAGE)
        schema = WriterSchema("", path.name, "PROTOBUF", (b64encode(descriptors).decode(), name))
    else:
        kind = "AVRO" if path.suffix == ".avsc" else "JSON"
        schema = WriterSchema("", path.name, kind, (path.read_text(encoding="utf-8", errors="replace"),))
    reader = column_reader(schema)
    value = reader.value(body)
    with suppress(pa.ArrowException, ValueError, TypeError, ArithmeticError):
        reader.array([value])


@contextmanager
def _one_line() -> Iterator[None]:
    try:
        yield
    except KsegError as error:
        if "\n" in error.one_line():
            raise BrokenError("an error has several lines", error.one_line()) from error


# --- commands --------------------------------------------------------------------------------------------------------


def check_command(arguments: list[str], directory: Path) -> None:
    """Check a command's exit status, and that both kernels have the same result."""
    outcomes = []
    for name in KERNELS:
        with cheap(" ".join(arguments)):
            found = outcome(arguments, directory, name)
        if found.status not in STATUSES:
            raise BrokenError(f"status {found.status}", " ".join(arguments))
        outcomes.append(found)
    if outcomes[0] != outcomes[-1]:
        detail = _first_difference(outcomes[0], outcomes[-1])
        raise BrokenError("the kernels' outcomes differ", f"kseg {' '.join(arguments)}: {detail}")
    check_messages(outcomes[0].stderr, are_own=arguments[0] != "dump")
    if ("-o", "json") in pairwise(arguments):
        check_json(outcomes[0].stdout)
    check_page(outcomes[0].stdout)
    if arguments[0] == "salvage" and NEW in arguments:
        _check_salvaged(outcomes[0], directory)


def check_messages(stderr: bytes, *, are_own: bool) -> None:
    """Check that no name in messages controls a terminal; are_own: no message is in Kafka's form."""
    text = stderr.decode("utf-8", "surrogateescape")
    if harm := HARMFUL & set(text):
        raise BrokenError("a message has a control character", f"{sorted(harm)!a}")
    if are_own and (odd := [line for line in text.splitlines() if not line.startswith("kseg: ")]):
        raise BrokenError("a message has several lines", f"{odd!a:.500}")


def check_json(stdout: bytes) -> None:
    """Check that JSON output has one object per line, with unambiguous contents."""
    for line in stdout.split(b"\n")[:-1]:
        try:
            json.loads(line, parse_constant=_refuse)
        except ValueError as error:
            raise BrokenError("a line isn't JSON", f"{error}: {line!r:.300}") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} isn't JSON's")


def check_terminal(arguments: list[str], directory: Path) -> None:
    """Check a command's output on a terminal: text, and without colours only bold or faint styles."""
    shown = on_terminal(arguments, directory)
    if COLOR.search(shown):
        raise BrokenError("a file colours the terminal", f"kseg {' '.join(arguments)}")
    harm = {letter for letter in plain(shown) if letter in HARMFUL or "\udc80" <= letter <= "\udcff"}
    if harm:
        raise BrokenError("a control character reaches a terminal", f"kseg {' '.join(arguments)}: {sorted(harm)!a}")


class _Page(HTMLParser):
    """A parser that finds elements and attributes made by a name."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if MARK in tag or any(name == f"on{MARK}" for name, _ in attrs):
            raise BrokenError("a name becomes markup", f"{tag} {attrs}")


def check_page(content: bytes) -> None:
    """Check that a page or picture has only its own elements and attributes, whatever names are in it."""
    if not content.startswith((b"<!DOCTYPE", b"<svg")):
        return
    at = content.find(f"<{MARK}".encode())
    if at >= 0:
        raise BrokenError("a name becomes markup", repr(content[max(at - 100, 0) :][:200]))
    _Page().feed(content.decode("utf-8", "replace"))


@contextmanager
def cheap(what: str) -> Iterator[None]:
    """Limit processor time and memory, far above the cost of small files."""
    with suppress(OSError):
        _PEAK_RESET.write_text("5")
    before, start = _kibibytes("VmRSS"), time.process_time()
    yield
    seconds, more = time.process_time() - start, (_kibibytes("VmHWM") - before) << 10
    if seconds > LONGEST_COMMAND:
        raise BrokenError(f"takes more than {LONGEST_COMMAND} seconds of a processor", what)
    if more > MOST_MEMORY:
        raise BrokenError(f"takes more than {MOST_MEMORY >> 20} MiB of memory", f"{what}: {more >> 20} MiB")


_PEAK_RESET = Path("/proc/self/clear_refs")
"""The file to which Linux expects a 5 to restart measuring the peak."""


def _kibibytes(name: str) -> int:
    """Return Linux's value for this process's memory; 0 on other systems."""
    with suppress(OSError), Path("/proc/self/status").open(encoding="ascii") as status:
        return next((int(line.split()[1]) for line in status if line.startswith(f"{name}:")), 0)
    return 0


def _check_salvaged(saved: Outcome, directory: Path) -> None:
    """Check that salvaged logs hold only intact batches."""
    for name, content in saved.files.items():
        if name.endswith(".log") and isinstance(content, bytes):
            path = directory / "saved.log"
            path.write_bytes(content)
            with LogFile(path) as log_file:
                if not all(map(_is_intact, log_file.runs())):
                    raise BrokenError("what was salvaged is damaged", name)
            path.unlink()


def _is_intact(item: Run | Damage) -> bool:
    return isinstance(item, Run) and 0 not in item.rows[2 : ROW * item.row_count : ROW]
