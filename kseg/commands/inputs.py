"""Inputs of commands: archives, standard input and remote tiers; and the new directory that a command makes."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from kseg.commands.option_groups import is_followed
from kseg.commands.options import Command, KeyFile, Size, size_text
from kseg.errors import OpenError, UsageError
from kseg.formats.file_names import KINDS_WITH_OFFSET
from kseg.log.selection import EVERY_PARTITION
from kseg.store.location import MAX_UNPACKED, leads_inside
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.cluster.tier_inputs import RemoteLogs
    from kseg.store.archive import Inputs


NAMES_PROBLEMS = ("verify",)
"""Commands whose own output says what is wrong with a tier's objects."""
IN_OTHER_PROCESSES = ("spark-export",)
"""Commands that let processes read which know nothing of what is placed here: they find all bytes in files."""


def reads_tiers(*parameters: str) -> Callable[[Command], Command]:
    """Lets paths be buckets or directories of a remote tier; adds `--private-key`.

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
        @wraps(command)
        def reading(*arguments: Any, private_keys: tuple[tuple[str, Path], ...], **options: Any) -> Any:
            remotes = options.pop("remotes", ())
            paths = {path for name in parameters for path in _sources(name, options)}
            tiers = {path for path in paths if remotes or _is_tier(path, options)}
            if not tiers:
                return command(*arguments, **options)
            asked = _Asked(parameters, dict(private_keys), remotes, tiers)
            return _with_tiers(partial(command, *arguments), options, asked)

        return cast(Command, reading)

    return decorate


def remote_option(command: Command) -> Command:
    """`--remote`, which `reads_tiers` takes."""
    return click.option(
        "--remote",
        "remotes",
        metavar="BUCKET",
        multiple=True,
        help="Read what PATHS have in this remote tier too: a directory, or s3://BUCKET/PREFIX; may be repeated.",
    )(command)


def status_of(command: Callable[[], Any]) -> int:
    """The exit status of a command."""
    try:
        command()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    return 0


def _sources(name: str, options: dict[str, Any]) -> list[StrPath]:
    """The paths that an option or argument has; those of an export without its destination."""
    value = options[name]
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    if "destination" in options and options["destination"] is None:
        values = values[:-1]
    return [path for each in values for path in paths_in(each)]


def paths_in(value: StrPath) -> list[StrPath]:
    """The paths that a value has: several names may be together, as in --files."""
    return [*value.split(",")] if isinstance(value, str) else [value]


def _is_tier(path: StrPath, options: dict[str, Any]) -> bool:
    """Whether a path leads to a tier. An export reads a broker's own files in a store by itself, where they lie."""
    from kseg.store.location import is_remote, parse_url, without_file_scheme
    from kseg.tiered.places import begins_as_tier, tier_at, url_of

    name = os.fspath(path)
    url = url_of(name)
    if "destination" not in options or not is_remote(url):
        return tier_at(name) is not None
    local = without_file_scheme(url)
    return tier_at(local) is not None if local != url else parse_url(url).has_buckets and begins_as_tier(url)


class _Asked(NamedTuple):
    """What a command is asked to read: its parameters with paths, keys, tiers beside local paths, paths to place."""

    parameters: tuple[str, ...]
    keys: dict[str, Path]
    remotes: tuple[str, ...]
    paths: set[StrPath]


def _with_tiers(command: Callable[..., Any], options: dict[str, Any], asked: _Asked) -> Any:
    from kseg.cluster.tier_inputs import RemoteLogs
    from kseg.errors import UsageError
    from kseg.output.progress import talk

    if is_followed(options):
        raise UsageError("--follow is for directories of a broker: a remote tier gets whole segments")
    name = click.get_current_context().info_name
    if name in IN_OTHER_PROCESSES:
        _require_this_machine(options)
    _check_target(options, (*asked.remotes, *asked.paths))
    choice = options.get("choice", EVERY_PARTITION)
    with RemoteLogs(asked.keys, _nothing if name in NAMES_PROBLEMS else talk, choice) as logs:
        placing = _Placing(logs, asked)
        placed = {each: placing.of(options[each]) for each in asked.parameters}
        refused = [*placing.refused, *logs.refused]
        for each in refused:
            talk(f"kseg: {each}")
        if name in IN_OTHER_PROCESSES:
            logs.fetch_all()
        status = status_of(partial(command, **{**options, **placed}))
        status = max(status, 1) if logs.problems else status
        raise click.exceptions.Exit(max(status, 2) if refused else status)


def _nothing(_: str) -> None:
    pass


def _check_target(options: dict[str, Any], inputs: Iterable[StrPath]) -> None:
    """Raises UsageError if what is written would lie in a tier that is read, or the other way round."""
    from kseg.store.remote_files import check_destination
    from kseg.tiered.places import url_of

    target = options.get("directory") or options.get("destination")
    if target is None and "destination" in options:
        target = options["paths"][-1]
    if target is not None:
        check_destination(str(target), [url_of(os.fspath(path)) for path in inputs])


def _require_this_machine(options: dict[str, Any]) -> None:
    from kseg.errors import UsageError

    if options["remote"] is not None or not options["master"].startswith("local"):
        raise UsageError(
            "a cluster's executors don't read remote tiers: `kseg salvage BUCKET --to DIR` makes a directory that they"
            " read, or export with --master local[N]"
        )


class _Placing:
    """Puts directories that stand for tiers in the place of their paths. refused: errors of paths beside others."""

    def __init__(self, logs: "RemoteLogs", asked: _Asked) -> None:
        self._logs, self._asked = logs, asked
        self._has_placed = False
        self.refused: list[OpenError] = []

    def of(self, value: Any) -> Any:
        """The value of an option or argument. Raises OpenError if none of its paths can be placed."""
        if value is None:
            return None
        if not isinstance(value, tuple):
            return self._placed(value)[0]
        placed: list[StrPath] = []
        for each in value:
            try:
                placed += self._placed(each)
            except OpenError as error:
                self.refused.append(error)
        if self.refused and not self._has_placed:  # what else there is, such as a destination, isn't read
            raise self.refused[0]
        return tuple(placed)

    def _placed(self, value: StrPath) -> list[StrPath]:
        paths = paths_in(value)
        return [*map(self._place, paths)] if self._asked.paths.intersection(paths) else [value]

    def _place(self, path: StrPath) -> StrPath:
        if path not in self._asked.paths:
            return path
        local = self._logs.local(path, self._asked.remotes)
        self._has_placed = True
        return local


def new_directory_of(
    directory: Path | None, *, dry_run: bool, beside: Iterable[Path | None]
) -> AbstractContextManager[Path | None]:
    """The directory of --to, for `with`; None with --dry-run.

    Raises UsageError without both, or if the directory is there, or inside what is read: `beside`.
    """
    if directory is None and not dry_run:
        raise UsageError("give --to DIR, or --dry-run")
    if directory is None:
        return nullcontext()
    from kseg.store.target import check_absent, check_outside, new_directory

    read = tuple(beside)
    check_absent(directory)
    check_outside(directory, read)
    return nullcontext() if dry_run else new_directory(directory, read)


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
    from kseg.errors import UsageError
    from kseg.output.progress import talk
    from kseg.store.archive import Inputs

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


def _all_local(value: StrPath, inputs: "Inputs") -> list[StrPath]:
    """What a path or a glob means, or several names together, as in --files."""
    if isinstance(value, str) and "," in value and not os.path.lexists(value):
        names = paths_in(value)
        found = [inputs.local(name) for name in names]
        return [value] if found == names else found
    return inputs.all_local(value)


def _local(value: Any, inputs: "Inputs") -> Any:
    if isinstance(value, tuple):
        return _several(value, inputs)
    return None if value is None else inputs.local(value)
