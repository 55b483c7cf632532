"""The tool's reports on stderr: indexes that contradict their log, and offsets that aren't consecutive.

They come after all files. Source: DumpLogSegments, each release's wording and order.
"""

from collections.abc import Iterator

from kseg.releases import Release, Since, at

NON_CONSECUTIVE: Since[str] = (
    ((0, 8), "Non-secutive offsets in :{path}"),
    ((0, 11), "Non-consecutive offsets in :{path}"),
    ((2, 3), "Non-consecutive offsets in {path}"),
)
LAST_FOUND_FIRST: Since[bool] = (((0, 8), True), ((4, 3), False))


class Reports:
    """Collects what was found; paths are absolute, as the tool prints them."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.gaps: dict[str, list[tuple[int, int]]] = {}

    def lines(self) -> Iterator[str]:
        """The reports, as the release words and orders them."""
        for path, gaps in self.gaps.items():
            yield at(NON_CONSECUTIVE, self.release).format(path=path)
            for offset, following in self._in_order(gaps):
                yield f"  {offset} is followed by {following}"

    def _in_order(self, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The last found first, or from 4.3 on by offset, the last found of each."""
        return gaps[::-1] if at(LAST_FOUND_FIRST, self.release) else sorted(dict(gaps).items())
