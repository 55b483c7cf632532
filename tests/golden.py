"""Golden data for tests: files from real brokers, and the output of each release's real tool for them."""

import json
import os
import shutil
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parent.parent / "golden"

Group = Literal["healthy", "damaged", "died", "newer", "usage"]

# Options whose output needs the schemas of an internal topic's records.
INTERNAL_TOPIC_DECODERS = frozenset(
    {
        "--offsets-decoder",
        "--transaction-log-decoder",
        "--cluster-metadata-decoder",
        "--remote-log-metadata-decoder",
        "--share-group-state-decoder",
    }
)


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One run of a release's real tool.

    `arguments` and `files` name paths relative to the root of golden; `exit` holds the statuses that kseg may end with;
    `hash_order`: lists are printed in a hash table's order. `golden/README.md` describes the rest.
    """

    id: str
    printer: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    kind: str
    group: Group
    status: int
    exit: tuple[int, ...]
    hash_order: bool
    note: str
    stdout_entry: str | None
    stderr_entry: str | None

    def __str__(self) -> str:
        return f"{self.printer}/{self.id}"

    @property
    def like(self) -> str:
        """The value of `--like`: before 1.0 the full release; later MAJOR.MINOR, if that means this one."""
        line = ".".join(self.printer.split(".")[:2])
        is_last = not any(
            release.startswith(f"{line}.") for release in printers()[printers().index(self.printer) + 1 :]
        )
        return line if is_last and not self.printer.startswith("0.") else self.printer

    @property
    def needs_internal_topic_decoder(self) -> bool:
        """True if the run decoded the records of an internal topic."""
        return not INTERNAL_TOPIC_DECODERS.isdisjoint(self.arguments)

    def stdout(self) -> bytes:
        """Return the real tool's output."""
        return _output(self.printer, self.stdout_entry)

    def stderr(self) -> bytes:
        """Return its stderr, with `<ROOT>/` instead of its working directory."""
        return _output(self.printer, self.stderr_entry)


def files(suffix: str, root: Path = ROOT) -> list[Path]:
    """Return files from Kafka whose names end with the suffix, sorted: `.log`, `leader-epoch-checkpoint`, ….

    In golden itself the zero tails of preallocated indexes are cut; a `restored` copy has them.
    """
    return sorted(path for folder in ("logs", "docs") for path in _ending(root / folder, suffix))


def damaged_files(suffix: str, root: Path = ROOT) -> list[Path]:
    """Return files damaged on purpose whose names end with the suffix, sorted.

    `damaged/damage.json` describes the damage.
    """
    return sorted(_ending(root / "damaged", suffix))


def printers() -> list[str]:
    """Return the releases whose tools ran, oldest first."""
    names = (path.stem for path in (ROOT / "cases").glob("*.jsonl"))
    return sorted(names, key=lambda release: tuple(int(part) for part in release.split(".")))


def cases(group: Group | None = None, kinds: Collection[str] = (), printer: str | None = None) -> list[GoldenCase]:
    """Return the cases of a group, of some kinds, of a printing release; by default all."""
    return [
        case
        for release in ([printer] if printer else printers())
        for case in _cases_of(release)
        if group in (None, case.group) and (not kinds or case.kind in kinds)
    ]


def restored(factory: pytest.TempPathFactory) -> Path:
    """Return a working copy of the original files, made once per session.

    Zero tails are restored without using disk space.
    """
    root = factory.getbasetemp() / "golden"
    if root.exists():
        return root
    for folder in ("logs", "docs", "damaged", "tiered", "protocol"):
        shutil.copytree(ROOT / folder, root / folder)
    for path, size in json.loads((ROOT / "sizes.json").read_text(encoding="utf-8")).items():
        os.truncate(root / path, size)
    return root


def _ending(folder: Path, suffix: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(suffix) and path.is_file()]


@cache
def _cases_of(printer: str) -> tuple[GoldenCase, ...]:
    lines = (ROOT / "cases" / f"{printer}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(_case_of(json.loads(line), printer) for line in lines)


# JSON's values are of any type; the dataclass has the actual types.
def _case_of(row: dict, printer: str) -> GoldenCase:  # type: ignore[type-arg]
    return GoldenCase(
        id=row["id"],
        printer=printer,
        arguments=tuple(row["arguments"]),
        files=tuple(row["files"]),
        kind=row["kind"],
        group=row["group"],
        status=row["status"],
        exit=tuple(row["exit"]),
        hash_order=row["order"] == "hash",
        note=row["note"] or "",
        stdout_entry=row["stdout"],
        stderr_entry=row["stderr"],
    )


@cache
def _outputs(printer: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(ROOT / "expected" / f"{printer}.zip")


def _output(printer: str, entry: str | None) -> bytes:
    return _outputs(printer).read(entry) if entry else b""
