"""Callbacks of options and arguments: paths, a broker's properties, what changes output as a whole."""

from collections.abc import Mapping
from pathlib import Path

import click

from kseg.errors import UsageError
from kseg.store.location import checked_path, matching_paths


def all_matching(_: object, __: object, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that some paths or globs match. Raises UsageError for a wrong URL."""
    return tuple(path for text in texts for path in matching_paths(checked_path(text)))


def paths_of(command: object, argument: object, texts: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the same as Paths."""
    return tuple(map(Path, all_matching(command, argument, texts)))


def paths_or_here(command: object, argument: object, texts: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the same; by default the current directory."""
    return paths_of(command, argument, texts) or (Path(),)


def only_match(_: object, __: object, text: str | None) -> Path | None:
    """Return the path, or the only one that a glob matches. Raises UsageError for several."""
    if text is None:
        return None
    found = matching_paths(text)
    if len(found) > 1:
        raise UsageError(f"matches {len(found)} paths: `explain` takes one", text)
    return Path(found[0])


def all_ranges(_: object, __: object, given: tuple[tuple[range, ...], ...]) -> tuple[range, ...]:
    """Return the ranges of an option that may be repeated, as one tuple."""
    return tuple(each for ranges in given for each in ranges)


def properties_in(_: object, __: object, path: Path | None) -> Mapping[str, str]:
    """Read a broker's server.properties: the settings by their names."""
    from kseg.cluster.settings import NO_SETTINGS, read_server_properties

    return NO_SETTINGS if path is None else read_server_properties(path)


def let_through(_: object, __: object, wanted: bool) -> bool:
    """Escape nothing on a terminal."""
    if wanted:
        from kseg.output.streams import let_contents_through

        let_contents_through()
    return wanted


def tell_at_the_end(context: click.Context, _: object, wanted: bool) -> bool:
    """Say at the end of the command what the run took."""
    if wanted and not context.resilient_parsing:
        from kseg.output.progress import talk
        from kseg.system.run_usage import Usage

        usage = Usage()
        context.call_on_close(lambda: talk(f"kseg: {usage.line()}"))
    return wanted
