"""Messages of formats 0 and 1 in images, and wrappers of them."""

import gzip
import random
from pathlib import Path

import pytest

from tests.carve.made_images import FIRST_TIME, Log
from tests.carve.test_hints import interleaved
from tests.carve.test_listed_files import assert_no_mixture, carve_lists
from tests.commands.test_carve import BLOCK, LOGS, carve, carved_logs
from tests.kernel.made import Message

GZIP = 1


def legacy_log(name: str, magic: int, count: int = 59) -> bytes:
    """Return messages of about 280 bytes, none of which breaks in its first bytes."""
    chance = random.Random(name)
    return b"".join(
        Message(b"key", chance.randbytes(240), offset, magic, timestamp=FIRST_TIME + offset).encode()
        for offset in range(count)
    )


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_old_formats_are_found_if_wanted(magic: int, tmp_path: Path) -> None:
    log = legacy_log("a", magic)
    image = bytes(BLOCK) + log + bytes(BLOCK)
    assert carve(tmp_path, image).status == 2
    carve(tmp_path, image, "--legacy")
    assert carved_logs(tmp_path) == {f"carved-0001-0/{0:020}.log": log}


@pytest.mark.parametrize("magic", [0, 1])
def test_torn_messages_of_old_formats_are_joined(magic: int, tmp_path: Path) -> None:
    log, twin = (legacy_log(name, magic) for name in "ab")
    blocks, others = (
        [each[at : at + BLOCK].ljust(BLOCK, b"\0") for at in range(0, len(log), BLOCK)] for each in (log, twin)
    )
    carve(tmp_path, others[2] + b"".join(reversed(blocks)) + others[0], "--legacy")
    assert log in carved_logs(tmp_path).values()
    assert all(carved in log or carved in twin for carved in carved_logs(tmp_path).values())


@pytest.mark.parametrize("release", ["0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3"])
def test_logs_of_old_brokers_are_carved_whole(release: str, tmp_path: Path) -> None:
    logs = [path for path in sorted((LOGS / release).glob("*/*.log")) if path.stat().st_size]
    assert logs
    for number, path in enumerate(logs):
        directory = tmp_path / str(number)
        directory.mkdir()
        carve(directory, path.read_bytes() + bytes(BLOCK), "--legacy")
        assert b"".join(carved_logs(directory).values()) == path.read_bytes(), path


def test_wrappers_of_a_torn_log_become_one_segment(tmp_path: Path) -> None:
    chance, wrappers, offset = random.Random(1), [], 0
    for count in [3, 1, 5] * 20:
        inner = [Message(b"key", chance.randbytes(68), each, 1).encode() for each in range(count)]
        offset += count
        wrappers.append(
            Message(None, gzip.compress(b"".join(inner), mtime=0), offset - 1, 1, GZIP, FIRST_TIME).encode()
        )
    log = b"".join(wrappers)
    blocks = [log[at : at + BLOCK].ljust(BLOCK, b"\0") for at in range(0, len(log), BLOCK)]
    carve(tmp_path, b"".join(reversed(blocks)), "--legacy")
    assert carved_logs(tmp_path) == {f"carved-0001-0/{0:020}.log": log}


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_messages_of_many_pieces_come_back_by_a_list(magic: int, codec: int, tmp_path: Path) -> None:
    logs = []
    for name in "ab":
        chance, contents = random.Random(name), []
        for offset, size in enumerate([240] * 9 + [9000, 30_000, 240, 7000] + [240] * 9):
            value = chance.randbytes(size)
            if codec:
                inner = Message(b"key", value, 0 if magic else offset, magic, timestamp=FIRST_TIME).encode()
                value = gzip.compress(inner, mtime=0)
            contents.append(Message(None, value, offset, magic, codec, FIRST_TIME).encode())
        logs.append(Log(name, b"".join(contents), ()))
    blocks, lists = interleaved(logs)
    assert carve_lists(tmp_path, blocks, lists, "--legacy") == sorted(log.content for log in logs)
    assert_no_mixture(carve_lists(tmp_path / "without", blocks, [], "--legacy"), logs)
