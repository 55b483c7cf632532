"""The text of one record as `kseg dump` prints it, through the same renderer."""

from pathlib import Path

from kseg import kernel
from kseg.batch import Batch, Record
from kseg.bodies import Slice, with_bodies
from kseg.dump.decoders import control_json
from kseg.dump.log import new_output
from kseg.kernel.contract import Program
from kseg.layouts.programs import LogOptions, documented_program
from kseg.log_file import LogFile, Run


def record_line(path: Path, position: int, size: int, offset: int, *, print_data: bool = False) -> bytes:
    """The line of a record, in the documentation's layout, with its line end.

    Names of headers, keys and payloads may bring in line ends of their own.

    Args:
        path: the log.
        position: where the record's batch stands.
        size: the batch's bytes.
        offset: the record's.
        print_data: adds key and payload.

    Raises:
        ValueError: if no batch of this size stands there, or the record isn't in it.
    """
    program = documented_program(LogOptions(deep=True, print_data=print_data))
    batch, lines = _rendered(path, position, size, program)
    first = 0
    for record in batch.records():
        last = first + 1 + _line_ends(record, print_data=print_data and not batch.is_control)
        if record.offset == offset:
            return b"".join(lines[first:last])
        first = last
    raise ValueError(f"no record of offset {offset} in the batch at position {position}")


def record_json(path: Path, position: int, size: int, offset: int) -> bytes:
    """The record as the object that `kseg dump -o json` gives. Arguments and errors are record_line's."""
    from kseg.layouts.json import json_program

    batch, lines = _rendered(path, position, size, json_program("", batches=False))
    for record, line in zip(batch.records(), lines, strict=False):
        if record.offset == offset:
            return line.removesuffix(b"\n")
    raise ValueError(f"no record of offset {offset} in the batch at position {position}")


def _line_ends(record: Record, *, print_data: bool) -> int:
    """Line ends that a record's texts bring into its line."""
    count = sum(header.key.count("\n") for header in record.headers)
    if print_data:
        count += (record.key or b"").count(b"\n") + (record.value or b"").count(b"\n")
    return count


def _rendered(path: Path, position: int, size: int, program: Program) -> tuple[Batch, list[bytes]]:
    """A batch, and the lines that the program prints of it."""
    with LogFile(path, position + size) as log_file:
        run = next(log_file.runs(position), None)
        if not isinstance(run, Run):
            raise ValueError(f"no batch at position {position}")
        (piece,) = with_bodies(iter([run._replace(row_count=1)]), size)
        assert isinstance(piece, Slice)
        text = bytearray()
        output = new_output(text.extend)
        renderer = kernel.load().Renderer(program, output, decode_control=control_json)
        renderer.render(run.buffer, run.rows, 0, 1, run.position, piece.bodies)
        output.flush()
        batch = Batch.parse(bytes(run.buffer[:size]), position, is_valid=True)
    return batch, [line + b"\n" for line in bytes(text).split(b"\n")[:-1]]
