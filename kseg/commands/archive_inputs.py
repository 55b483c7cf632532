"""Lets a command's paths lead into archives, or be standard input."""

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kseg.archive.paths import MAX_UNPACKED, leads_inside
from kseg.commands.options import Command
from kseg.commands.parameters import Size, size_text
from kseg.commands.selection_options import is_followed
from kseg.commands.tier_inputs import reads_tiers, remote_option, status_of
from kseg.formats.names import KINDS_WITH_OFFSET

if TYPE_CHECKING:
    from kseg.archive.inputs import Inputs


def reads_archives(*parameters: str) -> Callable[[Command], Command]:
    """Lets paths lead into archives and remote tiers, or be `-`; adds the options for these. The last decorator.

    The command gets paths that it can read. The exit status is 2 if something couldn't be unpacked.
    """

    def decorate(command: Command) -> Command:
        command = remote_option(reads_tiers(*parameters)(command))

        @click.option(
            "--max-unpacked",
            type=Size(1, _LARGEST_UNPACKED),
            show_default=f"{size_text(MAX_UNPACKED)}, but no more than a quarter of the free space in TMPDIR",
            help="The most that archives and standard input may take; they are kept in TMPDIR meanwhile.",
        )
        @click.option(
            "--as",
            "input_name",
            metavar="KIND",
            default="log",
            show_default=True,
            help=f"The contents of -: {', '.join(KINDS_WITH_OFFSET)}, checkpoint, or a complete file name.",
        )
        @wraps(command)
        def reading(*arguments: Any, max_unpacked: int | None, input_name: str, **options: Any) -> Any:
            if not any(_leads_inside(options[name]) for name in parameters):
                return command(*arguments, **options)
            return _with_inputs(partial(command, *arguments), parameters, options, max_unpacked, input_name)

        return cast(Command, reading)

    return decorate


_LARGEST_UNPACKED = 1 << 50


def _leads_inside(value: Any) -> bool:
    """Whether a path, or one of several, is `-` or may lead into an archive."""
    if isinstance(value, tuple):
        return any(map(_leads_inside, value))
    return value is not None and any(map(leads_inside, str(value).split(",")))


def _with_inputs(
    command: Callable[..., Any],
    parameters: tuple[str, ...],
    options: dict[str, Any],
    max_unpacked: int | None,
    input_name: str,
) -> Any:
    from kseg.archive.inputs import Inputs
    from kseg.errors import UsageError
    from kseg.output.talk import talk

    unpacking = Inputs(
        talk,
        max_unpacked=max_unpacked,
        standard_input=None if sys.stdin is None else sys.stdin.buffer,
        input_name=input_name,
        beside="__cluster_metadata-0" if "cluster_metadata" in options else "",
    )
    with unpacking as inputs:
        local = {name: _local(options[name], inputs) for name in parameters}
        if inputs.is_used and is_followed(options):
            raise UsageError("--follow is for directories of a broker: an archive or a pipe doesn't grow")
        status = status_of(partial(command, **{**options, **local}))
        raise click.exceptions.Exit(max(status, 2) if inputs.problems else status)


def _several(values: tuple[Any, ...], inputs: "Inputs") -> tuple[Any, ...]:
    """The paths that can be read; reports the others. Raises OpenError if there are none."""
    from kseg.errors import OpenError

    found, refused = [], []
    for value in values:
        try:
            found += _all_local(value, inputs)
        except OpenError as error:
            refused.append(error)
    if refused and not found:
        raise refused[0]
    for each in refused:
        inputs.refuse(each)
    return tuple(found)


def _all_local(value: Any, inputs: "Inputs") -> list[Any]:
    """What a path or a glob means, in the type that it has."""
    if isinstance(value, str) and "," in value and not os.path.lexists(value):
        return [_local(value, inputs)]
    return [type(value)(path) for path in inputs.all_local(str(value))]


def _local(value: Any, inputs: "Inputs") -> Any:
    if isinstance(value, tuple):
        return _several(value, inputs)
    if isinstance(value, Path):
        # A path that ends in a slash is the same to pathlib.
        return Path(inputs.local(str(value)))
    # Several names may be together, as in --files.
    return value if value is None else ",".join(inputs.local(name) for name in value.split(","))
