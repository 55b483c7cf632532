"""Inputs of commands: archives, standard input and remote tiers; and the new directory for output."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kseg.errors import OpenError, UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Talk
from kseg.store.location import leads_inside
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.cluster.tier_inputs import RemoteLogs
    from kseg.store.archive import Inputs


NAMES_PROBLEMS = ("verify",)
"""Commands whose own output reports problems of a tier's objects."""
IN_OTHER_PROCESSES = ("spark-export",)
"""Commands whose processes know no inputs that were unpacked here: they must find all bytes in files."""

Given = dict[str, Any]
"""Values of a command's options and arguments, by name."""


@contextmanager
def local_inputs(given: Given, parameters: Sequence[str], talk: Talk) -> Iterator[Given]:
    """Replace `-`, and paths into archives and remote tiers, by local paths.

    parameters: the options and arguments with paths to read. talk: ends with 2 if something couldn't be unpacked, and
    with 1 if a segment of a tier can't be used.
    """
    with _unpack(given, parameters, talk) as unpacked, _place_tiers(unpacked, parameters, talk) as placed:
        yield placed


def _leads_inside(value: Any) -> bool:
    """Return True if a path, or one of several, is `-` or may lead into an archive."""
    if isinstance(value, tuple):
        return any(map(_leads_inside, value))
    return value is not None and any(map(leads_inside, str(value).split(",")))


@contextmanager
def _unpack(given: Given, parameters: Sequence[str], talk: Talk) -> Iterator[Given]:
    if "max_unpacked" not in given or not any(_leads_inside(given[name]) for name in parameters):
        yield given
        return
    from kseg.store.archive import Inputs

    unpacking = Inputs(
        talk.say,
        max_unpacked=given["max_unpacked"],
        standard_input=None if sys.stdin is None else sys.stdin.buffer,
        input_name=given["input_name"],
        beside="__cluster_metadata-0" if "cluster_metadata" in given else "",
    )
    with unpacking as inputs:
        local = {name: _local(given[name], inputs) for name in parameters}
        if inputs.is_used and given.get("is_followed"):
            raise UsageError("--follow needs directories of a broker; archives and pipes don't grow")
        yield {**given, **local}
        if inputs.problems:
            talk.end_with(2)


def _local(value: Any, inputs: "Inputs") -> Any:
    if isinstance(value, tuple):
        return _several(value, inputs)
    return None if value is None else inputs.local(value)


def _several(values: tuple[Any, ...], inputs: "Inputs") -> tuple[Any, ...]:
    """Return the readable paths; report the others. Raises OpenError if there are none."""
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
    """Return the paths that a path, a glob or a list as in --files means."""
    if isinstance(value, str) and "," in value and not os.path.lexists(value):
        names = paths_in(value)
        found = [inputs.local(name) for name in names]
        return [value] if found == names else found
    return inputs.all_local(value)


def sources_of(name: str, given: Given) -> list[StrPath]:
    """Return the paths of an option or argument; for an export without its destination."""
    value = given[name]
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    if "destination" in given and given["destination"] is None:
        values = values[:-1]
    return [path for each in values for path in paths_in(each)]


def paths_in(value: StrPath) -> list[StrPath]:
    """Return the paths in a value, which may be a list as in --files."""
    return [*value.split(",")] if isinstance(value, str) else [value]


def _is_tier(path: StrPath, given: Given) -> bool:
    """Return True if a path leads to a tier.

    An export reads a broker's own files in a store directly, without local copies.
    """
    from kseg.store.location import is_remote, parse_url, without_file_scheme
    from kseg.tiered.places import begins_as_tier, tier_at, url_of

    name = os.fspath(path)
    url = url_of(name)
    if "destination" not in given or not is_remote(url):
        return tier_at(name) is not None
    local = without_file_scheme(url)
    return tier_at(local) is not None if local != url else parse_url(url).has_buckets and begins_as_tier(url)


@contextmanager
def _place_tiers(given: Given, parameters: Sequence[str], talk: Talk) -> Iterator[Given]:
    remotes = given.get("remotes", ())
    paths = {path for name in parameters for path in sources_of(name, given)} if "private_keys" in given else set()
    tiers = {path for path in paths if remotes or _is_tier(path, given)}
    if not tiers:
        yield given
        return
    from kseg.cluster.tier_inputs import RemoteLogs

    if given.get("is_followed"):
        raise UsageError("--follow needs directories of a broker; remote tiers have only closed segments")
    name = click.get_current_context().info_name
    if name in IN_OTHER_PROCESSES:
        _require_this_machine(given)
    _check_target(given, (*remotes, *tiers))
    choice = PartitionChoice(given.get("topics", ()), given.get("numbers", ()))
    with RemoteLogs(dict(given["private_keys"]), _nothing if name in NAMES_PROBLEMS else talk.say, choice) as logs:
        placing = _Placing(logs, remotes, tiers)
        placed = {each: placing.of(given[each]) for each in parameters}
        refused = [*placing.refused, *logs.unreadable_objects]
        for each in refused:
            talk.warn(str(each))
        if name in IN_OTHER_PROCESSES:
            logs.fetch_all()
        yield {**given, **placed}
        talk.end_with(2 if refused else bool(logs.problems))


def _nothing(_: str) -> None:
    pass


def _check_target(given: Given, inputs: Iterable[StrPath]) -> None:
    """Raise UsageError if the output would be in a tier that is read, or the other way round."""
    from kseg.store.remote_files import check_destination
    from kseg.tiered.places import url_of

    target = given.get("directory") or given.get("destination")
    if target is None and "destination" in given:
        target = given["paths"][-1]
    if target is not None:
        check_destination(str(target), [url_of(os.fspath(path)) for path in inputs])


def _require_this_machine(given: Given) -> None:
    if given["remote"] is not None or not given["master"].startswith("local"):
        raise UsageError(
            "a cluster's executors can't read remote tiers; run `kseg salvage BUCKET --to DIR` and export DIR, or"
            " specify --master local[N]"
        )


class _Placing:
    """Replace the paths of tiers by local directories. refused: errors of paths next to others."""

    def __init__(self, logs: "RemoteLogs", remotes: tuple[str, ...], tiers: set[StrPath]) -> None:
        self._logs, self._remotes, self._tiers = logs, remotes, tiers
        self._has_placed = False
        self.refused: list[OpenError] = []

    def of(self, value: Any) -> Any:
        """Return the value of an option or argument. Raises OpenError if none of its paths can be placed."""
        if value is None:
            return None
        if not isinstance(value, tuple):
            return self._place_all(value)[0]
        placed: list[StrPath] = []
        for each in value:
            try:
                placed += self._place_all(each)
            except OpenError as error:
                self.refused.append(error)
        if self.refused and not self._has_placed:  # another input, such as a destination, isn't read
            raise self.refused[0]
        return tuple(placed)

    def _place_all(self, value: StrPath) -> list[StrPath]:
        paths = paths_in(value)
        return [*map(self._place, paths)] if self._tiers.intersection(paths) else [value]

    def _place(self, path: StrPath) -> StrPath:
        if path not in self._tiers:
            return path
        local = self._logs.local(path, self._remotes)
        self._has_placed = True
        return local


def new_directory_of(
    directory: Path | None, *, dry_run: bool, beside: Iterable[Path | None]
) -> AbstractContextManager[Path | None]:
    """Return the directory of --to, for `with`; None with --dry-run.

    Raises UsageError without both, or if the directory exists, or is inside an input, given as `beside`.
    """
    if directory is None and not dry_run:
        raise UsageError("specify --to DIR or --dry-run")
    if directory is None:
        return nullcontext()
    from kseg.store.target import check_absent, check_outside, new_directory

    read = tuple(beside)
    check_absent(directory)
    check_outside(directory, read)
    return nullcontext() if dry_run else new_directory(directory, read)
