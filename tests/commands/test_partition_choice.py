"""--topic and --partition mean the same on all commands that read partitions."""

import json
import shutil
from pathlib import Path

import pytest

from tests import golden
from tests.run import kseg

RELEASE = golden.ROOT / "logs" / "3.6.2"
NEW = {
    "salvage": ("--dry-run",),
    "reindex": ("--dry-run",),
    "compact": ("--dry-run",),
    "slice": ("--to", "new"),
    "lookup": ("--offset", "110"),
}
COMMANDS = ("dump", "ls", "lookup", "verify", "salvage", "reindex", "retain", "txns", "compact", "slice")


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """Return two disks: orders-0 and orders-10 on the first, orders-1 and payments-1 on the second."""
    for name in ("disk1/orders-0", "disk1/orders-10", "disk2/orders-1", "disk2/payments-1"):
        shutil.copytree(RELEASE / "plain-1", tmp_path / name)
    return tmp_path


def list_partitions(directory: Path, *options: str) -> list[str]:
    """Return the partitions that `ls` lists, each by its disk and directory."""
    ran = kseg(["ls", "disk1", "disk2", "-o", "json", "--now", "now", *options], directory)
    assert (ran.status, ran.stderr) == (0, b"")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    return [row["directory"] for row in rows if row["type"] == "partition"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--topic", "orders"), ["disk1/orders-0", "disk1/orders-10", "disk2/orders-1"]),
        (("--topic", "pay*"), ["disk2/payments-1"]),
        (("--topic", "pay*", "--topic", "orders", "--partition", "1"), ["disk2/orders-1", "disk2/payments-1"]),
        (("--partition", "0,2-10"), ["disk1/orders-0", "disk1/orders-10"]),
        (("--partition", "0", "--partition", "10"), ["disk1/orders-0", "disk1/orders-10"]),
    ],
)
def test_partitions_are_chosen_by_topics_and_numbers(options: tuple[str, ...], names: list[str], disks: Path) -> None:
    assert list_partitions(disks, *options) == names


@pytest.mark.parametrize("command", COMMANDS)
def test_a_choice_of_nothing_names_what_there_is(command: str, disks: Path) -> None:
    ran = kseg([command, "disk1", "disk2", *NEW.get(command, ()), "--topic", "order", "--partition", "3,5-7"], disks)
    told = "kseg: --topic order --partition 3,5-7: no such partition here; did you mean orders (0-1,10)?\n"
    assert (ran.status, ran.stdout, ran.stderr.decode()) == (2, b"", told)
    assert not (disks / "new").exists()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (("--topic", "paymnets"), "--topic paymnets: no such partition here; did you mean payments (1)?"),
        (("--partition", "0-1,44"), "--topic orders --partition 44: no such partition here; there are orders (0-1,10)"),
    ],
    ids=["topic", "number"],
)
def test_one_missing_name_among_others_is_wrong_usage(
    command: str, missing: tuple[str, ...], told: str, disks: Path
) -> None:
    ran = kseg([command, "disk1", "disk2", *NEW.get(command, ()), "--topic", "orders", *missing], disks)
    assert (ran.status, ran.stdout, ran.stderr.decode()) == (2, b"", f"kseg: {told}\n")
    assert not (disks / "new").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_names_can_be_allowed(command: str, disks: Path) -> None:
    wanted = ["--topic", "orders", "--partition", "1"]
    alone = kseg([command, "disk1", "disk2", *NEW.get(command, ()), *wanted], disks)
    shutil.rmtree(disks / "new", ignore_errors=True)
    more = ["--topic", "paymnets", "--partition", "44", "--allow-missing"]
    allowed = kseg([command, "disk1", "disk2", *NEW.get(command, ()), *wanted, *more], disks)
    assert (allowed.status, allowed.stdout) == (alone.status, alone.stdout)


def test_verify_says_that_it_verified_nothing(disks: Path) -> None:
    ran = kseg(["verify", "disk1", "--topic", "none", "--allow-missing"], disks)
    assert "--topic none: no such partition here: nothing was verified" in ran.stderr.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_only_what_is_chosen_is_read(command: str, disks: Path) -> None:
    (disks / "disk1/orders-0/00000000000000000000.log").write_bytes(b"no log")
    (disks / "disk2/payments-1/00000000000000000000.log").write_bytes(b"no log")
    chosen = kseg([command, "disk1", "disk2", *NEW.get(command, ()), "--topic", "orders", "--partition", "1"], disks)
    shutil.rmtree(disks / "new", ignore_errors=True)
    alone = kseg([command, "disk2/orders-1", *NEW.get(command, ())], disks)
    assert (chosen.status, chosen.stdout, chosen.stderr) == (alone.status, alone.stdout, alone.stderr)


@pytest.mark.parametrize("command", ["lookup", "slice"])
def test_where_one_is_wanted_several_are_refused(command: str, disks: Path) -> None:
    ran = kseg([command, "disk1", "disk2", *NEW[command], "--topic", "orders"], disks)
    told = "kseg: there are 3 partitions here; choose one with --topic and --partition\n"
    assert (ran.status, ran.stdout, ran.stderr.decode()) == (2, b"", told)


def test_of_a_partition_that_is_there_twice_the_best_copy_is_taken(disks: Path) -> None:
    shutil.copytree(disks / "disk2/orders-1", disks / "disk1/orders-1")
    (disks / "disk1/orders-1/00000000000000000000.log").write_bytes(b"")
    for sides in (["disk1", "disk2"], ["disk2", "disk1"]):
        ran = kseg(["slice", *sides, "--topic", "orders", "--partition", "1", "--to", "-".join(sides)], disks)
        assert (ran.status, ran.stderr) == (0, b"")
        assert sum(log.stat().st_size for log in (disks / "-".join(sides)).glob("*.log")) > 0


def test_files_outside_of_the_chosen_partitions_are_not_dumped(disks: Path) -> None:
    (disks / "disk1/recovery-point-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    ran = kseg(["dump", "disk1", "disk2/payments-1/00000000000000000000.log", "--topic", "*", "--shallow"], disks)
    dumped = {line[8:].rpartition("/")[0] for line in ran.stdout.decode().splitlines() if line.startswith("Dumping ")}
    assert (ran.status, dumped) == (0, {"disk1/orders-0", "disk1/orders-10", "disk2/payments-1"})


@pytest.mark.parametrize("text", ["", "x", "-1", "3-1", "1,", "1-2-3", "2147483648"])
def test_what_is_no_partition_number_is_wrong_usage(text: str, disks: Path) -> None:
    ran = kseg(["ls", "disk1", f"--partition={text}"], disks)
    assert ran.status == 2
    assert b"is neither a partition number nor a range such as 0-3" in ran.stderr


def test_a_chosen_partition_on_two_disks_of_a_broker_is_found(disks: Path) -> None:
    for disk in ("disk1", "disk2"):
        (disks / disk / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
        shutil.copytree(disks / "disk2/payments-1", disks / disk / "audit-3")
    for topic, findings in (("audit", ["partition-twice"]), ("orders", [])):
        ran = kseg(["verify", "disk1", "disk2", "-o", "json", "--topic", topic], disks)
        rows = [json.loads(line) for line in ran.stdout.splitlines()]
        assert [row["id"] for row in rows if row["type"] == "finding"] == findings


def test_groups_shows_the_commits_for_the_chosen_partitions() -> None:
    arguments = ["groups", str(RELEASE), "-q", "-o", "json", "--show"]
    everything = kseg([*arguments, "commits"], golden.ROOT)
    commits = [json.loads(line) for line in everything.stdout.splitlines()]
    chosen = [each for each in commits if each["topic"].startswith("plain") and each["partition"] == 0]
    assert 0 < len(chosen) < len(commits)
    ran = kseg([*arguments, "commits", "--topic", "pl*", "--partition", "0"], golden.ROOT)
    assert [json.loads(line) for line in ran.stdout.splitlines()] == chosen
    ran = kseg([*arguments, "groups", "--topic", "pl*", "--partition", "0"], golden.ROOT)
    assert {json.loads(line)["group"] for line in ran.stdout.splitlines()} == {each["group"] for each in chosen}


def test_metadata_shows_the_chosen_partitions() -> None:
    arguments = ["metadata", str(RELEASE), "-o", "json", "--show", "partitions"]
    rows = [json.loads(line) for line in kseg(arguments, golden.ROOT).stdout.splitlines()]
    chosen = [row for row in rows if row["topic"] in ("plain", "snappy") and row["partition"] == 1]
    assert 0 < len(chosen) < len(rows)
    ran = kseg([*arguments, "--topic", "plain", "--topic", "snap*", "--partition", "1"], golden.ROOT)
    assert [json.loads(line) for line in ran.stdout.splitlines()] == chosen


def test_transactions_are_judged_by_coordinators_that_are_not_chosen(disks: Path) -> None:
    shutil.copytree(RELEASE / "__transaction_state-0", disks / "disk1/__transaction_state-0")
    shutil.copytree(RELEASE / "__consumer_offsets-1", disks / "disk2/__consumer_offsets-1")
    ran = kseg(["txns", "disk1", "disk2", "--open", "-q", "-o", "json", "--topic", "__consumer*"], disks)
    opened, stable = (json.loads(line) for line in ran.stdout.splitlines())
    assert (opened["topic"], opened["isHanging"]) == (stable["topic"], False) == ("__consumer_offsets", False)
