"""Golden data on disk: cases by printing release, outputs, sizes, counts and the MANIFEST of all files."""

import hashlib
import json
import os
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

DATA_FOLDERS = ("logs", "docs", "damaged")
GROUPS = ("healthy", "damaged", "died", "newer", "usage")
# Not data: files written by hand, and the list itself.
UNLISTED = frozenset({"MANIFEST", "README.md", ".gitattributes"})
# The documentation's sample was made with this release's record classes.
SAMPLE_WRITER = "classes-2.0.1"
ENTRY_SIZES = {".index": 8, ".timeindex": 12}
# A sufficient part of a SHA-256 to name an output; zip stores each name twice.
OUTPUT_NAME_SIZE = 16
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class Case(NamedTuple):
    """One run of a release's real tool: its arguments and its output.

    Paths in `arguments` and `files` are relative to the root of golden. `order` is "hash" if the tool printed lists in
    a hash table's order. `exit` holds the statuses that kseg may end with; empty means 0.
    """

    id: str
    printer: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    kind: str
    group: str
    status: int
    exit: tuple[int, ...]
    order: str | None
    note: str | None
    stdout: bytes
    stderr: bytes


def case_id(printer: str, arguments: Iterable[str]) -> str:
    """Return the id of a new case: twelve hexadecimal digits that follow from its contents."""
    return hashlib.sha256("\0".join((printer, *arguments)).encode()).hexdigest()[:12]


def release_order(release: str) -> tuple[int, ...]:
    """Return a key that sorts releases as numbers: 0.9.0.1 before 0.10.0.1."""
    return tuple(int(part) for part in release.split("."))


def read_cases(root: Path) -> Iterator[Case]:
    """Yield all cases of a golden directory; none if it has none yet."""
    for path in sorted((root / "cases").glob("*.jsonl")):
        with zipfile.ZipFile(root / "expected" / f"{path.stem}.zip") as outputs:
            for line in path.read_text(encoding="utf-8").splitlines():
                yield _case_of(json.loads(line), path.stem, outputs)


def write_cases(root: Path, cases: Iterable[Case]) -> None:
    """Write `cases/RELEASE.jsonl` and `expected/RELEASE.zip` for each printing release; same cases, same bytes."""
    by_printer = defaultdict(list)
    for case in cases:
        by_printer[case.printer].append(case)
    for name in ("cases", "expected"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for printer, its_cases in by_printer.items():
        its_cases.sort(key=lambda case: (case.kind, case.files, case.arguments, case.id))
        rows = (json.dumps(_row_of(case), ensure_ascii=False) + "\n" for case in its_cases)
        (root / "cases" / f"{printer}.jsonl").write_text("".join(rows), encoding="utf-8")
        _write_outputs(root / "expected" / f"{printer}.zip", its_cases)


def write_sizes(root: Path, sizes: dict[str, int]) -> None:
    """Write `sizes.json`: the bytes of each file with its zero tail."""
    rows = ",\n".join(f"{json.dumps(path)}: {sizes[path]}" for path in sorted(sizes))
    (root / "sizes.json").write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


def read_sizes(root: Path) -> dict[str, int]:
    """Return the sizes of `write_sizes`; empty if the directory has none."""
    path = root / "sizes.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def cut_zero_tails(root: Path) -> dict[str, int]:
    """Cut the zeros at the end of brokers' indexes; return the former sizes, for `write_sizes`."""
    sizes = {}
    for path in sorted(root.rglob("*index")):
        entry = ENTRY_SIZES.get(path.suffix)
        content = path.read_bytes()
        written = len(content.rstrip(b"\0"))
        kept = min(-(-written // entry) * entry, len(content)) if entry else len(content)
        if kept < len(content):
            sizes[path.relative_to(root).as_posix()] = len(content)
            os.truncate(path, kept)
    return sizes


def write_counts(root: Path, cases: Iterable[Case]) -> None:
    """Write `counts.md`: cases by printing release, kind and group, as a Markdown table."""
    counts = Counter((case.printer, column) for case in cases for column in (case.kind, case.group, "all"))
    kinds = sorted({column for _, column in counts} - {*GROUPS, "all"})
    # `usage` is a kind and a group of the same cases.
    columns = [*(kind for kind in kinds if kind not in GROUPS), *GROUPS, "all"]
    printers = sorted({printer for printer, _ in counts}, key=release_order)
    lines = ["| printed by | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for printer in printers:
        cells = (str(_count(counts, printer, column) or "") for column in columns)
        lines.append(f"| {printer} | " + " | ".join(cells) + " |")
    sums = (str(sum(_count(counts, printer, column) for printer in printers)) for column in columns)
    lines.append("| all | " + " | ".join(sums) + " |")
    (root / "counts.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_manifest(root: Path, cases: Iterable[Case]) -> None:
    """Write `MANIFEST`: SHA-256, size as stored, writer, printing releases and path of each file, tab-separated."""
    printers = _printers_by_file(cases)
    bases = _damage_bases(root)
    lines = ["# sha256\tsize\twritten by\tprinted by\tpath\n"]
    for path in sorted(listed_files(root)):
        content = (root / path).read_bytes()
        printed_by = ",".join(sorted(printers.get(path, ()), key=release_order)) or "-"
        digest = hashlib.sha256(content).hexdigest()
        lines.append(f"{digest}\t{len(content)}\t{_writer(path, bases)}\t{printed_by}\t{path}\n")
    (root / "MANIFEST").write_text("".join(lines), encoding="utf-8")


def listed_files(root: Path) -> Iterator[str]:
    """Yield the paths, relative to the root, of all files that the MANIFEST must list."""
    for path in root.rglob("*"):
        relative = path.relative_to(root).as_posix()
        if path.is_file() and relative not in UNLISTED:
            yield relative


def _count(counts: Counter[tuple[str, str]], printer: str, column: str) -> int:
    # A usage case is counted twice under one name: as a kind and as a group.
    return counts[printer, column] // (2 if column == "usage" else 1)


def _case_of(row: dict[str, object], printer: str, outputs: zipfile.ZipFile) -> Case:
    values = dict(row)
    for name in ("stdout", "stderr"):
        values[name] = outputs.read(str(row[name])) if row[name] is not None else b""
    for name in ("arguments", "files", "exit"):
        values[name] = tuple(row[name])  # type: ignore[arg-type]  # JSON's arrays
    return Case(printer=printer, **values)  # type: ignore[arg-type]  # the row has the fields of a case


def _row_of(case: Case) -> dict[str, object]:
    row = {name: value for name, value in case._asdict().items() if name != "printer"}
    row["stdout"] = _output_name(case.stdout)
    row["stderr"] = _output_name(case.stderr)
    return row


def _output_name(output: bytes) -> str | None:
    return hashlib.sha256(output).hexdigest()[:OUTPUT_NAME_SIZE] if output else None


def _write_outputs(path: Path, cases: Iterable[Case]) -> None:
    outputs: dict[str, bytes] = {}
    for case in cases:
        for output in (case.stdout, case.stderr):
            if (name := _output_name(output)) and outputs.setdefault(name, output) != output:
                raise ValueError(f"{path}: two outputs are named {name}")
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(outputs):
            entry = zipfile.ZipInfo(name, date_time=ZIP_TIME)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, outputs[name], zipfile.ZIP_DEFLATED, compresslevel=9)


def _printers_by_file(cases: Iterable[Case]) -> dict[str, set[str]]:
    printers = defaultdict(set)
    for case in cases:
        own = (f"cases/{case.printer}.jsonl", f"expected/{case.printer}.zip")
        for path in (*case.files, *own):
            printers[path].add(case.printer)
    return printers


def _damage_bases(root: Path) -> dict[str, str]:
    path = root / "damaged" / "damage.json"
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {row["id"]: row["base"] for row in rows}


def _writer(path: str, bases: dict[str, str]) -> str:
    """Return `4.3.1` for a broker's file, `classes-4.3.1` for a file made with its record classes, `-` if unknown."""
    top, _, rest = path.partition("/")
    folder = rest.partition("/")[0]
    if top == "docs":
        return SAMPLE_WRITER
    name = folder if top in ("logs", "protocol") else bases.get(folder, "") if top == "damaged" else ""
    release = re.match(r"(classes-)?\d+(\.\d+)+", name)
    return release.group() if release else "-"
