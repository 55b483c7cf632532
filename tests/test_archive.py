"""Archives and standard input instead of directories and files: the same output, and no harm from hostile ones."""

import csv
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from tests import golden, run
from tests.loops import for_each
from tests.processes import start_process

pytestmark = pytest.mark.usefixtures("unpacked_into")

LOGS = golden.ROOT / "logs" / "2.8.2"
SEGMENT = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
PARTITION = "broker-lz4-0"
FORMS = ("tar", "tar.gz", "tar.zst", "zip")
COMMANDS = [
    "dump bundle.{form}",
    "dump --like 2.8 --files bundle.{form}/broker-lz4-0/{segment}",
    "dump -o json bundle.{form}/broker-lz4-0",
    "dump -o csv --fields file,offset,key --tail 3 bundle.{form}/broker-lz4-0",
    "dump -o table --tail 3 bundle.{form}/broker-lz4-0",
    "ls bundle.{form}",
    "ls -o json bundle.{form}",
    "lookup --topic broker-lz4 --partition 0 --offset 7 bundle.{form}",
    "get bundle.{form} --topic broker-lz4 --partition 0 --offset 7 --field key",
    "verify bundle.{form}",
    "verify -o json bundle.{form}/compacted-txn-0",
    "salvage bundle.{form}/broker-lz4-0 --to new",
    "explain bundle.{form}/broker-lz4-0/{segment} --batch 0",
    "explain -o json bundle.{form}/meta.properties",
    "groups bundle.{form}",
    "txns bundle.{form}",
    "metadata bundle.{form}",
    "where --group g bundle.{form}",
    "where --topic broker-lz4 --key a --partitions 1 -o json bundle.{form}",
    "reindex bundle.{form}/broker-lz4-0 --to new",
    "slice bundle.{form}/broker-lz4-0 --to new --from-offset 3",
    "compact bundle.{form}/compacted-txn-0 --to new",
    "retain bundle.{form} --retention-ms 1 --now 2026-11-01",
    "export bundle.{form} new --topic broker-lz4 --dry-run",
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small log directory, with some files that aren't Kafka's."""
    root = tmp_path_factory.mktemp("plain") / "logs"
    root.mkdir()
    for name in (PARTITION, "compacted-txn-0", "__consumer_offsets-1", "__transaction_state-0"):
        shutil.copytree(LOGS / name, root / name)
    shutil.copytree(golden.ROOT / "logs" / "4.3.1" / "__cluster_metadata-0", root / "__cluster_metadata-0")
    for path in LOGS.iterdir():
        if path.is_file():
            shutil.copy(path, root)
    return root


def pack_directory(directory: Path, form: str, name: str = "") -> bytes:
    """Return the archive of a directory under the name `name`."""
    file = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(directory.rglob("*")):
                archive.write(path, f"{name}/{path.relative_to(directory)}".lstrip("/"))
        return file.getvalue()
    with tarfile.open(fileobj=file, mode="w:gz" if form == "tar.gz" else "w") as tar:
        tar.add(directory, name or ".")
    content = file.getvalue()
    return zstandard.compress(content) if form == "tar.zst" else content


@pytest.fixture(scope="module")
def bundles(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory as archives of two forms."""
    directory = tmp_path_factory.mktemp("bundles")
    for form in ("tar.gz", "zip"):
        (directory / form).write_bytes(pack_directory(plain, form))
    return directory


def kseg(directory: Path, *arguments: str) -> run.Run:
    return run.kseg(arguments, directory)


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def member(name: str, **attributes: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    return info


@for_each("command, form", list(itertools.product(COMMANDS, ["tar.gz", "zip"])), ids=": ".join)
def test_commands_say_the_same_of_an_archive_as_of_its_directory(
    command: str, form: str, plain: Path, bundles: Path, tmp_path: Path
) -> None:
    segment = min(path.name for path in (plain / PARTITION).glob("*.log"))
    arguments = command.format(form=form, segment=segment).split()
    outcomes = []
    for place in ("directory", "archive"):
        (tmp_path / place).mkdir()
        bundle = tmp_path / place / f"bundle.{form}"
        if place == "directory":
            shutil.copytree(plain, bundle)
        else:
            shutil.copy(bundles / form, bundle)
        outcomes.append(kseg(tmp_path / place, *arguments))
    said, expected = outcomes[1].stderr.decode(), outcomes[0].stderr.decode()
    assert outcomes[1].status == outcomes[0].status != 2
    times = r"\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=cleanedByTimestamp\":)\d+"  # a zip has no exact times of files
    printed, wanted = (re.sub(times, "TIME", ran.stdout.decode()) for ran in reversed(outcomes))
    assert printed == wanted
    assert said.replace(f"{tmp_path}/archive", "") == expected.replace(f"{tmp_path}/directory/", "")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_read_also_where_all_lies_in_a_folder_of_its_own(form: str, plain: Path, tmp_path: Path) -> None:
    ls = ("ls", "--by", "segment", "-o", "json")
    expected = kseg(plain.parent, *ls, "logs").stdout.decode()
    for name in ("", "support/logs"):
        (tmp_path / f"b.{form}").write_bytes(pack_directory(plain, form, name))
        shown = kseg(tmp_path, *ls, f"b.{form}")
        assert shown.status == 0
        place = f"b.{form}/{name}".rstrip("/")
        assert shown.stdout.decode() == expected.replace('"logs/', f'"{place}/')


def test_folder_named_like_a_partition_may_have_the_disks(plain: Path, tmp_path: Path) -> None:
    """And far below it: a support bundle has the hosts, and their paths."""
    disk = shutil.copytree(plain, tmp_path / "plain" / "case-123" / "host-1" / "var" / "lib" / "kafka" / "data")
    (tmp_path / "bundle.tar").write_bytes(pack_directory(tmp_path / "plain", "tar"))
    expected = kseg(disk, "ls", ".", "-o", "json").stdout.count(b'"partition"')
    assert expected > 0
    for path in ("bundle.tar", "plain", "plain/case-123"):
        assert kseg(tmp_path, "ls", path, "-o", "json").stdout.count(b'"partition"') == expected


@for_each("form", ["tar", "zip"])
def test_empty_directories_are_kept(form: str, plain: Path, tmp_path: Path) -> None:
    disk = shutil.copytree(plain, tmp_path / "disk")
    (disk / "lost+found").mkdir()
    (tmp_path / f"bundle.{form}").write_bytes(pack_directory(disk, form, "disk"))
    found = kseg(tmp_path, "doctor", f"bundle.{form}", "--quick").stdout.decode()
    assert f"bundle.{form}/disk/lost+found: its name isn't a topic with a partition number" in found


def test_only_what_is_needed_is_unpacked(plain: Path, tmp_path: Path) -> None:
    big = plain.parent / "big"
    shutil.copytree(plain, big)
    (big / "server.log.1").write_bytes(bytes(1 << 20))
    (tmp_path / "b.zip").write_bytes(pack_directory(big, "zip"))
    size = sum(path.stat().st_size for path in (big / PARTITION).iterdir())
    assert kseg(tmp_path, "dump", f"b.zip/{PARTITION}", "--max-unpacked", str(size + 4096)).status == 0


def test_directory_with_the_name_of_an_archive_is_a_directory(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "logs.zip")
    assert kseg(tmp_path, "ls", "logs.zip").status == 0


def test_what_is_not_in_the_archive_is_said(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(pack_directory(plain, "tar"))
    ran = kseg(tmp_path, "dump", "b.tar/nothing-0")
    assert (ran.status, ran.stderr) == (2, b"kseg: b.tar/nothing-0: isn't in the archive, or isn't a Kafka file\n")


def test_errors_tell_the_path_in_the_archive(tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(tar_of((member("x/meta.properties"), b"")))
    ran = kseg(tmp_path, "groups", "b.tar")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: b.tar/x: ")


def test_damages_of_an_export_are_told_by_the_path_in_the_archive(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(golden.ROOT / "damaged" / "210-wiped-batch", "orders-0")
    assert run.kseg(["export", "a.tar", "out", "-q"], tmp_path).status == 1
    for name in ("damages.csv", "report.json"):
        assert "a.tar/orders-0/00000000000000021933.log" in (tmp_path / "out" / "_kseg" / name).read_text()


@pytest.mark.parametrize("form", ["html", "json", "text"])
def test_a_report_of_an_archive_names_what_was_given(form: str, tmp_path: Path) -> None:
    """The commands in the report also name it, since users may copy them."""
    with tarfile.open(tmp_path / "a b.tar", "w") as tar:
        tar.add(golden.ROOT / "damaged" / "210-wiped-batch", "orders-0")
    ran = run.kseg(["report", "a b.tar", "-o", form], tmp_path)
    assert b"kseg-scratch" not in ran.stdout
    assert b"kseg salvage 'a b.tar/orders-0'".replace(b"'", b"&#x27;" if form == "html" else b"'") in ran.stdout


def test_one_bad_archive_leaves_the_others_readable(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(pack_directory(plain, "tar"))
    (tmp_path / "c.tar").write_bytes(b"no archive" * 100)
    ran = kseg(tmp_path, "ls", "b.tar", "c.tar")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: c.tar: can't be read as an archive: ")
    assert ran.stdout == kseg(tmp_path, "ls", "b.tar").stdout


def test_follow_is_refused(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(pack_directory(plain, "tar"))
    ran = kseg(tmp_path, "dump", "--follow", "b.tar")
    assert ran.status == 2
    assert ran.stderr == b"kseg: --follow needs directories of a broker; archives and pipes don't grow\n"


# --- standard input --------------------------------------------------------------------------------------------------


@pytest.fixture
def give_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def give(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


def test_log_on_standard_input_prints_as_the_file_does(give_input: Callable[[bytes], None], tmp_path: Path) -> None:
    give_input(SEGMENT.read_bytes())
    expected = kseg(SEGMENT.parent, "dump", SEGMENT.name).stdout
    assert kseg(tmp_path, "dump", "-").stdout == expected.replace(SEGMENT.name.encode(), b"-", 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("00000000000000203000.index", "00000000000000203000.index"),
        ("00000000000000203000.timeindex", "00000000000000203000.timeindex"),
    ],
)
def test_other_files_on_standard_input_are_named(
    name: str, kind: str, give_input: Callable[[bytes], None], tmp_path: Path
) -> None:
    give_input((SEGMENT.parent / name).read_bytes())
    shutil.copy(SEGMENT.parent / name, tmp_path)
    expected = kseg(tmp_path, "explain", name).stdout
    assert kseg(tmp_path, "explain", "-", "--input-kind", kind).stdout == expected


def test_kind_that_kafka_has_not_is_refused(give_input: Callable[[bytes], None], tmp_path: Path) -> None:
    give_input(b"")
    ran = kseg(tmp_path, "dump", "-", "--input-kind", "picture")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: --input-kind picture: no such kind of file; specify log, index, ")


def test_partitions_commands_take_a_log_on_standard_input(give_input: Callable[[bytes], None], tmp_path: Path) -> None:
    give_input(SEGMENT.read_bytes())
    ran = kseg(tmp_path, "ls", "--by", "segment", "-o", "json", "-")
    assert ran.status == 0
    assert b'"baseOffset":203000' in ran.stdout


def test_log_on_standard_input_is_not_wrong_for_having_no_index(
    give_input: Callable[[bytes], None], tmp_path: Path
) -> None:
    give_input(SEGMENT.read_bytes())
    ran = kseg(tmp_path, "verify", "-")
    assert (ran.status, ran.stdout) == (0, b"ok\n")


def test_standard_input_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with (
        (tmp_path / "written").open("wb") as unreadable,
        start_process([sys.executable, "-m", "kseg", "dump", "-"], tmp_path, stdin=unreadable) as process,
    ):
        _, said = process.communicate()
    assert (process.returncode, said) == (2, b"kseg: -: can't be read: Bad file descriptor\n")


@pytest.mark.parametrize("form", FORMS)
def test_archive_on_standard_input(form: str, give_input: Callable[[bytes], None], plain: Path, tmp_path: Path) -> None:
    give_input(pack_directory(plain, form))
    ls = ("ls", "--by", "segment", "-o", "json")
    expected = kseg(plain.parent, *ls, "logs").stdout
    assert kseg(tmp_path, *ls, "-").stdout == expected.replace(b'"logs/', b'"-/')


def test_endless_standard_input_ends_at_the_limit(tmp_path: Path) -> None:
    with start_process(["cat", "/dev/zero"], tmp_path) as endless:
        command = [sys.executable, "-m", "kseg", "dump", "-", "--max-unpacked", "5000000"]
        environment = {**os.environ, "PYTHONPATH": str(golden.ROOT.parent)}
        ran = subprocess.run(
            command, stdin=endless.stdout, capture_output=True, check=False, cwd=tmp_path, env=environment
        )
    assert ran.returncode == 2
    assert ran.stderr == b"kseg: -: unpacks to more than 5000000 bytes; raise --max-unpacked to read it\n"


def test_tmpdir_that_cannot_be_used_is_not_replaced_by_another(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b.zip").write_bytes(pack_directory(plain, "zip"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    ran = kseg(tmp_path, "ls", "b.zip")
    problem = "temporary files can't be written there: No such file or directory; set TMPDIR to another place"
    assert (ran.status, ran.stderr.decode()) == (2, f"kseg: {tmp_path}/absent: {problem}\n")


# --- hostile archives ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../x-0/1.log", "/x-0/1.log", "x-0/../../1.log", "./../1.log"])
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_member_that_leads_outside_is_refused(name: str, form: str, tmp_path: Path) -> None:
    if form == "tar":
        content = tar_of((member("x-0/1.log"), b""), (member(name), b"bad"))
    else:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("x-0/1.log", b"")
            archive.writestr(name, b"bad")
        content = file.getvalue()
    (tmp_path / f"b.{form}").write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    ran = kseg(tmp_path, "ls", f"b.{form}")
    assert ran.status == 2
    assert ran.stderr.decode().endswith("would be unpacked outside of it, so kseg doesn't read this archive\n")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "attributes",
    [
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"},
        {"type": tarfile.LNKTYPE, "linkname": "x-0/00000000000000000000.log"},
        {"type": tarfile.FIFOTYPE},
        {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5},
    ],
    ids=["symbolic link", "hard link", "pipe", "device"],
)
def test_links_and_devices_are_left_out_and_said(attributes: dict[str, object], tmp_path: Path) -> None:
    log = (member("x-0/00000000000000000000.log"), b"")
    odd = (member("x-0/00000000000000000001.log", **attributes), b"")
    (tmp_path / "b.tar").write_bytes(tar_of(log, odd))
    ran = kseg(tmp_path, "dump", "b.tar")
    assert ran.status == 2
    said = b"kseg: b.tar/x-0/00000000000000000001.log: is a link or a device, so kseg doesn't unpack it\n"
    assert ran.stderr == said
    assert ran.stdout == b"Dumping b.tar/x-0/00000000000000000000.log\nStarting offset: 0\n"


def test_file_behind_a_link_of_a_directory_does_not_follow_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = (member("x-0", type=tarfile.SYMTYPE, linkname=str(outside)), b"")
    (tmp_path / "b.tar").write_bytes(tar_of(link, (member("x-0/00000000000000000000.log"), b"")))
    assert kseg(tmp_path, "dump", "b.tar").stdout.startswith(b"Dumping b.tar/x-0/")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("name", ["x-0/00000000000000000000.log", "not-needed"])
@pytest.mark.parametrize("form", ["tar.gz", "tar.zst"])
def test_bomb_ends_at_the_limit(name: str, form: str, tmp_path: Path) -> None:
    content = tar_of((member("x-0/00000000000000000001.log"), b""), (member(name), bytes(30_000_000)))
    if form == "tar.zst":
        bomb = zstandard.compress(content)
    else:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as tar:
            for info, size in ((member("x-0/00000000000000000001.log"), 0), (member(name), 30_000_000)):
                info.size = size
                tar.addfile(info, io.BytesIO(bytes(size)))
        bomb = file.getvalue()
    assert len(bomb) < 100_000
    (tmp_path / f"b.{form}").write_bytes(bomb)
    ran = kseg(tmp_path, "dump", f"b.{form}", "--max-unpacked", "1000000")
    said = f"kseg: b.{form}: unpacks to more than 1000000 bytes; raise --max-unpacked to read it\n"
    assert (ran.status, ran.stderr.decode()) == (2, said)


def test_by_default_a_quarter_of_the_free_space_is_unpacked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tar_of((member("x-0/00000000000000000000.log"), bytes(2_000_000)))
    (tmp_path / "b.tar").write_bytes(content)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=16_000_000))
    assert kseg(tmp_path, "dump", "b.tar").status == 0
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4_000_000))
    said = b"kseg: b.tar: unpacks to more than 1000000 bytes; raise --max-unpacked to read it\n"
    assert kseg(tmp_path, "dump", "b.tar") == (2, b"", said)


def test_zip_that_lies_about_a_size_ends_at_the_limit(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x-0/00000000000000000000.log", bytes(30_000_000))
    content = file.getvalue().replace((30_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "b.zip").write_bytes(content)
    ran = kseg(tmp_path, "dump", "b.zip", "--max-unpacked", "1000000")
    assert ran.status == 2
    assert ran.stderr.startswith(b"kseg: b.zip")


def test_header_that_claims_much_is_not_read(tmp_path: Path) -> None:
    claim = member("name", type=tarfile.GNUTYPE_LONGNAME)
    content = tar_of((member("x-0/00000000000000000000.log"), b""), (claim, b"a" * 5_000_000))
    (tmp_path / "b.tar").write_bytes(content)
    ran = kseg(tmp_path, "dump", "b.tar")
    assert ran.status == 2
    assert b"the header of a member is larger than 1048576 bytes" in ran.stderr
    assert ran.stdout.startswith(b"Dumping b.tar/x-0/")


def test_name_that_the_system_refuses_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(tar_of((member(f"{'x' * 300}-0/1.log"), b"")))
    ran = kseg(tmp_path, "dump", "b.tar")
    assert ran.status == 2
    assert ran.stderr.count(b"\n") == 1
    assert b"File name too long" in ran.stderr


def test_file_in_the_place_of_a_directory_is_an_error_of_one_line(tmp_path: Path) -> None:
    name = "x-0/00000000000000000000.log"
    (tmp_path / "b.tar").write_bytes(tar_of((member(name), b""), (member(f"{name}/1.log"), b"")))
    ran = kseg(tmp_path, "dump", "b.tar")
    assert ran.status == 2
    assert b"Not a directory" in ran.stderr or b"File exists" in ran.stderr


def test_member_below_very_many_directories_is_refused(unpacked_into: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar").write_bytes(tar_of((member("a/" * 1500 + "x-0/00000000000000000000.log"), b"")))
    ran = kseg(tmp_path, "ls", "b.tar")
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert ran.stderr.endswith(b"more than 64 directories deep, so kseg doesn't read this archive\n")
    assert list(unpacked_into.iterdir()) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_member_of_a_zip_whose_packer_takes_any_memory_is_left_out(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("x-0/00000000000000000000.log", SEGMENT.read_bytes(), zipfile.ZIP_DEFLATED)
        archive.writestr("x-0/00000000000000000001.log", bytes(1_000_000), method)
    ran = kseg(tmp_path, "ls", "b.zip", "-o", "json")
    assert (ran.status, json.loads(ran.stdout.splitlines()[0])["segments"]) == (2, 1)
    said = f"is compressed by method {method}, which kseg doesn't read; unpack it with the program that packed it\n"
    assert ran.stderr.decode() == f"kseg: b.zip/x-0/00000000000000000001.log: can't be read to its end: {said}"


@pytest.mark.parametrize("form", FORMS)
def test_cut_archives_are_read_as_far_as_they_go(form: str, plain: Path, tmp_path: Path) -> None:
    content = pack_directory(plain, form)
    # Zeros, or their compressed form, follow the end of a tar.
    end = len(content.rstrip(b"\0")) * 9 // 10
    statuses = set()
    for cut in range(0, end, end // 23):
        (tmp_path / f"b.{form}").write_bytes(content[:cut])
        ran = kseg(tmp_path, "dump", f"b.{form}")
        statuses.add(ran.status)
        assert b"Traceback" not in ran.stderr
        assert ran.stderr.startswith(f"kseg: b.{form}".encode()), cut
    assert statuses == {2}


def test_damaged_member_of_a_zip_leaves_the_others(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x-0/00000000000000000000.log", b"first one")
        archive.writestr("x-0/00000000000000000001.log", SEGMENT.read_bytes())
    (tmp_path / "b.zip").write_bytes(file.getvalue().replace(b"first one", b"first 0ne"))
    ran = kseg(tmp_path, "dump", "b.zip")
    assert ran.status == 2
    said = ran.stderr.decode().splitlines()[0]
    assert said.startswith("kseg: b.zip/x-0/00000000000000000000.log: can't be read to its end: Bad CRC-32")
    assert ran.stdout.count(b"\noffset: ") > 6000


def test_preallocated_indexes_take_no_room(unpacked_into: Path, tmp_path: Path) -> None:
    from kseg.store.archive import Inputs

    index = member("x-0/00000000000000000000.index")
    (tmp_path / "b.tar").write_bytes(tar_of((index, b"\0" * 7 + b"\1" + bytes(10_485_752))))
    with Inputs(print) as inputs:
        (path,) = Path(inputs.local(str(tmp_path / "b.tar"))).rglob("*.index")
        assert path.stat().st_size == 10_485_760
        assert path.stat().st_blocks * 512 < 100_000
        assert path.is_relative_to(unpacked_into)


def test_a_name_that_json_and_csv_escape_is_right_in_both(tmp_path: Path) -> None:
    """Contents are unpacked elsewhere, but output has the archive name."""
    name = 'a"b\\c,d\u2028é.tar'
    with tarfile.open(tmp_path / name, "w") as archive:
        archive.add(golden.ROOT / "docs" / "test-1-0", "test-1-0")
    for command in ("ls", "verify", "report --now 0", "dump --limit 1", "retain --now 0"):
        lines = run.kseg([*command.split(), name, "-o", "json"], tmp_path).stdout.splitlines()
        texts = [text for line in lines for text in texts_of(json.loads(line))]
        assert any(text.startswith(name) for text in texts) or command.startswith(("retain", "verify"))
        assert not [text for text in texts if "kseg-scratch" in text]
    rows = [*csv.reader(io.StringIO(run.kseg(["ls", name, "-o", "csv"], tmp_path).stdout.decode()))]
    assert f"{name}/test-1-0" in rows[1]
    page = run.kseg(["report", name, "--now", "0"], tmp_path).stdout.decode()
    assert "kseg-scratch" not in page
    found = re.search(r'<script type="application/json" id="kseg">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert name in json.dumps(json.loads(found[1]), ensure_ascii=False).replace("\\\\", "\\").replace('\\"', '"')


def texts_of(value: object) -> Iterator[str]:
    """Yield all texts in a value of JSON."""
    match value:
        case str():
            yield value
        case dict() | list():
            for each in value.values() if isinstance(value, dict) else value:
                yield from texts_of(each)
