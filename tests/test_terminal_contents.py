"""No file controls a terminal: every command and form escapes contents of files; pipes get them unchanged."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from kseg.output.streams import Terminal
from kseg.writer.batches import MemoryRecords, RecordsBuilder
from tests import run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.protocol.packets import frame_message, request
from tests.terminal import HARMFUL, Screen, in_terminal, plain

STYLE = "\x1b[35;1;7m"
"""A style that kseg never uses."""
EVERY = "".join(sorted(HARMFUL)) + f"\x1b[2J\x1b]0;owned\x07\x9b31m{STYLE}"
"""Text with all characters that must not reach a terminal."""
TOPIC = os.fsdecode(f"t{STYLE}\x1b]0;owned\x07\n\x9b31m\u202e".encode() + b"\x9b2J\xff")
"""The same for the name of a directory, with non-UTF-8 bytes."""
BYTES = b"\x9b2J\xff\x1b[2J\r\x07"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log directory with a partition and internal topics full of control characters."""
    directory = tmp_path_factory.mktemp("disk")
    text = EVERY.encode()
    records = [NewRecord(text, text, headers=[(EVERY, text)]), NewRecord(BYTES, BYTES, headers=[("h", BYTES)])]
    write_segment(directory / f"{TOPIC}-0", [NewBatch(records)])
    write_segment(directory / "damaged-0", [NewBatch(records)])
    log = directory / "damaged-0" / f"{0:020}.log"
    log.write_bytes(b"\x1b\x9b" * 50 + log.read_bytes())
    write_segment(directory / "__consumer_offsets-0", [NewBatch([_commit()])])
    write_segment(directory / "__transaction_state-0", [NewBatch([_transaction()])])
    write_segment(directory / "__cluster_metadata-0", [NewBatch([_topic()])])
    (directory / "meta.properties").write_text(
        f"version=1\nnode.id=1\nn{STYLE}=1\ncluster.id={EVERY.replace(chr(0), '')}\n"
    )
    (directory / "frames").write_bytes(frame_message(_produce()) + frame_message(b"\x9b\x1b" * 30))
    return directory


def _commit() -> NewRecord:
    key = {"group": EVERY, "topic": EVERY, "partition": 0}
    return NewRecord(
        b"\0\1" + build_message(message_schema("OffsetCommitKey"), 0, key),
        b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, {"offset": 5, "metadata": EVERY}),
    )


def _transaction() -> NewRecord:
    value = {"producerId": 7, "transactionStatus": 1, "transactionPartitions": [{"topic": EVERY, "partitionIds": [0]}]}
    return NewRecord(
        b"\0\0" + build_message(message_schema("TransactionLogKey"), 0, {"transactionalId": EVERY}),
        b"\0\0" + build_message(message_schema("TransactionLogValue"), 0, value),
    )


def _topic() -> NewRecord:
    return NewRecord(
        None, b"\1\2\0" + build_message(message_schema("TopicRecord"), 0, {"name": EVERY, "topicId": "A" * 22})
    )


def _batch() -> MemoryRecords:
    builder = RecordsBuilder()
    builder.append(1000, EVERY.encode(), BYTES, [(EVERY, BYTES)])
    return builder.build()


def _produce() -> bytes:
    partition = {"index": 0, "records": _batch().raw}
    body = {"acks": 1, "topicData": [{"name": EVERY, "partitionData": [partition]}]}
    return request(0, 9, body, client_id=EVERY)


EVIL = f"{TOPIC}-0"
LOG = f"{EVIL}/{0:020}.log"
CASES = [
    ("dump", EVIL),
    ("dump", EVIL, "--print-data-log"),
    ("dump", "--like", "2.8", "--print-data-log", "--files", LOG),
    ("dump", "--like", "4.3", "--print-data-log", "--files", LOG),
    ("dump", EVIL, "--template", "{offset} {key} {value} {headers}"),
    ("dump", EVIL, "--fields", "topic,file,key,value,headers"),
    ("dump", EVIL, "-o", "csv", "--fields", "topic,file,key,value,headers"),
    ("dump", EVIL, "-o", "json"),
    ("dump", EVIL, "-o", "json", "--fields", "topic,file,key,value,headers"),
    ("dump", EVIL, "-o", "table", "--fields", "topic,file,key,value,headers"),
    ("dump", EVIL, "-o", "kcat"),
    ("dump", "__consumer_offsets-0", "-o", "kcat"),
    ("dump", EVIL, "--key-decoder", "string", "--value-decoder", "bytes", "--print-data-log"),
    ("dump", "damaged-0", "--print-data-log"),
    ("dump", "."),
    ("dump", "meta.properties"),
    ("dump", "meta.properties", "-o", "json"),
    ("dump", "__consumer_offsets-0", "-o", "json"),
    ("dump", "__consumer_offsets-0", "--offsets-decoder", "--print-data-log"),
    ("dump", "__transaction_state-0", "--transaction-log-decoder", "--print-data-log"),
    ("dump", "__cluster_metadata-0", "--cluster-metadata-decoder", "--print-data-log"),
    ("dump", "__cluster_metadata-0", "-o", "json"),
    ("dump", f"{EVIL}/none"),
    *(("ls", ".", "-o", form) for form in ("text", "json", "csv", "table")),
    *(("lookup", EVIL, "--offset", "0", "--print-data-log", "-o", form) for form in ("text", "json")),
    ("lookup", EVIL, "--offset", "1", "--print-data-log"),
    *(("get", EVIL, "--offset", "0", "--field", field) for field in ("value", "key", "header:none")),
    ("lookup", ".", "--offset", "1", "--topic", TOPIC, "--partition", "7"),
    *(("verify", ".", "-o", form) for form in ("text", "json")),
    *(("explain", LOG, "-o", form) for form in ("text", "json")),
    ("explain", "damaged-0/00000000000000000000.log", "--color"),
    ("explain", "meta.properties"),
    *(("groups", ".", "-o", form) for form in ("text", "json", "csv", "table", "reset-csv")),
    *(("txns", "__transaction_state-0", "-o", form) for form in ("text", "json", "csv", "table")),
    *(("metadata", ".", "-o", form) for form in ("text", "json", "csv", "table")),
    ("metadata", ".", "--show", "topics", "-o", "csv"),
    *(("protocol", "frames", "--print-data-log", "-o", form) for form in ("text", "json")),
    ("protocol", "frames", "--count"),
    ("retain", ".", "--dry-run"),
    ("where", "--group", EVERY.replace("\0", "")),
    ("where", ".", "--key", EVERY.replace("\0", ""), "--topic", TOPIC, "--partitions", "3"),
    ("salvage", "damaged-0", "--dry-run"),
    *(("diff", EVIL, "damaged-0", "--records", "-o", form) for form in ("text", "json", "csv", "table")),
    ("compact", EVIL, "--dry-run"),
    ("export", ".", "out", "--dry-run"),
    ("nonsense\x1b[2J",),
    ("dump", "--nonsense\x1b[2J"),
]


def escape_line(arguments: tuple[str, ...]) -> str:
    """Return a command line with escaped control characters."""
    return ascii(run.command(arguments))


@for_each("arguments", CASES, ids=escape_line, shards=2)
def test_nothing_of_a_file_controls_the_terminal(arguments: tuple[str, ...], disk: Path) -> None:
    printed = in_terminal(disk, *arguments, columns=400)  # fails on invalid UTF-8
    assert printed
    assert not set(plain(printed).replace("\r\n", "\n")) & HARMFUL
    assert STYLE not in printed


PIPED_CASES = [
    case for case in CASES if case[0] in ("dump", "ls", "explain") and {"--template", "csv", "text"} & {*case}
]


@pytest.mark.parametrize("arguments", PIPED_CASES, ids=lambda arguments: ascii(" ".join(arguments))[:70])
def test_a_pipe_gets_what_a_file_gets(arguments: tuple[str, ...], disk: Path) -> None:
    command = [Path(sys.executable).parent / "kseg", *arguments]
    piped = subprocess.run(command, cwd=disk, capture_output=True, timeout=60)
    written = run.process(arguments, disk)
    assert written.stdout == piped.stdout == run.kseg(arguments, disk).stdout
    assert written.status == piped.returncode < 2


def test_text_of_a_pipe_is_what_was_there(disk: Path) -> None:
    ran = run.kseg(["dump", EVIL, "--limit", "1", "--template", "{key}"], disk)
    assert ran.stdout == EVERY.encode() + b"\n"
    assert EVERY.encode() in run.kseg(["dump", EVIL, "--limit", "1", "-o", "csv", "--fields", "value"], disk).stdout


def test_raw_gives_a_terminal_the_bytes(disk: Path) -> None:
    text = EVERY.replace("\n", "")
    for arguments in (("dump", EVIL, "--template", "{key}", "--limit", "1"), ("lookup", EVIL, "--offset", "0")):
        extra = ("--print-data-log",) if arguments[0] == "lookup" else ()
        assert text in in_terminal(disk, *arguments, *extra, "--raw").replace("\r\n", "\n")
    assert EVERY in in_terminal(disk, "groups", ".", "-o", "csv", "--raw")


@for_each("arguments", [case for case in CASES if "json" in case], ids=escape_line)
def test_json_on_a_terminal_is_json_of_a_pipe(arguments: tuple[str, ...], disk: Path) -> None:
    arguments = (*arguments, *(("-q",) if arguments[0] in ("dump", "ls", "verify") else ()))
    printed = in_terminal(disk, *arguments)
    piped = run.kseg(arguments, disk).stdout.decode()
    objects = [line for line in printed.splitlines() if line.startswith("{")]
    assert [line for line in objects if line in piped] == piped.splitlines()
    assert all(isinstance(json.loads(line), dict) for line in objects)


def test_json_tells_the_same_as_before(disk: Path) -> None:
    (first, *_) = run.kseg(["dump", EVIL, "-o", "json", "--only", "records"], disk).stdout.splitlines()
    record = json.loads(first)
    assert (record["key"], record["value"], record["headers"][0]) == (EVERY, EVERY, {"key": EVERY, "value": EVERY})


def _pieces() -> Iterator[tuple[bytes, ...]]:
    content = "aä\x9b\u202e\U000e0041€\x1b[0m".encode() + b"\x9b\xff\xe2\x80"
    yield from ((content[:at], content[at:]) for at in range(len(content) + 1))
    yield tuple(bytes((byte,)) for byte in content)


def test_a_character_may_come_in_pieces() -> None:
    wanted = r"aä\x9b\u202e\U000e0041€\x1b[0m\x9b\xff\xe2\x80"
    for pieces in _pieces():
        kept = Screen()
        terminal = Terminal(kept)
        for piece in pieces:
            terminal.write_contents(piece)
        terminal.flush()
        assert kept.content.decode() == wanted


@for_each("arguments", [case for case in CASES if "table" in case], ids=escape_line)
def test_a_pager_gets_nothing_of_a_file_either(arguments: tuple[str, ...], disk: Path, tmp_path: Path) -> None:
    in_terminal(disk, *arguments, KSEG_PAGER=f"sh -c 'cat >>{tmp_path}/paged'")
    paged = (tmp_path / "paged").read_bytes().decode()
    assert len(paged.splitlines()) > 2
    assert not set(plain(paged)) & HARMFUL
    assert STYLE not in paged
