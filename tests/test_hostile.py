"""Files made to cost much: what kseg does about them is counted, in bytes of memory and in calls, not in time."""

import resource
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from crc32c import crc32c

from kseg.formats.codes import DamageKind
from kseg.log_file import Damage, LogFile, Run
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.run import kseg

NAME = f"{0:020}.log"
SMALL = batch(BatchHeader(3), [Record(value=b"small")])
LARGE_SIZE = 40 << 20
"""Larger than what is believed of a length before its CRC was looked at, and than what a command may hold."""
MOST_MEMORY = 12 << 20
"""Bytes of a read buffer's ring, and some."""
UNKNOWN_CODEC = 7

pytestmark = pytest.mark.usefixtures("kernel")


def write(directory: Path, content: bytes, size: int | None = None) -> Path:
    """A log with a hole behind its content, up to `size` bytes."""
    path = directory / NAME
    with path.open("wb") as file:
        file.write(content)
        file.truncate(size or len(content))
    return path


def claiming(size: int) -> bytes:
    """The start of a v2 batch of `size` bytes, whose CRC doesn't hold."""
    return with_length(batch(BatchHeader(1), [Record(value=b"not this one")]), size)


def with_length(made: bytes, size: int) -> bytes:
    """A batch whose header claims `size` bytes in all; the CRC doesn't cover that."""
    return made[:8] + (size - 12).to_bytes(4, "big") + made[12:]


def with_wrong_crc(made: bytes) -> bytes:
    return made[:17] + bytes(4) + made[21:]


def peak_of(arguments: list[str], directory: Path) -> int:
    """Bytes that Python allocated at most in a run of kseg."""
    kseg(arguments, directory)  # what is imported and compiled is not the file's
    tracemalloc.start()
    try:
        kseg(arguments, directory)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def calls_of(arguments: list[str], directory: Path) -> int:
    """Python's calls in a run of kseg, with the steps of its generators."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        kseg(arguments, directory)
    finally:
        sys.setprofile(None)
    return count


# --- false lengths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["dump"], ["dump", "--print-data-log"], ["dump", "--like", "4.3"], ["dump", "-o", "json"], ["verify"]]
)
def test_false_length_that_ends_with_the_file_is_not_allocated(arguments: list[str], tmp_path: Path) -> None:
    write(tmp_path, claiming(LARGE_SIZE), LARGE_SIZE)
    assert peak_of([*arguments, NAME if "dump" in arguments else "."], tmp_path) < MOST_MEMORY


def items(path: Path, *, as_kafka: bool) -> list[Run | Damage]:
    with LogFile(path) as log_file:
        return list(log_file.runs_as_kafka() if as_kafka else log_file.runs())


@pytest.mark.parametrize("as_kafka", [False, True])
def test_false_length_up_to_the_files_end_is_a_damage_that_says_why(as_kafka: bool, tmp_path: Path) -> None:
    [damage] = items(write(tmp_path, claiming(LARGE_SIZE), LARGE_SIZE), as_kafka=as_kafka)
    assert isinstance(damage, Damage)
    assert (damage.kind, damage.position, damage.size) == (DamageKind.BAD_CRC, 0, LARGE_SIZE)
    assert f"nothing else tells that it has {LARGE_SIZE} bytes" in damage.detail


@pytest.mark.parametrize("as_kafka", [False, True])
def test_batch_inside_a_large_false_length_is_found(as_kafka: bool, tmp_path: Path) -> None:
    start = claiming(LARGE_SIZE)
    damage, run, tail = items(write(tmp_path, start + SMALL, LARGE_SIZE), as_kafka=as_kafka)
    assert isinstance(damage, Damage)
    assert isinstance(run, Run)
    assert (damage.size, run.position) == (len(start), 0)
    assert isinstance(tail, Damage)
    assert tail.kind is DamageKind.ZERO_TAIL


@pytest.mark.parametrize("as_kafka", [False, True])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_large_batch_with_a_flipped_value_keeps_its_length(magic: int, as_kafka: bool, tmp_path: Path) -> None:
    value = bytes(9 << 20)
    message = Message(value=value, offset=1, magic=magic)
    made = batch(BatchHeader(1), [Record(value=value)]) if magic == 2 else message.encoded()
    run, _ = items(write(tmp_path, made[:-1] + b"\x01" + SMALL), as_kafka=as_kafka)
    assert isinstance(run, Run)
    assert list(run.rows) == [0, len(made), 0]


def test_large_compressed_batch_with_a_wrong_crc_is_read_where_others_are_as_large(tmp_path: Path) -> None:
    good = batch(BatchHeader(1, attributes=4), body=bytes(9 << 20))
    bad = with_wrong_crc(batch(BatchHeader(2, attributes=4), body=bytes(9 << 20)))
    sizes = [list(item.rows[:3]) for item in items(write(tmp_path, good + bad + SMALL), as_kafka=False)]
    assert sizes[:2] == [[0, len(good), 1], [0, len(bad), 0]]


def test_batch_for_which_there_is_no_memory_is_one_line_and_status_2(tmp_path: Path) -> None:
    start = with_length(batch(BatchHeader(0)), size := (256 << 20) + 61)
    crc = crc32c(start[21:])
    for _ in range(256):
        crc = crc32c(bytes(1 << 20), crc)
    write(tmp_path, start[:17] + crc.to_bytes(4, "big") + start[21:], size)
    limit = 250 << 20
    ran = subprocess.run(
        [sys.executable, "-c", "import sys; from kseg.cli import main; sys.exit(main())", "dump", NAME],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert ran.returncode == 2
    assert ran.stderr == f"kseg: {NAME}: at position 0: there's no memory for {size} bytes\n".encode()


# --- many damages ----------------------------------------------------------------------------------------------------


def test_work_on_batches_of_unknown_codecs_grows_with_their_number(tmp_path: Path) -> None:
    calls = []
    for count in (500, 1000):
        write(tmp_path, b"".join(batch(BatchHeader(n, attributes=UNKNOWN_CODEC), body=b"?") for n in range(count)))
        calls.append(calls_of(["dump", NAME], tmp_path))
    assert calls[1] < 2.2 * calls[0]
