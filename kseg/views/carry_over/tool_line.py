"""Command lines of Kafka's tools for a shell, and what no line can say."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

LeaveOut: TypeAlias = Callable[[str], object]
"""Takes what no line says, in words."""
_UNITS = re.compile(rb"(..)", re.DOTALL)


class Target(NamedTuple):
    """The cluster that the lines are for: its address, and the client's settings if it wants a login."""

    bootstrap_server: str
    command_config: str | None = None

    def line(self, tool: str, *arguments: str) -> str:
        """A line that runs one of Kafka's tools, each argument as one word whatever is in it."""
        config = () if self.command_config is None else ("--command-config", self.command_config)
        words = ("--bootstrap-server", self.bootstrap_server, *config, *arguments)
        return " ".join((f"kafka-{tool}.sh", *map(shlex.quote, words)))


def is_plain(name: str) -> bool:
    """Whether a name can stand in a line that people read and copy, and a tool takes it as it is: it trims names."""
    return bool(name) and name.isprintable() and name == name.strip()


class Settings(NamedTuple):
    """Settings of one thing, as `kafka-configs.sh` takes them: some on its command line, others only in a file."""

    plain: tuple[str, ...]
    in_file: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[tuple[str, str]]) -> "Settings":
        """Of names and values. Source: ConfigCommand.parseConfigsToBeAdded, which takes brackets for quotes."""
        plain, in_file = [], []
        for name, value in values:
            if _is_for_command_line(name, value):
                plain.append(f"{name}=[{value}]" if re.search("[,=]", value) else f"{name}={value}")
            else:
                in_file.append(f"{_property(name)}={_property(value)}")
        return cls(tuple(plain), tuple(in_file))

    def lines(self, target: Target, *entity: str) -> Iterator[str]:
        """The lines that set them for an entity, which options name."""
        alter = ("--alter", *entity)
        if self.plain:
            yield target.line("configs", *alter, "--add-config", ",".join(self.plain))
        if self.in_file:
            printed = shlex.join(("printf", "%s\\n", *self.in_file))
            yield f"{printed} | {target.line('configs', *alter, '--add-config-file', '/dev/stdin')}"


def _is_for_command_line(name: str, value: str) -> bool:
    is_name = is_plain(name) and not re.search(r"[\[\],=]", name)
    return is_name and (not value or (is_plain(value) and not re.search(r"[\[\]]", value)))


def _property(text: str) -> str:
    r"""A name or value of Java's properties, in ASCII: `\u00e9` for é. Source: java.util.Properties."""
    return "".join(each if each.isalnum() and each.isascii() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    if character in "-_./":
        return character
    return "".join(f"\\u{unit.hex()}" for unit in _UNITS.findall(character.encode("utf-16-be", "surrogatepass")))
