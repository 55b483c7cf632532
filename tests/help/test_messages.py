"""docs/help/messages.md has an entry for each message that kseg can print, and no others."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import click

from kseg.cli import COMMANDS, cli
from tests import golden
from tests.help.messages import Message, collect
from tests.help.source import Source, kseg_source

ROOT = golden.ROOT.parent
PAGE = (ROOT / "docs/help/messages.md").read_text(encoding="utf-8")
_TERM = re.compile(r"^(?:`([^`]+)`|`` (.+) ``)$", re.MULTILINE)
_MEANING = re.compile(r"^:   (.+(?:\n    .+)*)", re.MULTILINE)


@cache
def messages() -> list[Message]:
    """Return the messages of kseg and of its data source for Spark."""
    return collect(kseg_source())


def entries() -> list[str]:
    """Return the messages that have an entry on the page."""
    return [one or other for one, other in _TERM.findall(PAGE)]


def term(text: str) -> str:
    """Return a message in the form of the page."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def test_each_message_has_an_entry_in_help() -> None:
    known = set(entries())
    missing = [f"{message.place} says\n{term(message.text)}" for message in messages() if message.text not in known]
    how = "Add to docs/help/messages.md, to an entry with the same cause and cure or with `:   ` and one of its own:"
    assert not missing, "\n".join([how, *missing])


def test_each_entry_is_of_a_message_that_kseg_has() -> None:
    known = {message.text for message in messages()}
    gone = [term(entry) for entry in entries() if entry not in known]
    assert not gone, "\n".join(["Remove from docs/help/messages.md, or change with its message:", *gone])


def test_no_message_stands_twice() -> None:
    assert [entry for entry, count in Counter(entries()).items() if count > 1] == []


def test_each_entry_says_what_its_messages_mean() -> None:
    blocks = [block for block in PAGE.split("\n\n") if _TERM.search(block)]
    unsaid = [block for block in blocks if not _MEANING.search(block)]
    assert unsaid == []


def test_commands_and_options_in_entries_are_those_that_there_are() -> None:
    meanings = " ".join(found.replace("\n    ", " ") for found in _MEANING.findall(PAGE))
    wrong = [line for line in re.findall(r"`kseg ([a-z][^`]*)`", meanings) if not _is_known(line.split())]
    assert wrong == []


def _is_known(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    name, options = own[0], [word for word in own[1:] if word.startswith("-") and word != "-"]
    if name not in COMMANDS:
        return False
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    return known.issuperset(options)


def test_messages_are_followed_to_where_their_words_are(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "program.py").write_text(
        """
_WHY = {1: "the disk is full", 2: f"{PATH} has gone away"}
_LINE = "line {number} of the file is cut"

class OwnError(Exception):
    pass

class Wrapped(OwnError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} no longer exists")

class Damage:
    position: int
    detail: str

def read(path: str) -> None:
    raise OwnError(f"can't be read: {_WHY[path]}")

def _refuse(message: str) -> None:
    raise OwnError(message)

def write(count: int) -> Damage:
    reason = "too many of them" if count else why(count)
    _refuse(f"{count} files fail: {reason}")
    talk("kseg: all is done now")
    return Damage(4, _LINE.format(number=count))

def why(count: int) -> str:
    return "none at all is left"

def fail(kind: type[OwnError]) -> None:
    raise kind("this can't be opened")
""",
        encoding="utf-8",
    )
    assert [message.text for message in collect(Source(tmp_path, "some"))] == [
        "all is done now",
        "can't be read: …",
        "line … of the file is cut",
        "none at all is left",
        "the disk is full",
        "this can't be opened",
        "too many of them",
        "… files fail: …",
        "… has gone away",
        "… no longer exists",
    ]
