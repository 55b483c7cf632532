"""Names of carved partitions: right or none."""

from pathlib import Path

from tests.carve.made_images import Log, lockstep_logs, make_log, scatter
from tests.commands.test_carve import carve, carved_logs
from tests.kernel.made import MARKER_KEY, MARKER_VALUE, BatchHeader, Record, batch
from tests.loops import for_each
from tests.run import kseg

BLOCK = 4096


def write_copy(directory: Path, log: Log, first: int = 0, last: int | None = None) -> None:
    """Write some batches of a log as a partition's only segment."""
    partition = directory / f"{log.name}-0"
    partition.mkdir(parents=True)
    wanted = log.batches[first:last]
    end = wanted[-1][1] + wanted[-1][2]
    (partition / f"{wanted[0][0]:020}.log").write_bytes(log.content[wanted[0][1] : end])


def test_a_copy_names_its_partition_and_no_other(tmp_path: Path) -> None:
    logs = list(lockstep_logs(8, 100_000, 5))
    for log in logs[:6]:
        write_copy(tmp_path / "broker2", log, 0, len(log.batches) // 2)
    image = scatter(logs, seed=5, mean_blocks=8)
    carve(tmp_path, image.content, "--like", "broker2")
    found = carved_logs(tmp_path)
    named = {name: content for name, content in found.items() if not name.startswith("carved-")}
    by_name = {f"{log.name}-0": log.content for log in logs}
    assert {name.split("/")[0] for name in named} == set(list(by_name)[:6])
    assert all(content in by_name[name.split("/")[0]] for name, content in named.items())


def test_partitions_with_the_same_transaction_marker_are_not_named_by_it(tmp_path: Path) -> None:
    data = [make_log(name, [(1, 300)] * 9, 1, first_offset=100) for name in "ab"]
    marker = batch(BatchHeader(109, attributes=0x30), [Record(MARKER_KEY, MARKER_VALUE)])
    copy = tmp_path / "broker2/a-0"
    copy.mkdir(parents=True)
    (copy / f"{109:020}.log").write_bytes(marker + marker[:7] + b"\x6e" + marker[8:])
    carve(tmp_path, data[1].content + marker, "--like", "broker2")
    assert list(carved_logs(tmp_path)) == ["carved-0001-0/00000000000000000100.log"]


def test_copies_that_contradict_each_other_name_nothing(tmp_path: Path) -> None:
    log = make_log("a", [(1, 300)] * 30, 1)
    write_copy(tmp_path / "broker2", log)
    write_copy(tmp_path / "broker2", log._replace(name="mirrored-a"))
    carve(tmp_path, log.content, "--like", "broker2")
    assert list(carved_logs(tmp_path)) == ["carved-0001-0/00000000000000000000.log"]


def test_a_copy_without_common_batches_names_nothing(tmp_path: Path) -> None:
    log, twin = (make_log(name, [(1, 300)] * 30, 1) for name in "ab")
    write_copy(tmp_path / "broker2", twin)
    carve(tmp_path, log.content, "--like", "broker2")
    assert list(carved_logs(tmp_path)) == ["carved-0001-0/00000000000000000000.log"]


def test_a_given_name_joins_partitions_unless_they_overlap(tmp_path: Path) -> None:
    log, twin = (make_log(name, [(1, 300)] * 60, 1) for name in "ab")
    first, last = log.content[: 2 * BLOCK], log.content[3 * BLOCK :]
    names = [option for number in (1, 2, 3) for option in ("--name", f"carved-000{number}=orders-7")]
    carve(tmp_path, last.ljust(5 * BLOCK, b"\0") + first + bytes(BLOCK) + twin.content, *names)
    found = carved_logs(tmp_path)
    assert {name.split("/")[0] for name in found} == {"orders-7", "orders-7.2"}
    of = {
        name: {content for each, content in found.items() if each.startswith(f"{name}/")}
        for name in ("orders-7", "orders-7.2")
    }
    assert of["orders-7"] == {twin.content}
    assert len(of["orders-7.2"]) == 2
    assert all(content in log.content for content in of["orders-7.2"])


@for_each(
    "option, message",
    [
        ("carved-0009=orders-0", "--name: no carved-0009 among 1 carved partitions; list them by --dry-run"),
        ("carved-0001=orders", "'carved-0001=orders' isn't CHAIN=TOPIC-PARTITION, such as carved-0001=orders-0"),
        ("carved-0001=../x-0", "'carved-0001=../x-0' isn't CHAIN=TOPIC-PARTITION"),
        ("carved-0001=a-0.0" + "1" * 32 + "-delete", "isn't CHAIN=TOPIC-PARTITION"),
    ],
)
def test_wrong_names_are_refused(option: str, message: str, tmp_path: Path) -> None:
    ran = carve(tmp_path, make_log("a", [(1, 300)] * 30, 1).content, "--name", option)
    assert ran.status == 2
    assert message in ran.stderr.decode()
    assert not (tmp_path / "carved").exists()


def test_names_stay_the_same_with_and_without_other_names(tmp_path: Path) -> None:
    logs = [make_log(name, [(1, 300)] * 30, 1) for name in "abc"]
    content = b"".join(log.content.ljust(4 * BLOCK, b"\0") for log in logs)
    carve(tmp_path, content, "--name", "carved-0002=b-0")
    assert [name.split("/")[0] for name in carved_logs(tmp_path)] == ["b-0", "carved-0001-0", "carved-0003-0"]
    assert kseg(["verify", "-q", "carved"], tmp_path).status == 0
