"""A worker that makes cases, checks their properties, and keeps minimized failing ones."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tests.fuzz.cases import Case, Series
from tests.fuzz.minimize import minimize
from tests.fuzz.properties import BrokenError, check

LONGEST_CASE = 120
"""Seconds after which a case counts as failing. Most take a few hundredths."""
ATTEMPTS = 3000
FOUND = 3
"""The exit status if a property failed; any other but 0 is a crash."""


@dataclass
class Tally:
    """A worker's results: the number of its present case, and the totals before it."""

    number: int
    cases: int = 0
    bytes: int = 0
    commands: int = 0
    finds: int = 0


class Worker:
    """A worker on the cases of a series."""

    def __init__(self, series: Series, first: int, progress: Path, found: Path) -> None:
        self._series = series
        self._tally = Tally(first)
        self._progress = os.open(progress, os.O_WRONLY | os.O_CREAT)
        self._found = found
        self._signatures = set[str]()

    def work(self, until: float, most_bytes: int) -> int:
        """Run until a time, or until a number of bytes; return the exit status."""
        tally = self._tally
        while time.time() < until and tally.bytes < most_bytes:
            self._tell()
            random, case = self._series.case(tally.number)
            try:
                tally.commands += try_case(case, random)
            except Exception as error:  # noqa: BLE001  any exception of a mutant is a find
                self._keep(case, error)
            tally.cases += 1
            tally.bytes += case.size
            tally.number += 1
        self._tell()
        return FOUND if tally.finds else 0

    def _tell(self) -> None:
        """Report the present case to the parent, for the case that the process dies."""
        os.pwrite(self._progress, json.dumps(asdict(self._tally)).ljust(200).encode(), 0)

    def _keep(self, case: Case, error: Exception) -> None:
        signature = signature_of(error)
        if signature in self._signatures:
            return
        self._signatures.add(signature)
        self._tally.finds += 1
        number = self._tally.number

        def breaks(smaller: Case) -> bool:
            random, _ = self._series.case(number)  # the checks are drawn after it
            try:
                try_case(smaller, random, grammar_share=1)
            except Exception as other:  # noqa: BLE001  the same
                return signature_of(other) == signature
            return False

        place = keep(minimize(case, breaks, ATTEMPTS), signature, self._found)
        sys.stderr.write(f"case {number}: {signature}\n{''.join(traceback.format_exception(error))}kept in {place}\n")


def signature_of(error: Exception) -> str:
    """Return a description of the failure that is the same in similar cases."""
    if isinstance(error, BrokenError):
        return str(error.args[0])
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, {frame.name}"


def keep(case: Case, signature: str, found: Path) -> Path:
    """Write a case into a directory of its own, and return that."""
    digest = sha256(repr(sorted(case.files.items())).encode()).hexdigest()[:8]
    name = "".join(letter if letter.isalnum() else "-" for letter in signature.lower())[:60].strip("-")
    place = found / f"{name}-{digest}"
    case.write(place)
    return place


def try_case(case: Case, random: Random, **options: Any) -> int:
    """Check a case within a time limit; options and result as for `check`."""
    with TemporaryDirectory(prefix="kseg-fuzz-") as directory, _bounded():
        case.write(Path(directory))
        return check(case, Path(directory), random, **options)


@contextmanager
def _bounded() -> Iterator[None]:
    def end(_: int, __: FrameType | None) -> None:
        raise BrokenError(f"takes more than {LONGEST_CASE} seconds")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST_CASE)
    try:
        yield
    finally:
        signal.alarm(0)
