"""The new directory that a command makes, or none where it only tells what it would do."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from kseg.archive.untouched import check_outside
from kseg.errors import UsageError


def new_directory_of(
    directory: Path | None, *, dry_run: bool, beside: Iterable[Path | None]
) -> AbstractContextManager[Path | None]:
    """The directory of --to, for `with`; None with --dry-run.

    Raises UsageError without both, or if the directory is there, or inside what is read: `beside`.
    """
    from kseg.system.new_directory import check_absent, new_directory

    if directory is None and not dry_run:
        raise UsageError("give --to DIR, or --dry-run")
    if directory is None:
        return nullcontext()
    check_absent(directory)
    check_outside(directory, beside)
    return nullcontext() if dry_run else new_directory(directory)
