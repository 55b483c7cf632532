import hashlib

from tests import golden

BESIDE_THE_DATA = {"MANIFEST", "README.md", ".gitattributes"}


def manifest() -> dict[str, list[str]]:
    lines = (golden.ROOT / "MANIFEST").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {row[-1]: row[:-1] for row in rows}


def test_every_file_is_listed_and_every_listed_file_is_there() -> None:
    paths = (path for path in golden.ROOT.rglob("*") if path.is_file())
    there = {path.relative_to(golden.ROOT).as_posix() for path in paths}
    assert there - BESIDE_THE_DATA == set(manifest())


def test_every_file_has_the_listed_bytes() -> None:
    different = []
    for path, (digest, size, *_) in manifest().items():
        content = (golden.ROOT / path).read_bytes()
        if (hashlib.sha256(content).hexdigest(), str(len(content))) != (digest, size):
            different.append(path)
    assert different == []


def test_printing_releases_are_those_of_the_cases() -> None:
    printed_by: dict[str, set[str]] = {}
    for case in golden.cases():
        for path in case.files:
            printed_by.setdefault(path, set()).add(case.printer)
    listed = {path: set(row[3].split(",")) for path, row in manifest().items() if path in printed_by}
    assert listed == printed_by


def test_files_of_the_cases_are_there() -> None:
    missing = {path for case in golden.cases() for path in case.files if not (golden.ROOT / path).exists()}
    assert missing == set()


def test_restored_copy_has_the_sizes_that_kafka_gave(tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    root = golden.restored(tmp_path_factory)
    preallocated = root / "logs/0.11.0.3-killed/__transaction_state-0/00000000000000000000.timeindex"
    assert preallocated.stat().st_size == 65532
    assert preallocated.read_bytes().endswith(b"\0" * 12)
