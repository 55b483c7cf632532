"""Writes every file in docs/ that is made from kseg itself, and the man pages.

python tools/make_docs.py                    writes the files of PAGES
python tools/make_docs.py --check            ends with 1 if one of them is out of date, and names it
python tools/make_docs.py --man build/man    writes kseg.1, kseg-dump.1, … there, and nothing else
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from kseg.explain.tables import whole_page
from tools.pages import command_line, findings, module_listing, picture

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[str, Callable[[], str]] = {
    "docs/architecture.md": module_listing.page,
    "docs/cli.md": command_line.page,
    "docs/findings.md": findings.page,
    "docs/formats.md": whole_page,
    "docs/kseg.svg": picture.page,
}
"""Each generated file, and what makes its content."""


def main() -> int:
    """Runs the command line; gives the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="only say which files are out of date")
    parser.add_argument("--man", type=Path, metavar="DIRECTORY", help="write man pages there, and nothing else")
    arguments = parser.parse_args()
    if arguments.man is not None:
        command_line.write_man_pages(arguments.man)
        return 0
    made = {ROOT / name: make().encode() for name, make in PAGES.items()}
    stale = [path for path, content in made.items() if not path.exists() or path.read_bytes() != content]
    for path in stale:
        if arguments.check:
            print(f"{path.relative_to(ROOT)} is out of date: run python tools/make_docs.py")
        else:
            path.write_bytes(made[path])
            print(f"{path.relative_to(ROOT)} written")
    return int(arguments.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
