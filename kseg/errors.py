"""The one family of exceptions, for whatever stops a call; and lines of messages: said once, with counted nouns."""

import re
from collections.abc import Callable
from os import PathLike

_QUOTED_LENGTH, _REASON_LENGTH = 60, 300
_PRIVATE_IN_URL = (
    r"(?i)(?<=://)(?P<user>[^/:@\s'\"]*):[^/\s'\"]*@"
    r"|(?<=[?&])(?P<name>[a-z_-]*(?:key|secret|token|sig|signature|password|credential)[a-z_-]*)=[^&:\s'\"]*"
)


class KsegError(Exception):
    """A call can't be done: wrong use, or a file that can't be opened.

    `path` and `position` (bytes) say where, if a place is known. `status`: the exit status that it asks for.
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
        """One line: path, position, what is wrong and what to do."""
        place = "" if self.path is None else f"{self.path}: "
        at = "" if self.position is None else f"at position {self.position}: "
        return without_secrets(f"{place}{at}{self.message}")


def without_secrets(text: str) -> str:
    """A text without the passwords, keys and signatures of its URLs."""
    return re.sub(
        _PRIVATE_IN_URL, lambda found: f"{found['name']}=***" if found["name"] else f"{found['user']}:***@", text
    )


class UsageError(KsegError):
    """Wrong options or arguments."""


def missing_library(name: str, extra: str) -> str:
    """What to say of an optional library that isn't installed: the command that installs it, with its kin."""
    return f"{name} is missing: `pip install 'kseg[{extra}]'` installs it"


class RecordError(UsageError):
    """A record or batch that no format of Kafka's can hold: wrong fields for the magic, too large, out of order."""


class FileError(KsegError):
    """What a file holds, or that it can't be opened, stops a call; other files may do without it.

    A store that fails raises ClusterError instead: that says nothing about its files.
    """


class OpenError(FileError):
    """A file or directory can't be opened or read."""


class ClusterError(KsegError):
    """A cluster, or a service, that was asked to do something doesn't answer, or has failed at it."""

    status = 3


class SwappedError(KsegError):
    """What is written to was replaced meanwhile, by a link or by another directory: files may have gone elsewhere."""

    status = 3

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(
            "was replaced while kseg was writing, so files may be elsewhere; find out by what, then run it again", path
        )


class DamagedError(FileError):
    """What is asked for can't be done, since the data are damaged.

    `hint`: what a caller of the API may do; a command's user can't.
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
    """Something inside what was given can't be listed, opened or read: damage of the data, the rest is read."""

    status = 1


class ClosedPipeError(KsegError):
    """Whoever read standard output has gone: the command ends quietly, as `cat` does."""


def reason(error: BaseException) -> str:
    """What a library's error says, for a one-line message: its first line, shortened if it is long."""
    return shortened(str(error).strip().partition("\n")[0] or type(error).__name__, _REASON_LENGTH)


def quoted(value: object) -> str:
    """A value for a one-line message, shortened if it is long."""
    return shortened(repr(value))


def shortened(text: str, length: int = _QUOTED_LENGTH) -> str:
    """A text of so many characters at most, and a sign for what is left out."""
    return text if len(text) <= length else text[:length] + "…"


def once(say: Callable[[str], object]) -> Callable[[str], None]:
    """Passes each line on once."""
    said: set[str] = set()

    def say_new(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return say_new


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun, `1 segment` or `2 segments`; plural: None adds an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
