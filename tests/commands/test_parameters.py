"""Options that take numbers, releases and times: refused values, and their messages."""

import os
import re
from pathlib import Path

import pytest

from kseg.commands.options.types import Size
from tests import golden, run
from tests.loops import for_each

SAMPLE = "docs/test-1-0/00000000000000203000.log"
ARABIC_28 = "\u0662.\u0668"


def refusal(*arguments: str) -> str:
    """Return the one-line message about refused arguments."""
    ran = run.kseg(arguments, golden.ROOT)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    return ran.stderr.decode()


@pytest.mark.parametrize("value", ["nan", "-nan", "inf", "1.1", "-0.1"])
def test_ratio_is_a_number_from_0_to_1(value: str) -> None:
    assert "isn't a number from 0 to 1" in refusal("ls", f"--min-cleanable-dirty-ratio={value}", "docs/test-1-0")


@pytest.mark.parametrize(
    ("command", "option", "value", "bounds"),
    [
        ("dump", "--from-offset", "many", "-9223372036854775808 to 9223372036854775807"),
        ("dump", "--producer-id", "-2", "-1 to 9223372036854775807"),
        ("dump", "--limit", "9223372036854775808", "0 to 9223372036854775807"),
        ("dump", "--tail", "1_0", "0 to 9223372036854775807"),
        ("dump", "--tail", "\u0663", "0 to 9223372036854775807"),
        ("ls", "--retention-ms", "-2", "-1 to 9223372036854775807"),
        ("explain", "--batch", "9223372036854775807", "0 to 9223372036854775806"),
        ("build", "--leader-epoch", "2147483648", "-1 to 2147483647"),
        ("build", "--producer-epoch", "32768", "0 to 32767"),
        ("verify", "--jobs", "0", "1 to 2147483647"),
    ],
)
def test_number_out_of_bounds_is_refused_with_its_bounds(command: str, option: str, value: str, bounds: str) -> None:
    said = refusal(command, option, value, SAMPLE)
    assert re.match(f"kseg: {command}: invalid value for (?:'-j' / )?'{option}': ", said)
    assert f"'{value}' isn't a whole number from {bounds}; " in said


@pytest.mark.parametrize(
    ("command", "option", "value", "bounds"),
    [
        ("dump", "--max-decompressed", "0", "1 to 1TiB"),
        ("dump", "--max-decompressed", "99999999999999", "1 to 1TiB"),
        ("dump", "--max-decompressed", "2TB", "1 to 1TiB"),
        ("dump", "--max-message-size", "-1", "0 to 2147483647"),
        ("dump", "--max-bytes", "64MIBS", "0 to 9223372036854775807"),
        ("dump", "--max-unpacked", "1.5GB", "1 to 1024TiB"),
        ("ls", "--segment-bytes", "0", "1 to 2147483647"),
        ("retain", "--retention-bytes", "-2", "-1 to 9223372036854775807"),
        ("reindex", "--index-interval-bytes", "4294967296", "0 to 2147483647"),
        ("build", "--batch-size", "\u0663", "1 to 2147483647"),
    ],
)
def test_size_out_of_bounds_is_refused_with_its_bounds(command: str, option: str, value: str, bounds: str) -> None:
    said = refusal(command, option, value, SAMPLE)
    assert said.startswith(f"kseg: {command}: invalid value for '{option}': ")
    assert f"'{value}' isn't a size from {bounds}; specify bytes, 64MB or 1GiB; " in said


@pytest.mark.parametrize(
    ("text", "size"),
    [("7", 7), ("7B", 7), ("64MB", 64_000_000), ("1GiB", 1 << 30), ("2 kib", 2048), ("3T", 3 * 10**12), ("5Ki", 5120)],
)
def test_a_size_has_a_unit_if_wanted(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


def test_a_size_is_bytes_as_in_kafkas_tool() -> None:
    shown = [run.kseg(["dump", "--max-bytes", size, SAMPLE], golden.ROOT) for size in ("102400", "100KiB")]
    assert shown[0].stdout == shown[1].stdout != b""


def test_release_is_written_in_ascii_digits() -> None:
    assert refusal("dump", "--like", ARABIC_28, "--files", SAMPLE).startswith(
        f"kseg: --like {ARABIC_28}: this isn't a rel"
    )


@pytest.mark.parametrize("time", ["9999999999999999999", "now"])
def test_times_after_all_records_select_nothing(time: str) -> None:
    ran = run.kseg(["dump", "--from-time", time, "--fields", "offset", SAMPLE], golden.ROOT)
    assert (ran.status, ran.stdout) == (0, b"")
    assert ran.stderr.startswith(b"kseg: no record in docs/test-1-0, offsets 203000 to 209299, matches --from-time ")


def test_times_before_all_records_select_all_of_them() -> None:
    ran = run.kseg(["dump", "--from-time", "-999999999999w", "--fields", "offset", SAMPLE], golden.ROOT)
    assert (ran.status, ran.stdout.count(b"\n"), ran.stderr) == (0, 6300, b"")


@for_each(
    "arguments",
    [
        "ls docs/test-1-0",
        "build PIPE --to TO",
        "protocol PIPE",
        "dump docs/test-1-0 --value-decoder avro --schema PIPE",
        "dump docs/test-1-0 --value-decoder protobuf --schema PIPE",
        "serve docs/test-1-0 --sasl-users PIPE",
        "serve docs/test-1-0 --tls-cert PIPE",
        "lookup tiered/bucket --topic aes --offset 0 --private-key key1=PIPE",
        "salvage PIPE --to TO",
        "explain PIPE.log",
    ],
)
def test_file_that_is_a_pipe_is_refused_instead_of_waited_for(
    arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody writes to it, so that a read would never end."""
    pipe = tmp_path / ("pipe.log" if ".log" in arguments else "pipe")
    os.mkfifo(pipe)
    if "PIPE" not in arguments:
        monkeypatch.setenv("KSEG_CONFIG", str(pipe))
    words = arguments.replace("PIPE.log", "PIPE").replace("PIPE", str(pipe)).replace("TO", str(tmp_path / "to"))
    said = refusal(*words.split())
    assert said.startswith(f"kseg: {pipe}: ")
    assert "isn't a regular file" in said or "Not a directory" in said
