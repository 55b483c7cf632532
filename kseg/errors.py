"""The family of exceptions for errors that stop a call; and parts of messages, such as nouns with counts."""

import re
from collections.abc import Callable
from os import PathLike

_QUOTED_LENGTH, _REASON_LENGTH = 60, 300
_PRIVATE_IN_URL = (
    r"(?i)(?<=://)(?P<user>[^/:@\s'\"]*):[^/\s'\"]*@"
    r"|(?<=[?&])(?P<name>[a-z_-]*(?:key|secret|token|sig|signature|password|credential)[a-z_-]*)=[^&:\s'\"]*"
)


class KsegError(Exception):
    """The base of all errors: wrong use, or a file that can't be opened.

    `path` and `position` (bytes) give the place, if known. `status`: the exit status.
    """

    status = 2

    def __init__(self, message: str, path: str | PathLike[str] | None = None, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = None if path is None else str(path)
        self.position = position

    def __str__(self) -> str:
        return self.one_line()

    def one_line(self) -> str:
        """Return one line: path, position, problem and next step."""
        place = "" if self.path is None else f"{self.path}: "
        at = "" if self.position is None else f"at position {self.position}: "
        return without_secrets(f"{place}{at}{self.message}")


def without_secrets(text: str) -> str:
    """Return a text without the passwords, keys and signatures of its URLs."""
    return re.sub(
        _PRIVATE_IN_URL, lambda found: f"{found['name']}=***" if found["name"] else f"{found['user']}:***@", text
    )


class UsageError(KsegError):
    """Wrong options or arguments."""


def missing_library(name: str, extra: str) -> str:
    """Return the message about an optional library that isn't installed, with the way to install it."""
    return f"{name} is missing; {install_step(extra)}"


def install_step(extra: str) -> str:
    """Return the next step that installs an extra. Tarballs, Debian packages and environments of uv have no pip."""
    from importlib.util import find_spec

    if find_spec("pip"):
        return f"run `pip install 'kseg[{extra}]'`"
    return f"install kseg with its extra {extra} by pip or uv, as docs/start/install.md explains"


class RecordError(UsageError):
    """An error: no format of Kafka can hold a record or batch; it has wrong fields, is too large, or out of order."""


class FileError(KsegError):
    """An error of the contents of a file, or of opening it, that stops a call; other files may not need it.

    A failing store raises ClusterError instead, which says nothing about its files.
    """


class OpenError(FileError):
    """An error: a file or directory can't be opened or read."""


class ClusterError(KsegError):
    """An error: a cluster or service doesn't answer, or fails."""

    status = 3


class SwappedError(KsegError):
    """An error: a destination was replaced by a link or another directory meanwhile; files may have gone elsewhere."""

    status = 3

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(
            "another program replaced it while kseg was writing, so files may be elsewhere; find that"
            " program, then run the command again",
            path,
        )


class DamagedError(FileError):
    """An error: the call can't be done since the data is damaged.

    `hint`: a next step for callers of the API; a command's user doesn't have it.
    """

    status = 1

    def __init__(
        self, message: str, path: str | PathLike[str] | None = None, position: int | None = None, *, hint: str = ""
    ) -> None:
        super().__init__(message, path, position)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.one_line()}; {self.hint}" if self.hint else self.one_line()


class UnreadableError(OpenError):
    """An error: part of an input can't be listed, opened or read. It is damage of the data; the rest is read."""

    status = 1


class ClosedPipeError(KsegError):
    """An error: the reader of standard output has closed it. The command ends quietly, as `cat` does."""


def reason(error: BaseException) -> str:
    """Return the text of a library's error for a one-line message: its first line, shortened if it is long."""
    return shorten(str(error).strip().partition("\n")[0] or type(error).__name__, _REASON_LENGTH)


def quote(value: object) -> str:
    """Return a value for a one-line message, shortened if it is long."""
    return shorten(repr(value))


def shorten(text: str, length: int = _QUOTED_LENGTH) -> str:
    """Return a text of at most `length` characters, with a sign for the omitted part."""
    return text if len(text) <= length else text[:length] + "…"


def pass_once(say: Callable[[str], object]) -> Callable[[str], None]:
    """Return a function that passes each line on once."""
    said: set[str] = set()

    def say_new(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return say_new


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun, `1 segment` or `2 segments`; nouns: the plural, None adds an s."""
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"
