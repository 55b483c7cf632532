"""Releases that `--like` takes."""

import re

import pytest

from kseg.releases import all_releases
from tests import golden, run
from tests.releases import LINE, NEWEST

SAMPLE = "docs/test-1-0/00000000000000203000.log"


def like(release: str) -> run.Run:
    return run.kseg(["dump", "--like", release, "--files", SAMPLE], golden.ROOT)


@pytest.mark.parametrize(
    ("release", "nearest"),
    [
        ("1.7", "are 1.1.1 and 2.0.0"),
        ("3.99", "are 3.9.2 and 4.0.0"),
        ("4.3.9", "are 4.3.1 and 4.4.0"),
        ("2.0.2", "are 2.0.1 and 2.1.0"),
        ("0.10.3", "are 0.10.2.2 and 0.11.0.0"),
        ("0.10.2.9", "are 0.10.2.2 and 0.11.0.0"),
        ("0.11.1", "are 0.11.0.3 and 1.0.0"),
        ("1.2.3.4", "are 1.1.1 and 2.0.0"),
        ("4.3.1.1", "are 4.3.1 and 4.4.0"),
        ("0.7", "is 0.8.0"),
        ("99.0", f"is {NEWEST}"),
    ],
)
def test_releases_that_never_were_are_refused_with_the_nearest(release: str, nearest: str) -> None:
    ran = like(release)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.decode() == (f"kseg: --like {release}: kseg doesn't know this release; the nearest {nearest}\n")


@pytest.mark.parametrize("text", ["later", "4", "1.", "4.3.1-rc1", "9" * 5000 + ".1"])
def test_what_is_no_release_is_refused(text: str) -> None:
    ran = like(text)
    assert ran.status == 2
    assert b"specify one such as 2.8, 0.10.2.2 or latest" in ran.stderr


def test_every_release_is_taken_whole_and_by_its_line() -> None:
    for numbers in all_releases():
        for size in range(2, len(numbers) + 1):
            ran = like(".".join(map(str, numbers[:size])))
            assert (ran.status, ran.stderr) == (0, b""), numbers


def test_pages_name_the_newest_release_as_the_last_one() -> None:
    root = golden.ROOT.parent
    named = {
        (path.relative_to(root).as_posix(), last)
        for path in (root / "README.md", *(root / "docs").rglob("*.md"))
        for last in re.findall(r"\b0\.8\s+to\s+(\d+\.\d+)\b", path.read_text(encoding="utf-8"))
    }
    newest = "{}.{}".format(*LINE)
    assert {("README.md", newest), ("docs/reference/commands/dump.md", newest)} <= named
    assert [name for name, last in named if last != newest] == []
