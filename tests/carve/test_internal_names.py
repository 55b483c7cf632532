"""Names of internal topics' partitions, by the formats of their records."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kseg.coordinators.home_partition import coordinator_partition
from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests.carve.made_images import Log
from tests.carve.test_names import write_copy
from tests.commands.test_carve import carve, carved_logs, evidence
from tests.golden import ROOT
from tests.kernel.made import BatchHeader, Record, batch
from tests.run import kseg

BLOCK = 4096
LOGS = ROOT / "logs"


def disk_of(paths: Iterable[Path]) -> bytes:
    """Return an image of files, each from a block's start on, with an empty block between them."""
    return b"".join(content + bytes(BLOCK + -len(content) % BLOCK) for content in (path.read_bytes() for path in paths))


def internal_directories(directory: Path) -> dict[str, bytes]:
    """Return the carved logs of internal topics, by directory; a directory's segments as one."""
    found: dict[str, bytes] = {}
    for name, content in sorted(carved_logs(directory).items()):
        folder = name.split("/")[0]
        if not folder.startswith("carved-"):
            folder = folder.removesuffix(".carved")
            found[folder] = found.get(folder, b"") + content
    return found


def originals(release: str) -> dict[str, bytes]:
    directories = sorted((LOGS / release).glob("__*"))
    found = {each.name: b"".join(path.read_bytes() for path in sorted(each.glob("*.log"))) for each in directories}
    return {name: content for name, content in found.items() if content}


@pytest.mark.parametrize("release", ["3.3.2", "3.6.2", "4.1.0", "4.3.1", "4.4.0-made"])
def test_internal_topics_of_real_brokers_get_their_names(release: str, tmp_path: Path) -> None:
    files = sorted(path for path in (LOGS / release).rglob("*") if path.suffix in (".log", ".checkpoint"))
    carve(tmp_path, disk_of(files))
    assert internal_directories(tmp_path) == originals(release)


def test_without_a_number_of_partitions_only_the_metadata_has_a_name(tmp_path: Path) -> None:
    carve(tmp_path, disk_of(sorted((LOGS / "4.3.1").rglob("*.log"))))
    assert list(internal_directories(tmp_path)) == ["__cluster_metadata-0"]


def test_a_log_directory_of_the_cluster_tells_the_number_of_partitions(tmp_path: Path) -> None:
    carve(tmp_path, disk_of(sorted((LOGS / "4.3.1").glob("*/*.log"))), "--metadata", str(LOGS / "4.3.1"))
    assert internal_directories(tmp_path) == originals("4.3.1")
    names = {line["directory"]: line for line in evidence(tmp_path) if line["type"] == "name"}
    assert names["__consumer_offsets-1"]["topicIds"] == ["MlPitwz4Q8qS2lBjl2141w"]


def test_the_carved_metadata_is_not_taken_for_that_of_the_carved_partitions(tmp_path: Path) -> None:
    carve(tmp_path, disk_of(sorted((LOGS / "4.3.1").rglob("*.log"))))
    assert (tmp_path / "carved/__cluster_metadata-0.carved").is_dir()
    assert kseg(["metadata", "carved"], tmp_path).stdout == b""
    (tmp_path / "carved/__cluster_metadata-0.carved").rename(tmp_path / "carved/__cluster_metadata-0")
    assert b"CONTROLLER" in kseg(["metadata", "carved"], tmp_path).stdout


def commits(name: str, groups: Iterable[str]) -> Log:
    """Return a log with a committed offset for each group."""
    contents = []
    for number, group in enumerate(groups):
        key = b"\0\1" + build_message(
            message_schema("OffsetCommitKey"), 1, {"group": group, "topic": "t", "partition": number}
        )
        fields = {"offset": 5, "leaderEpoch": 0, "metadata": "", "commitTimestamp": 1}
        value = b"\0\3" + build_message(message_schema("OffsetCommitValue"), 3, fields)
        contents.append(batch(BatchHeader(number), [Record(key, value)]))
    places = [(number, sum(map(len, contents[:number])), len(each)) for number, each in enumerate(contents)]
    return Log(name, b"".join(contents), tuple(places))


def groups_in(partition: int, count: int, of: int) -> list[str]:
    """Return groups of a partition, if the topic has `of` partitions."""
    return [name for name in map("group-{}".format, range(2000)) if coordinator_partition(name, of) == partition][
        :count
    ]


def disk_of_logs(*logs: Log) -> bytes:
    return b"".join(log.content + bytes(BLOCK + -len(log.content) % BLOCK) for log in logs)


def test_many_groups_prove_the_number_of_partitions(tmp_path: Path) -> None:
    logs = [commits(f"__consumer_offsets-{number}", groups_in(number, 12, of=7)) for number in (2, 5)]
    carve(tmp_path, disk_of_logs(*logs))
    assert internal_directories(tmp_path) == {log.name: log.content for log in logs}


def test_few_groups_prove_no_number_of_partitions(tmp_path: Path) -> None:
    carve(tmp_path, disk_of_logs(commits("x", groups_in(2, 3, of=50))))
    assert internal_directories(tmp_path) == {}


def test_a_mirror_of_all_commits_gets_no_name(tmp_path: Path) -> None:
    mirror = commits("mirror", (f"group-{number}" for number in range(100)))
    carve(tmp_path, disk_of_logs(mirror), "--metadata", str(LOGS / "4.3.1"))
    assert internal_directories(tmp_path) == {}


def test_evidence_for_two_names_gives_none(tmp_path: Path) -> None:
    log = commits("copied", groups_in(2, 20, of=7))
    write_copy(tmp_path / "broker2", log)
    ran = carve(tmp_path, disk_of_logs(log), "--like", "broker2")
    assert b"no name for 1 partition: the evidence has several" in ran.stdout
    assert internal_directories(tmp_path) == {}
    (found,) = [line for line in evidence(tmp_path) if line["type"] == "contradiction"]
    assert {name["directory"] for name in found["names"]} == {"copied-0", "__consumer_offsets-2"}
