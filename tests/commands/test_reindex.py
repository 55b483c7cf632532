"""`kseg reindex` as its user sees it."""

from pathlib import Path

from tests.run import kseg


def test_indexes_of_a_partition_are_written(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "4.3.1" / "__cluster_metadata-0"
    ran = kseg(["reindex", str(source), "-o", str(tmp_path / "new")], restored)
    assert ran.status == 0
    (log,) = source.glob("*.log")
    assert ran.stdout.decode() == f"{log}: .index same, .timeindex same\n"
    assert {path.name for path in (tmp_path / "new").iterdir()} == {f"{log.stem}.index", f"{log.stem}.timeindex"}


def test_partitions_of_a_disk_have_directories_of_their_own(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "3.6.2"
    assert kseg(["reindex", str(source), "-o", str(tmp_path / "new")], restored).status == 0
    new = {path.relative_to(tmp_path / "new") for path in (tmp_path / "new").rglob("*.index")}
    assert new == {path.relative_to(source).with_suffix(".index") for path in source.rglob("*.log")}


def test_dry_run_only_compares(restored: Path, tmp_path: Path) -> None:
    ran = kseg(["reindex", str(restored / "logs" / "4.3.1"), "--dry-run"], tmp_path)
    assert ran.status == 0
    assert b".index same" in ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_damage_ends_the_index_with_status_1(restored: Path, tmp_path: Path) -> None:
    ran = kseg(["reindex", "damaged/210-wiped-batch", "-o", str(tmp_path / "new")], restored)
    assert ran.status == 1
    assert b"at position 237: bad-length: the indexes end here; `kseg salvage` goes on behind it" in ran.stdout


def test_output_directory_must_be_given(restored: Path) -> None:
    ran = kseg(["reindex", "logs/3.6.2/plain-1"], restored)
    assert ran.status == 2
    assert b"give -o DIRECTORY, or --dry-run" in ran.stderr


def test_help_has_examples(tmp_path: Path) -> None:
    assert b"Examples:\n    kseg reindex" in kseg(["reindex", "--help"], tmp_path).stdout
