"""The options that say which records are wanted, and the selection that they ask for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kseg.commands.options import Command, zone_option
from kseg.commands.parameters import ANY_LONG, long_number

if TYPE_CHECKING:
    from kseg.selection import Selection

_SELECTION_OPTIONS = {
    "from_offset": click.option("--from-offset", type=ANY_LONG, metavar="OFFSET", help="From this offset on."),
    "to_offset": click.option("--to-offset", type=ANY_LONG, metavar="OFFSET", help="To before this offset."),
    "from_time": click.option(
        "--from-time", metavar="TIME", help="Of this time or later: ISO 8601, milliseconds, -1h, now."
    ),
    "to_time": click.option("--to-time", metavar="TIME", help="Of before this time."),
    "key": click.option("--key", metavar="KEY", help="With this key: text, hex:… or base64:…."),
    "key_regex": click.option("--key-regex", metavar="REGEX", help="In whose key this is found."),
    "grep": click.option("--grep", metavar="REGEX", help="In whose value this is found."),
    "headers": click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="With this header, with any value or this one (as for --key); may be repeated.",
    ),
    "producer_id": click.option("--producer-id", type=long_number(-1), metavar="ID", help="Of this producer."),
    "transactional_only": click.option("--transactional-only", is_flag=True, help="Of transactions."),
    "is_control": click.option(
        "--control/--no-control", "is_control", default=None, help="Control records alone; or none of them."
    ),
    "isolation": click.option(
        "--isolation",
        type=click.Choice(["read_uncommitted", "read_committed"]),
        default="read_uncommitted",
        show_default=True,
        help="read_committed: no aborted ones, no control records, nothing from the last stable offset on.",
    ),
    "limit": click.option("--limit", type=long_number(), metavar="N", help="The first N."),
    "tail": click.option("--tail", type=long_number(), metavar="N", help="The last N of each partition."),
    "sample": click.option(
        "--sample", metavar="SHARE", help="About this share of them, 0.01 or 1%; the same ones each time."
    ),
    "is_followed": click.option(
        "--follow", "is_followed", is_flag=True, help="Wait for more, over new segments; ends by Ctrl-C."
    ),
    "zone": zone_option,
}
"""The options that say which records are wanted, by their parameters, which `selection_of` takes."""


def selection_options(*left_out: str) -> Callable[[Command], Command]:
    """`--from-offset` … `--follow`, `--tz`: which records. Those parameters are left out that mean nothing there."""

    def decorate(command: Command) -> Command:
        for name, option in reversed(_SELECTION_OPTIONS.items()):
            if name not in left_out:
                command = option(command)
        return command

    return decorate


def selection_of(options: dict[str, Any]) -> "Selection":
    """The selection that the options ask for; they are taken out of `options`. Raises UsageError for wrong ones."""
    from kseg.selection import Selection, parse_bytes, parse_header, parse_share
    from kseg.times import parse_time, parse_zone

    given = {name: options.pop(name) for name in _SELECTION_OPTIONS if name in options}
    zone = parse_zone(given.pop("zone"))
    for name in ("from_time", "to_time"):
        if given[name] is not None:
            given[name] = parse_time(given[name], zone)
    if given["key"] is not None:
        given["key"] = parse_bytes(given["key"])
    given["headers"] = tuple(parse_header(header) for header in given["headers"])
    if given.get("sample") is not None:
        given["sample"] = parse_share(given["sample"])
    given["is_committed"] = given.pop("isolation", None) == "read_committed"
    return Selection(**given).checked()
