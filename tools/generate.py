"""Writes every file that is made from kseg's own sources.

python tools/generate.py            writes the files of FILES, and the folders of FOLDERS
python tools/generate.py --check    names files that are out of date, and ends with 1 if there are any
"""

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "docs/pictures/browse.svg": "tools.generators.screens:record",
    "docs/pictures/browse-damage.svg": "tools.generators.screens:damage",
    "mkdocs.yml": "tools.generators.command_line:navigation",
    "docs/developers/architecture.md": "tools.generators.module_listing:page",
    "docs/reference/findings.md": "tools.generators.findings:page",
    "docs/reference/formats.md": "tools.generators.formats:page",
    "docs/reference/streams.md": "tools.generators.streams:page",
    "docs/reference/limits.md": "tools.generators.limits:page",
    "docs/reference/releases.md": "tools.generators.releases:page",
    "docs/reference/public-interface.txt": "tools.generators.public_interface:page",
    "docs/pictures/kseg.svg": "tools.generators.picture:damage",
    "docs/pictures/first-look.svg": "tools.generators.picture:first_look",
    "docs/pictures/will-not-load.svg": "tools.generators.recordings:will_not_load",
    "docs/pictures/dead-cluster.svg": "tools.generators.recordings:dead_cluster",
    "docs/pictures/lake.svg": "tools.generators.recordings:lake",
    "docs/pictures/report-bytes.svg": "tools.generators.report_pictures:bytes_picture",
    "docs/pictures/report-batches.svg": "tools.generators.report_pictures:batches_picture",
    "docs/pictures/report-codecs.svg": "tools.generators.report_pictures:codecs_picture",
}
"""Each generated file, and the function that returns its text."""
FOLDERS = {
    "share": "tools.generators.shared_files:files",
    "docs/reference/commands": "tools.generators.command_line:pages",
}
"""Each folder of generated files only, and the function that returns their texts by their paths in it."""


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="only list files that are out of date")
    arguments = parser.parse_args()
    stale = 0
    for name, text in stale_files():
        stale += 1
        if arguments.check:
            print(f"{name} is out of date: run python tools/generate.py")
        else:
            _write(ROOT / name, text)
            print(f"{name} {'removed' if text is None else 'written'}", flush=True)
    return int(arguments.check and stale > 0)


def stale_files() -> Iterator[tuple[str, str | None]]:
    """Yield the names of files that are out of date, and their new texts, or None for files to be deleted."""
    for name, place in FILES.items():
        text: str = _generated_texts(place)
        if _text_of(ROOT / name) != text:
            yield name, text
    for folder, place in FOLDERS.items():
        texts: dict[str, str] = _generated_texts(place)
        there = [path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()]
        for name in sorted({*texts, *there}):
            if _text_of(ROOT / folder / name) != texts.get(name):
                yield f"{folder}/{name}", texts.get(name)


def _generated_texts(place: str) -> Any:
    module, function = place.split(":")
    return getattr(import_module(module), function)()


def _text_of(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _write(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
