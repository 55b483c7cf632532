"""Arranges recorded cases and their files as golden data, or adds them to existing data.

    python tools/arrange_golden.py SOURCE DEST    add SOURCE to DEST, which may be new
    python tools/arrange_golden.py DEST           rewrite DEST's indexes (cases, outputs, counts, MANIFEST)

SOURCE is a directory as tools/make_golden.py leaves it, or a recording: logs/, docs/, damaged/, sizes.json, cases.jsonl
(a case a line) and expected.zip (an entry per output, named by its SHA-256). The same input gives the same bytes.
"""

import argparse
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import golden_store as store
from golden_store import Case


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, metavar="SOURCE", help="recorded data to add")
    parser.add_argument("dest", type=Path, metavar="DEST", help="the golden directory")
    arguments = parser.parse_args()
    try:
        cases = arrange(arguments.sources, arguments.dest)
    except (OSError, ValueError) as error:
        print(f"arrange_golden: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.dest}: {len(cases)} cases")
    return 0


def arrange(sources: list[Path], dest: Path) -> list[Case]:
    """Add the sources' files and cases to a golden directory; return all cases that it then has.

    Raises ValueError if a path or a case exists already and differs.
    """
    cases: dict[str, Case] = {}
    sizes: dict[str, int] = {}
    for source in (dest, *sources):
        if source != dest:
            _copy_files(source, dest)
        sizes |= store.read_sizes(source)
        for case in _read_any(source):
            if cases.setdefault(case.id, case) != case:
                raise ValueError(f"{source}: case {case.id} is there already, with another output")
    store.write_cases(dest, cases.values())
    store.write_sizes(dest, sizes)
    store.write_counts(dest, cases.values())
    store.write_manifest(dest, cases.values())
    return list(cases.values())


def _copy_files(source: Path, dest: Path) -> None:
    for folder in store.DATA_FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            target = dest / path.relative_to(source)
            if path.is_dir():
                continue
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            elif target.read_bytes() != path.read_bytes():
                raise ValueError(f"{target} is there already, with other bytes than {path}")


def _read_any(source: Path) -> Iterator[Case]:
    return _read_recording(source) if (source / "cases.jsonl").exists() else store.read_cases(source)


def _read_recording(source: Path) -> Iterator[Case]:
    with zipfile.ZipFile(source / "expected.zip") as outputs:
        for line in (source / "cases.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield Case(
                id=row["id"],
                printer=row["printer"],
                arguments=tuple(row["args"]),
                files=tuple(row["files"]),
                kind=row["kind"],
                group=_group(row),
                status=row["status"],
                exit=tuple(row.get("exit", ())),
                order=row.get("order"),
                note=row.get("note"),
                stdout=outputs.read(row["stdout"]["sha256"]) if row["stdout"] else b"",
                stderr=outputs.read(row["stderr"]["sha256"]) if row["stderr"] else b"",
            )


def _group(row: dict[str, object]) -> str:
    if row.get("newer"):
        return "newer"
    if row["kind"] == "usage":
        return "usage"
    if not row["healthy"]:
        return "damaged"
    return "healthy" if row["status"] == 0 else "died"


if __name__ == "__main__":
    sys.exit(main())
