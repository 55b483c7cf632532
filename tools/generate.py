"""Writes every file that is made from kseg's own sources, and the man pages.

python tools/generate.py                    writes the files of FILES
python tools/generate.py --check            ends with 1 if one of them is out of date, and names it
python tools/generate.py --man build/man    writes kseg.1, kseg-dump.1, … there, and nothing else
"""

import argparse
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "kseg/formats/fixed.py": "tools.generators.positions:fixed_module",
    "kseg/kernel/fast/positions.pxi": "tools.generators.positions:kernel_positions",
    "kseg/kernel/fast/contract.pxi": "tools.generators.positions:kernel_contract",
    "docs/pictures/browse.svg": "tools.generators.screens:record",
    "docs/pictures/browse-damage.svg": "tools.generators.screens:damage",
    "docs/developers/architecture.md": "tools.generators.module_listing:page",
    "docs/reference/commands.md": "tools.generators.command_line:page",
    "docs/reference/findings.md": "tools.generators.findings:page",
    "docs/reference/formats.md": "tools.generators.formats:page",
    "docs/reference/streams.md": "tools.generators.streams:page",
    "docs/reference/limits.md": "tools.generators.limits:page",
    "docs/reference/releases.md": "tools.generators.releases:page",
    "docs/pictures/kseg.svg": "tools.generators.picture:page",
    "docs/pictures/report-bytes.svg": "tools.generators.report_pictures:bytes_picture",
    "docs/pictures/report-batches.svg": "tools.generators.report_pictures:batches_picture",
    "docs/pictures/report-codecs.svg": "tools.generators.report_pictures:codecs_picture",
}
"""Each generated file, and the function that gives its text.

A later one may need what an earlier one wrote: with an old kseg/formats/fixed.py most of kseg can't be imported.
Therefore a generator is imported when its turn comes.
"""


def main() -> int:
    """Runs the command line; gives the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="only say which files are out of date")
    parser.add_argument("--man", type=Path, metavar="DIRECTORY", help="write man pages there, and nothing else")
    arguments = parser.parse_args()
    if arguments.man is not None:
        from tools.generators.command_line import write_man_pages

        write_man_pages(arguments.man)
        return 0
    stale = 0
    for name, text in stale_files():
        stale += 1
        if arguments.check:
            print(f"{name} is out of date: run python tools/generate.py")
        else:
            (ROOT / name).write_text(text, encoding="utf-8")
            print(f"{name} written", flush=True)
            if name.endswith(".py"):  # what was imported of kseg is out of date: begin again
                os.execv(sys.executable, [sys.executable, *sys.argv])
    return int(arguments.check and stale > 0)


def stale_files() -> Iterator[tuple[str, str]]:
    """The names of files that are out of date, and what they should hold."""
    for name, place in FILES.items():
        module, function = place.split(":")
        text: str = getattr(import_module(module), function)()
        path = ROOT / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield name, text


if __name__ == "__main__":
    sys.exit(main())
