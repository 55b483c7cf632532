"""An export's destination lies outside of what it reads, be both directories of this machine or of an object store."""

from collections.abc import Iterable, Iterator
from glob import glob

from kseg.archive.untouched import check_outside
from kseg.errors import UsageError
from kseg.export import remote

_SAME_SCHEME = {"s3a": "s3", "s3n": "s3"}


def check_destination(destination: str, inputs: Iterable[str | None]) -> None:
    """Raises UsageError if files of the destination would lie among those that are read, or the other way round.

    Inputs are paths, globs or URLs.
    """
    read = [place for each in inputs if each is not None for place in _places(each)]
    (target,) = _places(destination, is_glob=False)
    if not remote.is_remote(target):
        check_outside(target, (place for place in read if not remote.is_remote(place)))
        return
    for place in read:
        if f"{target}/".startswith(f"{place}/"):
            raise UsageError(f"is inside {place}, which is read: kseg writes nothing there", destination)
        if f"{place}/".startswith(f"{target}/"):
            raise UsageError(f"contains {place}, which is read: kseg writes nothing there", destination)


def _places(path: str, *, is_glob: bool = True) -> Iterator[str]:
    """A path as it is, a glob's matches too, a URL as all that mean the same place have it."""
    if not remote.is_remote(path):
        yield path
        if is_glob:
            yield from glob(path)  # noqa: PTH207  an absolute one too
        return
    scheme, _, place = path.partition("://")
    if scheme == "file":
        yield f"/{place.partition('/')[2]}"
    else:
        parts = [part for part in place.split("/") if part]
        yield f"{_SAME_SCHEME.get(scheme, scheme)}://{'/'.join(parts)}"
