"""Lets a command's paths lead to remote tiers: buckets, and directories of their objects."""

from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kseg.commands.options import Command
from kseg.commands.parameters import KeyFile
from kseg.commands.partition_options import partition_choice_of

if TYPE_CHECKING:
    from kseg.log.partition.remote_logs import RemoteLogs

NAMES_PROBLEMS = ("verify",)
"""Commands whose own output says what is wrong with a tier's objects."""


def reads_tiers(*parameters: str) -> Callable[[Command], Command]:
    """Lets paths be buckets or directories of a remote tier; adds `--private-key` and `--remote`.

    The command gets directories whose files are read where the objects lie. The exit status is 1 if a segment can't be
    used.
    """

    def decorate(command: Command) -> Command:
        @click.option(
            "--private-key",
            "private_keys",
            metavar="ID=FILE",
            type=KeyFile(),
            multiple=True,
            help="A private key (PEM) that decrypts segments of tiered storage, by its id; may be repeated.",
        )
        @click.option(
            "--remote",
            "remotes",
            metavar="BUCKET",
            multiple=True,
            help="Read what PATHS have in this remote tier too: a directory, or s3://BUCKET/PREFIX; may be repeated.",
        )
        @wraps(command)
        def reading(
            *arguments: Any, private_keys: tuple[tuple[str, Path], ...], remotes: tuple[str, ...], **options: Any
        ) -> Any:
            if not remotes and not any(_is_tier(path) for name in parameters for path in _sources(name, options)):
                return command(*arguments, **options)
            return _with_tiers(partial(command, *arguments), parameters, options, dict(private_keys), remotes)

        return cast(Command, reading)

    return decorate


def status_of(command: Callable[[], Any]) -> int:
    """The exit status of a command whose input is shown under other names: so are the errors that it raises."""
    from kseg.archive.shown_paths import shown
    from kseg.errors import KsegError

    try:
        command()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except KsegError as error:
        # It is printed after the names are forgotten.
        error.message = shown(error.message)
        error.path = None if error.path is None else shown(error.path)
        raise
    return 0


def _sources(name: str, options: dict[str, Any]) -> list[str]:
    """The paths that an option or argument has; those of an export without its destination."""
    value = options[name]
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    if "destination" in options and options["destination"] is None:
        values = values[:-1]
    return [path for each in values for path in str(each).split(",")]


def _is_tier(path: str) -> bool:
    from kseg.tiered.places import tier_at

    return tier_at(path) is not None


def _with_tiers(
    command: Callable[..., Any],
    parameters: tuple[str, ...],
    options: dict[str, Any],
    keys: dict[str, Path],
    remotes: tuple[str, ...],
) -> Any:
    from kseg.errors import UsageError
    from kseg.log.partition.remote_logs import RemoteLogs
    from kseg.output.talk import talk

    if options.get("is_followed"):
        raise UsageError("--follow is for directories of a broker: a remote tier gets whole segments")
    name = click.get_current_context().info_name
    choice = partition_choice_of({"topics": (), "numbers": (), **options})
    with RemoteLogs(keys, _nothing if name in NAMES_PROBLEMS else talk, choice) as logs:
        _check_target(options, (*remotes, *(path for each in parameters for path in _sources(each, options))))
        placed = {each: _placed(options[each], _sources(each, options), logs, remotes) for each in parameters}
        status = status_of(partial(command, **{**options, **placed}))
        raise click.exceptions.Exit(max(status, 1) if logs.problems else status)


def _nothing(_: str) -> None:
    pass


def _check_target(options: dict[str, Any], inputs: Iterable[str]) -> None:
    """Raises UsageError if what is written would lie in a tier that is read."""
    from kseg.archive.untouched import check_outside
    from kseg.tiered.s3_store import is_s3

    target = options.get("directory")
    if isinstance(target, Path):
        check_outside(target, [path for path in inputs if not is_s3(path)])


def _placed(value: Any, sources: list[str], logs: "RemoteLogs", remotes: tuple[str, ...]) -> Any:
    """The value with directories that stand for tiers in the place of their paths."""
    if isinstance(value, tuple):
        return tuple(_placed(each, sources, logs, remotes) for each in value)
    if value is None:
        return None
    paths = [_place(path, logs, remotes) if path in sources else path for path in str(value).split(",")]
    return type(value)(",".join(paths)) if isinstance(value, str) else Path(paths[0])


def _place(path: str, logs: "RemoteLogs", remotes: tuple[str, ...]) -> str:
    from kseg.tiered.places import tier_at

    found = tier_at(path)
    if found is not None:
        root, inner = found
        if inner.endswith(".log") and "/" not in inner:
            return logs.place_file(root, inner)
        return "/".join((logs.place(root), inner)) if inner else logs.place(root)
    return logs.join(path, remotes) if remotes else path
