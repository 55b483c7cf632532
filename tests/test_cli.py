"""The command line's manners: exit status, messages, help, pipes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from tests import golden, run

SAMPLE = "docs/test-1-0/00000000000000203000.log"
TORN = "damaged/004-torn-records/00000000000000077901.log"


def kseg(*arguments: str) -> run.Run:
    return run.kseg(arguments, golden.ROOT)


def in_shell(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs a line of sh in golden's root, with kseg on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, **environment}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=golden.ROOT, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("kernel")
def test_healthy_file_ends_with_0_and_says_nothing_on_stderr() -> None:
    ran = kseg("dump", SAMPLE)
    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.usefixtures("kernel")
def test_damage_ends_with_1_and_is_told_on_stderr() -> None:
    ran = kseg("dump", TORN)
    assert ran.status == 1
    assert f"kseg: {TORN}: torn-tail at position 638".encode() in ran.stderr


def test_missing_file_ends_with_2_in_one_line() -> None:
    ran = kseg("dump", "nowhere/00000000000000000000.log")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: nowhere/00000000000000000000.log: ")
    assert ran.stderr.count(b"\n") == 1


@pytest.mark.usefixtures("kernel")
def test_other_files_are_read_where_one_is_missing() -> None:
    alone = kseg("dump", SAMPLE)
    ran = kseg("dump", "nowhere/00000000000000000000.log", SAMPLE)
    assert ran.status == 2
    assert ran.stdout.endswith(alone.stdout)


def test_missing_file_outweighs_damage() -> None:
    assert kseg("dump", TORN, "nowhere.log").status == 2


@pytest.mark.usefixtures("kernel")
def test_files_option_takes_a_list_as_kafkas_does() -> None:
    assert kseg("dump", "--files", f"{SAMPLE},{TORN}") == kseg("dump", SAMPLE, TORN)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["undump"], "No such command 'undump'"),
        (["dump", "--no-such-option"], "No such option"),
        (["dump", "--like", "0.7", SAMPLE], "0.7"),
        (["dump", "--like", "later", SAMPLE], "later"),
        (["dump", "--max-bytes", "many", SAMPLE], "many"),
        (["dump", "--value-decoder-class", "com.example.Decoder", SAMPLE], "com.example.Decoder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_ends_with_2_and_names_what_is_wrong(arguments: list[str], complaint: str) -> None:
    ran = kseg(*arguments)
    assert (ran.status, ran.stdout) == (2, b"")
    assert complaint in ran.stderr.decode()


def test_unknown_kernel_is_wrong_usage() -> None:
    ran = in_shell(f"kseg dump {SAMPLE}", KSEG_KERNEL="faster")
    assert ran.returncode == 2
    assert ran.stderr == "kseg: KSEG_KERNEL is 'faster'; it can be fast or twin\n"


def test_closed_pipe_ends_quietly() -> None:
    ran = in_shell(f"kseg dump --print-data-log {SAMPLE} {SAMPLE} {SAMPLE} | head -n 1")
    assert ran.stdout == f"Dumping {SAMPLE}\n"
    assert ran.stderr == ""


def test_full_disk_is_said_in_one_line() -> None:
    ran = in_shell(f"kseg dump {SAMPLE} >/dev/full")
    assert ran.returncode != 0
    assert ran.stderr.startswith("kseg: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("kernel_name", run.KERNELS)
def test_version_names_the_kernel(kernel_name: str) -> None:
    ran = in_shell("kseg --version", KSEG_KERNEL=kernel_name)
    assert (ran.returncode, ran.stdout) == (0, f"kseg 0.1.0 (kernel: {kernel_name})\n")


def test_help_lists_each_command() -> None:
    ran = kseg("--help")
    assert ran.status == 0
    listed = ran.stdout.decode().partition("Commands:\n")[2]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_examples(name: str) -> None:
    ran = kseg(name, "--help")
    assert ran.status == 0
    _, heading, examples = ran.stdout.decode().partition("Examples:\n    ")
    assert heading
    assert f"kseg {name} " in examples.partition("\nOptions:")[0]


def test_kseg_without_a_command_shows_its_help() -> None:
    ran = kseg()
    assert b"Commands:" in ran.stdout + ran.stderr


def test_interrupt_ends_with_130() -> None:
    with subprocess.Popen(
        [Path(sys.executable).with_name("kseg"), "dump", SAMPLE],
        cwd=golden.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interruptible,
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)  # it is at work now, and waits for the rest to be read
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
    assert (process.returncode, stderr.strip()) == (130, b"")


def interruptible() -> None:
    """Background processes of a shell, and so their children, ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
