"""What is found wrong in files while they are printed: told after them, and in the exit status."""

from typing import TYPE_CHECKING

from kseg.dump.reports import Reports

if TYPE_CHECKING:
    from kseg.releases import Release


class Found:
    """What was found wrong in one file, or in all of a call.

    summaries: lines for stderr. problems: those that `add_problem` noted, without the file's name. reports: what the
    tool itself reports. is_wrong: whether the exit status is 1.
    """

    def __init__(self, release: "Release") -> None:
        self.reports = Reports(release)
        self.summaries: list[str] = []
        self.problems: list[str] = []
        self.is_wrong = False

    def add_problem(self, path: str, problem: str) -> None:
        """Notes something wrong in a file."""
        self.is_wrong = True
        self.problems.append(problem)
        self.summaries.append(f"kseg: {path}: {problem}")
