from pathlib import Path

import pytest

from tests.run import Run, kseg


def dump(directory: Path, name: str, content: bytes, *options: str) -> Run:
    (directory / name).write_bytes(content)
    return kseg(["dump", *options, name], directory)


@pytest.mark.parametrize(
    ("name", "content", "printed"),
    [
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n3 120\n", ["epoch: 0 startOffset: 0", "epoch: 3 startOffset: 120"]),
        ("replication-offset-checkpoint", b"0\n1\norders 7 17\n", ["topic: orders partition: 7 offset: 17"]),
        (
            "partition.metadata",
            b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
            ["version: 0 topicId: AAAAAAAAAAAAAAAAAAAAAQ"],
        ),
        ("meta.properties", b"#Sat Nov 21\nversion=1\ncluster.id=a\\:b\n", ["version: 1", "cluster.id: a:b"]),
        (
            "quorum-state",
            b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
            b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}',
            [
                "clusterId:  leaderId: 1 leaderEpoch: 2 votedId: -1 appliedOffset: 0"
                ' currentVoters: [{"voterId":1},{"voterId":2}] data_version: 0'
            ],
        ),
        (".kafka_cleanshutdown", b'{"version":0,"brokerEpoch":27}', ["version: 0 brokerEpoch: 27"]),
        (".kafka_cleanshutdown", b"", []),
        ("cleaner-offset-checkpoint", b"", []),
        ("recovery-point-offset-checkpoint.tmp", b"0\n1\na 0 5\n", ["topic: a partition: 0 offset: 5"]),
    ],
)
def test_text_file_prints_in_the_words_of_its_fields(
    tmp_path: Path, name: str, content: bytes, printed: list[str]
) -> None:
    ran = dump(tmp_path, name, content)
    assert ran.stdout.decode().splitlines() == [f"Dumping {name}", *printed]
    assert (ran.status, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("leader-epoch-checkpoint", b"\xff\xfe", "line 1: not UTF-8"),
        ("leader-epoch-checkpoint", b"0\n3\n0 0\n", "line 2: the number of entries is 3, but 1 follow"),
        ("log-start-offset-checkpoint", b"0\n1\norders x 1\n", "line 3: 'x' isn't an integer"),
        ("partition.metadata", b"version: 0", "the file has 1 line, expected 2"),
        ("quorum-state", b"[" * 100_000, "line 1: "),
        (".kafka_cleanshutdown", b"{}", "line 1: version is missing"),
        ("meta.properties", b"a=\\u12", "line 1: \\u isn't followed by four hex digits"),
    ],
)
def test_malformed_text_file_is_reported_in_one_line(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    ran = dump(tmp_path, name, content)
    assert ran.stdout.decode() == f"Dumping {name}\n"
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.decode().startswith(f"kseg: {name}: ")
    assert problem in ran.stderr.decode()
    assert ran.status == 1


@pytest.mark.parametrize(("name", "content"), [("partition.metadata", b"version: 0"), (f"{0:020}.txnindex", bytes(35))])
@pytest.mark.parametrize("output", ["csv", "table"])
def test_rows_of_malformed_file_tell_what_is_wrong_once(tmp_path: Path, name: str, content: bytes, output: str) -> None:
    ran = dump(tmp_path, name, content, "-o", output)
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.decode().startswith(f"kseg: {name}: ")
    assert ran.status == 1


def test_text_file_of_absurd_size_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "meta.properties").open("wb") as file:
        file.truncate(1 << 40)
    ran = kseg(["dump", "meta.properties"], tmp_path)
    assert b"too many for one of Kafka's text files" in ran.stderr
    assert ran.status == 1


def test_release_of_kafka_ignores_text_files(tmp_path: Path) -> None:
    ran = dump(tmp_path, "leader-epoch-checkpoint", b"0\n0\n", "--like", "4.3")
    assert ran.stdout == b"Dumping leader-epoch-checkpoint\n"
    assert ran.stderr == b"Ignoring unknown file leader-epoch-checkpoint\n"
