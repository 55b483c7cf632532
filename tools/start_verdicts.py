"""Prints contradictions between kseg and brokers' starts: errors without harm, or harm without errors.

Each row of golden/start/ is tried: its fault is put into its base disk, which `kseg verify` and `kseg doctor` read.
Needs what tests need, no Java.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from start.verdicts import Findings, Row, answer, contradicts, faulty_disk, rows, sound_disk, verdict

COMMANDS = ("verify", "doctor")
COLUMNS = ("release", "role", "stop", "kind", "file", "fault", "class")


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", metavar="WORDS", help="read only files and faults with these words")
    arguments = parser.parse_args()
    count = 0
    wanted = [row for row in rows() if arguments.match in f"{row['file']}: {row['fault']}"]
    with tempfile.TemporaryDirectory() as directory:
        print(*COLUMNS, *COMMANDS, sep="\t")
        for line in disagreements(wanted, Path(directory)):
            print(line, flush=True)
            count += 1
    print(f"{count} of {len(wanted)} rows: a command contradicts the broker", file=sys.stderr)
    return 0


def disagreements(wanted: Iterable[Row], directory: Path) -> Iterable[str]:
    """Yield a line for each row that a command contradicts, with each command's answer."""

    @cache
    def usual(command: str, disk: Path) -> Findings:
        return answer(command, disk).findings

    for row in wanted:
        sound = sound_disk(row, directory)
        with faulty_disk(row, sound) as disk:
            verdicts = [verdict(answer(command, disk).findings, usual(command, sound)) for command in COMMANDS]
        if any(contradicts(row, each.worst) for each in verdicts):
            said = (f"{each.worst}: {', '.join(each.ids)}" if each.ids else each.worst for each in verdicts)
            yield "\t".join([*(str(row[name]) for name in COLUMNS), *said])


if __name__ == "__main__":
    sys.exit(main())
