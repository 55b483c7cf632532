"""Shows a golden case, or copies the files for its paths.

python tools/show_case.py ID               how the real tool ran, and what it printed
python tools/show_case.py --list TEXT      the cases whose line in cases/*.jsonl has the text
python tools/show_case.py --restore DIR    the files with their zero tails (sparse), to run tools and kseg on
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
from pathlib import Path

import golden_store as store

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("id", nargs="?", metavar="ID", help="a case, or the beginning of its id")
    chosen.add_argument("--list", metavar="TEXT", help="find cases")
    chosen.add_argument("--restore", type=Path, metavar="DIR", help="a new directory")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly
    if arguments.restore:
        return restore(arguments.restore)
    if arguments.list is not None:
        return list_cases(arguments.list)
    return show(arguments.id)


def show(beginning: str) -> int:
    """Print a case: stdout's bytes to stdout, everything else to stderr."""
    case = next((case for case in store.read_cases(GOLDEN) if case.id.startswith(beginning)), None)
    if case is None:
        print(f"show_case: no case {beginning}; --list finds them", file=sys.stderr)
        return 1
    for name, value in case._asdict().items():
        if name not in ("arguments", "stdout", "stderr"):
            print(f"{name}: {value}", file=sys.stderr)
    print(f"run: DumpLogSegments {shlex.join(case.arguments)}", file=sys.stderr, flush=True)
    sys.stdout.buffer.write(case.stdout)
    sys.stdout.flush()
    sys.stderr.buffer.write(case.stderr)
    return 0


def list_cases(text: str) -> int:
    """Print a line for each case whose row has the text."""
    for path in sorted((GOLDEN / "cases").glob("*.jsonl"), key=lambda path: store.release_order(path.stem)):
        for line in path.read_text(encoding="utf-8").splitlines():
            if text in line:
                row = json.loads(line)
                print(row["id"], path.stem, row["kind"], row["group"], row["status"], shlex.join(row["arguments"]))
    return 0


def restore(directory: Path) -> int:
    """Copy the files and restore their zero tails."""
    for folder in store.DATA_FOLDERS:
        shutil.copytree(GOLDEN / folder, directory / folder)
    for path, size in store.read_sizes(GOLDEN).items():
        os.truncate(directory / path, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
