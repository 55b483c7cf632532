"""The options that select records, and the selection that they describe."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import click

from kseg.commands.options import Command, zone_option
from kseg.commands.parameters import ANY_LONG, long_number

if TYPE_CHECKING:
    from kseg.selection import Selection

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
"""The options that select records, by the parameters for `selection_of`."""


def selection_options(*left_out: str) -> Callable[[Command], Command]:
    """`--from-offset` … `--follow`, `--tz`: which records; without the parameters that mean nothing there."""

    def decorate(command: Command) -> Command:
        for name, option in reversed(_SELECTION_OPTIONS.items()):
            if name not in left_out:
                command = option(command)
        return command

    return decorate


def selection_of(options: dict[str, Any]) -> "Selection":
    """The selection that the options describe; removes them from `options`. Raises UsageError for wrong ones."""
    from kseg import selection

    given = {name: options.pop(name) for name in _SELECTION_OPTIONS if name in options}
    is_followed = given.pop("is_followed", False)
    asked = {_NAMES.get(name, name): value for name, value in given.items()}
    return selection.selection_of(cast(selection.SelectionOptions, asked))._replace(is_followed=is_followed)


_NAMES = {"headers": "header", "is_control": "control", "zone": "tz"}
"""Parameters that have other names as options."""
