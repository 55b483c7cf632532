"""Completions of values in real shells: releases, decoders, fields, findings, topics, time zones."""

import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from tests import golden
from tests.processes import start_process
from tests.run import process

PROGRAMS = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TERM": "dumb"}


def by_bash(line: str) -> list[str]:
    words = line.split(" ")
    script = f"""eval "$(kseg completion bash)"
COMP_WORDS=({shlex.join(words[:-1])} {shlex.quote(words[-1])}); COMP_CWORD={len(words) - 1}
_kseg_completion kseg {shlex.quote(words[-1])} {shlex.quote(words[-2])}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return run("bash", "--norc", "--noprofile", "-c", script)


def by_fish(line: str) -> list[str]:
    return run("fish", "--no-config", "-c", f"kseg completion fish | source; complete -C {shlex.quote(line)}")


def run(*command: str) -> list[str]:
    ran = subprocess.run(command, cwd=golden.ROOT, env=PROGRAMS, capture_output=True, text=True, check=True)
    return ran.stdout.split()


SHELLS: dict[str, Callable[[str], list[str]]] = {"bash": by_bash, "fish": by_fish}


@pytest.fixture(params=[name for name in SHELLS if shutil.which(name)])
def complete_word(request: pytest.FixtureRequest) -> Callable[[str], list[str]]:
    """Return a function that returns a shell's completions of the last word of a line."""
    return SHELLS[request.param]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("kseg dump --like 0.1", {"0.10", "0.11"}),
        ("kseg dump --value-decoder a", {"avro", "auto"}),
        ("kseg dump --fields offset,timestamp", {f"offset,timestamp{end}" for end in ("", "Type", "Delta")}),
        ("kseg verify --explain bad-c", {"bad-crc", "bad-codec", "bad-count"}),
        ("kseg doctor --explain leader-epochs", {"leader-epochs-missing", "leader-epochs-cleared"}),
        ("kseg ls logs/4.3.1 --topic zs", {"zstd"}),
        ("kseg dump logs --topic broker-l", {"broker-lz4"}),
        ("kseg ls --tz Europe/Berl", {"Europe/Berlin"}),
        ("kseg ls --tz local", {"local", "localtime"}),
        ("kseg build --compression z", {"zstd"}),
        ("kseg salvage -o j", {"json"}),
        ("kseg help ex", {"explain", "export"}),
    ],
)
def test_values_are_offered(complete_word: Callable[[str], list[str]], line: str, values: set[str]) -> None:
    assert set(complete_word(line)) == values


def test_topics_of_what_cant_be_listed_are_none(complete_word: Callable[[str], list[str]]) -> None:
    assert complete_word("kseg ls nowhere --topic abc") == []


@pytest.mark.parametrize(
    ("line", "environment"),
    [
        ("kseg dmp --", {}),
        ("kseg dump --lik", {"KSEG_CONFIG": "nosuch.toml"}),
        ("kseg dump --lik", {"KSEG_DUMP_NOSUCH": "1"}),
        ("kseg dump --lik", {"COMP_CWORD": "x"}),
        ("kseg dump \n", {"_KSEG_COMPLETE": "fish_complete", "COMP_CWORD": "\n"}),
    ],
)
def test_nothing_is_written_onto_the_prompt(line: str, environment: dict[str, str]) -> None:
    words = {"_KSEG_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ran = process([], golden.ROOT, environment={**words, **environment})
    assert ran.stderr == b""
    assert ran.stdout in (b"", b"plain,--like\n")


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
def test_zsh_completes_at_its_prompt() -> None:
    leader, follower = pty.openpty()
    environment = {**PROGRAMS, "TERM": "xterm", "COLUMNS": "200"}
    with start_process(
        ["zsh", "-f"], golden.ROOT, stdin=follower, stdout=follower, stderr=follower, environment=environment
    ) as shell:
        os.close(follower)
        ready = 'PS1=ready; autoload -U compinit; compinit -u; eval "$(kseg completion zsh)"; echo "de""fined"\n'
        os.write(leader, ready.encode())
        read_until(leader, b"defined\r\n")
        os.write(leader, b"kseg dump --value-decoder avr\t")
        read_until(leader, b"avro")
        os.write(leader, b"\x15exit\n")
        read_until(leader, None)
        shell.wait()
    os.close(leader)


def read_until(leader: int, wanted: bytes | None) -> None:
    """Read a terminal's output up to the wanted bytes, or to its end."""
    found = b""
    while wanted is None or wanted not in found:
        try:
            piece = os.read(leader, 4096)
        except OSError:
            piece = b""
        if not piece:
            assert wanted is None, found
            return
        found += piece


def test_each_command_can_be_completed() -> None:
    assert set(by_bash("kseg ")) == set(COMMANDS)
