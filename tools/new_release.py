"""Lists what a new release of Kafka has that kseg doesn't know, and the files that change: `4.5.0`.

Maven fetches the jars of the new release and of the newest one that kseg knows. Messages, codes and settings are
compared with kseg's own tables; texts and classes with those of the known release. --golden then records golden data.

Needs Java 17 with its compiler, Maven, and kseg in .venv/. docs/developers/new-release.md has all steps.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kseg.releases import NEWEST
from tools.release.differences import PLACES, ROOT, Difference, differences
from tools.release.jars import Jars


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", help="the new release")
    parser.add_argument("--since", default=str(NEWEST), help="the release to compare with (%(default)s)")
    parser.add_argument("--golden", action="store_true", help="then run `make golden` for the release")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        known, new = (Jars(release, Path(work) / release) for release in (arguments.since, arguments.release))
        for line in report(differences(known, new)):
            print(line)
    if arguments.golden:
        subprocess.run(["make", "golden", f"RELEASE={arguments.release}"], cwd=ROOT, check=True)
    return 0


def report(found: Iterable[Difference]) -> Iterator[str]:
    """Yield the lines of the list: each file with its steps, and the differences below it."""
    order = [*PLACES]
    in_files = sorted(found, key=lambda each: (order.index(each.kind), each.file))
    for (file, kind), each in groupby(in_files, key=lambda each: (each.file, each.kind)):
        yield f"{file} ({kind}): {PLACES[kind].step}"
        yield from (f"  {difference.change:8} {difference.subject}" for difference in each)
    counts = len(in_files), len({each.file for each in in_files})
    yield "{} differences in {} files".format(*counts)


if __name__ == "__main__":
    sys.exit(main())
