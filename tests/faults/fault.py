"""A fault: a patch that breaks one place of kseg, found again when lines move."""

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

PATCHES = Path(__file__).parent


class StaleFaultError(Exception):
    """A patch no longer fits the code."""


@dataclass(frozen=True)
class Fault:
    """A patch of one hunk.

    prose: what a user would see. path: the file, from the root of the repository. lines: the hunk, each with its mark.
    """

    name: str
    prose: str
    path: str
    lines: tuple[str, ...]

    @property
    def is_compiled(self) -> bool:
        """Return True if the kernel has to be compiled for it."""
        return self.path.endswith((".pyx", ".pxi"))

    def locate(self, source: str) -> tuple[int, tuple[str, ...]]:
        """Return the number of the hunk's first line in a source, from 0, and the lines of the hunk that fit there.

        If the lines around the change have changed too, the change alone must fit. Raises StaleFaultError.
        """
        own = source.splitlines(keepends=True)
        for hunk in (self.lines, _without_context(self.lines)):
            old = _side(hunk, "-")
            places = [at for at in range(len(own)) if own[at : at + len(old)] == old]
            if len(places) == 1:
                return places[0], hunk
        raise StaleFaultError(f"{self.name}: doesn't fit {self.path}")

    def changed_line(self, source: str) -> int:
        """Return the number of the first line that it changes, from 1."""
        at, hunk = self.locate(source)
        return at + 1 + len(list(takewhile(lambda line: line[0] == " ", hunk)))

    def apply(self, source: str) -> str:
        """Return the source with the fault in it."""
        at, hunk = self.locate(source)
        own = source.splitlines(keepends=True)
        own[at : at + len(_side(hunk, "-"))] = _side(hunk, "+")
        return "".join(own)

    def follow(self, root: Path) -> "Fault | None":
        """Return the fault for the one file below kseg/ that its lines are in now, or None if it isn't exactly one."""
        others = [path for path in sorted((root / "kseg").rglob("*.p*")) if path.suffix in (".py", ".pyx", ".pxi")]
        moved = [Fault(self.name, self.prose, str(path.relative_to(root)), self.lines) for path in others]
        fitting = [each for each in moved if each.fits(root)]
        return fitting[0] if len(fitting) == 1 else None

    def fits(self, root: Path) -> bool:
        """Return True if it applies to the code."""
        try:
            self.locate((root / self.path).read_text(encoding="utf-8"))
        except (FileNotFoundError, StaleFaultError):
            return False
        return True

    def write(self, root: Path) -> None:
        """Write the patch, with the line numbers of today."""
        at, hunk = self.locate((root / self.path).read_text(encoding="utf-8"))
        counts = [f"{at + 1},{len(_side(hunk, mark))}" for mark in "-+"]
        head = f"{self.prose}\n--- a/{self.path}\n+++ b/{self.path}\n@@ -{counts[0]} +{counts[1]} @@\n"
        (PATCHES / f"{self.name}.patch").write_text(head + "".join(hunk), encoding="utf-8")


def read_faults() -> list[Fault]:
    """Read all faults, sorted by name."""
    return [_read_fault(path) for path in sorted(PATCHES.glob("*.patch"))]


def _read_fault(path: Path) -> Fault:
    prose, _, target, mark, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if not (target.startswith("+++ b/") and mark.startswith("@@ ")) or any(line[0] not in " -+" for line in lines):
        raise StaleFaultError(f"{path.name}: must be a line of prose and a diff of one hunk")
    return Fault(path.stem, prose.strip(), target.removeprefix("+++ b/").strip(), tuple(lines))


def _side(hunk: tuple[str, ...], mark: str) -> list[str]:
    """Return the lines before the change (-) or after it (+)."""
    return [line[1:] for line in hunk if line[0] in (" ", mark)]


def _without_context(hunk: tuple[str, ...]) -> tuple[str, ...]:
    changed = [number for number, line in enumerate(hunk) if line[0] != " "]
    return hunk[changed[0] : changed[-1] + 1]
