"""The options that select records, and the selection that they describe."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kseg.commands.options import Command, option_values, zone_option
from kseg.commands.parameters import ANY_LONG, long_number

if TYPE_CHECKING:
    from kseg.selection import IsolationLevel, Selection

_SELECTION_OPTIONS = {
    "from_offset": click.option("--from-offset", type=ANY_LONG, metavar="OFFSET", help="Records from this offset on."),
    "to_offset": click.option("--to-offset", type=ANY_LONG, metavar="OFFSET", help="Records before this offset."),
    "from_time": click.option(
        "--from-time", metavar="TIME", help="Records with this time or a later one: ISO 8601, milliseconds, -1h, now."
    ),
    "to_time": click.option("--to-time", metavar="TIME", help="Records with an earlier time than this."),
    "key": click.option("--key", metavar="KEY", help="Records with this key: text, hex:… or base64:…."),
    "key_regex": click.option("--key-regex", metavar="REGEX", help="Records with a match in the key."),
    "grep": click.option("--grep", metavar="REGEX", help="Records with a match in the value."),
    "headers": click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Records with this header, with any value or this one (as for --key); may be repeated.",
    ),
    "producer_id": click.option("--producer-id", type=long_number(-1), metavar="ID", help="Records of this producer."),
    "transactional_only": click.option("--transactional-only", is_flag=True, help="Of transactions."),
    "is_control": click.option(
        "--control/--no-control", "is_control", default=None, help="Only control records; or none of them."
    ),
    "isolation": click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed: no aborted or control records, nothing from the last stable offset on.",
    ),
    "limit": click.option("--limit", type=long_number(), metavar="N", help="Only the first N."),
    "tail": click.option("--tail", type=long_number(), metavar="N", help="Only the last N of each partition."),
    "sample": click.option(
        "--sample", metavar="SHARE", help="About this share of the records, 0.01 or 1%; the same ones each time."
    ),
    "is_followed": click.option(
        "--follow", "is_followed", is_flag=True, help="Wait for more records, also in new segments; Ctrl-C stops it."
    ),
    "zone": zone_option,
}
"""The options that select records, by the fields of GivenSelection."""


class GivenSelection(NamedTuple):
    """The options that select records; a command's without those that mean nothing there."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_time: str | None = None
    to_time: str | None = None
    key: str | None = None
    key_regex: str | None = None
    grep: str | None = None
    headers: tuple[str, ...] = ()
    producer_id: int | None = None
    transactional_only: bool = False
    is_control: bool | None = None
    isolation: "IsolationLevel" = "read_uncommitted"
    limit: int | None = None
    tail: int | None = None
    sample: str | None = None
    is_followed: bool = False
    zone: str = "UTC"

    def selection(self) -> "Selection":
        """The selection that they describe. Raises UsageError for wrong ones."""
        from kseg.selection import selection_of

        return selection_of(
            {
                "from_offset": self.from_offset,
                "to_offset": self.to_offset,
                "from_time": self.from_time,
                "to_time": self.to_time,
                "key": self.key,
                "key_regex": self.key_regex,
                "grep": self.grep,
                "header": self.headers,
                "producer_id": self.producer_id,
                "transactional_only": self.transactional_only,
                "control": self.is_control,
                "isolation": self.isolation,
                "limit": self.limit,
                "tail": self.tail,
                "sample": self.sample,
                "tz": self.zone,
            }
        )._replace(is_followed=self.is_followed)


def is_followed(options: Mapping[str, Any]) -> bool:
    """Whether a command's options ask for more records than are there now."""
    selected = options.get("selected")
    return isinstance(selected, GivenSelection) and selected.is_followed


def selection_options(*left_out: str) -> Callable[[Command], Command]:
    """`--from-offset` … `--follow`, `--tz`: which records; the command gets them as one GivenSelection, `selected`.

    left_out: parameters that mean nothing there.
    """

    def decorate(command: Command) -> Command:
        command = option_values(selected=GivenSelection)(command)
        for name, option in reversed(_SELECTION_OPTIONS.items()):
            if name not in left_out:
                command = option(command)
        return command

    return decorate
