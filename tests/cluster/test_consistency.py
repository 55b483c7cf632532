"""The same question gets the same answer from every command, and for every order of the brokers."""

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from pyarrow import fs

import kseg
from tests import golden
from tests.cluster.made_metadata import write_id
from tests.cluster.questions import (
    ENDS_ASKED,
    RECORDS_ASKED,
    STARTS_ASKED,
    Ask,
    ask_dump,
    ask_export,
    ask_joined,
    ask_open,
    ask_query,
    ask_salvage,
    dumped_as_csv,
    ends_by_lookup,
    ends_by_opening,
    ends_by_query,
    of_rows,
)
from tests.coordinators.coordinators import commit
from tests.export.object_store import redirect_to, serving
from tests.log.replicas import Part, batch, replica
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.run import kseg as run

BROKERS = ("b1", "b2", "b3")
CURRENT, BEFORE = "cJFU-m2vQ6uCEEqPGgnDXw", "p1XHsPOYQDm0-X-eJ7nDVQ"
"""Ids of the topic, and of an earlier topic of the same name."""
RECORDS = {
    ("orders", 0): [*((n, f"kept {n}") for n in range(80)), *((n, f"new {n}") for n in range(80, 105))],
    ("orders", 1): [(n, f"kept {n}") for n in range(30)],
}
"""The expected offsets and values of each partition."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three brokers after an unclean election: the third one's log has 120 records, the cluster continued with 105.

    The first one was down when the topic was re-created, and has the old one's partition 1. The third has a directory
    that it set aside, and the groups' commits.
    """
    root = tmp_path_factory.mktemp("cluster") / "bundle" / "disks"
    kept, new, lost = Part(3, 0, 80, "kept"), Part(5, 80, 25, "new"), Part(3, 80, 40, "lost")
    copies = {"b1": (kept, new), "b2": (kept, new._replace(count=20)), "b3": (kept, lost)}
    for number, broker in enumerate(BROKERS, 1):
        parts = copies[broker]
        write_id(replica(root / broker, parts), CURRENT)
        (root / broker / "meta.properties").write_text(
            f"version=1\nnode.id={number}\ncluster.id=kQdd7jZGT3CMrgGgk1nVcQ\n", encoding="utf-8"
        )
    for broker, topic_id, word, count in (("b2", CURRENT, "kept", 30), ("b1", BEFORE, "old", 50)):
        records = [NewRecord(b"%d" % n, f"{word} {n}".encode(), 1000 if word == "old" else 2000) for n in range(count)]
        write_segment(root / broker / "orders-1", [NewBatch(records)])
        write_id(root / broker / "orders-1", topic_id)
    write_segment(root / "b3" / f"orders-1.{'0' * 32}-stray", [NewBatch([NewRecord(b"k", b"stray")] * 99)])
    write_segment(
        root / "b3" / "__consumer_offsets-0", [NewBatch([commit("orders", 70), commit("orders", 9, partition=1)])]
    )
    return root


ORDERS: tuple[tuple[str, ...], ...] = (*permutations(BROKERS), (".",), ("..",))
CHOICES: tuple[tuple[str, ...], ...] = ((), ("--topic", "orders"))


@pytest.mark.parametrize("ask", RECORDS_ASKED, ids=lambda ask: ask.__name__)
def test_each_record_is_there_once_and_none_of_an_abandoned_lineage(ask: Ask, cluster: Path) -> None:
    answers = {(paths, choice): ask(cluster, paths, choice) for paths in ORDERS[::3] for choice in CHOICES}
    assert {key: answer for key, answer in answers.items() if answer != RECORDS} == {}


def _pack(cluster: Path) -> Path:
    """The cluster as an archive, next to its directory."""
    archive = cluster.parents[1] / "bundle.tar"
    if not archive.exists():
        with tarfile.open(archive, "w") as tar:
            tar.add(cluster, "bundle")
    return archive


@pytest.mark.exhaustive
@for_each(
    "ask, paths, choice",
    list(product((*RECORDS_ASKED, *ENDS_ASKED, *STARTS_ASKED), (*ORDERS, None), CHOICES)),
    ids=lambda case: f"{case[0].__name__} {case[1] or 'archive'} {case[2]}",
    shards=8,
)
def test_every_way_to_ask_gets_the_same_answer(
    ask: Ask, paths: tuple[str, ...] | None, choice: tuple[str, ...], cluster: Path
) -> None:
    """The brokers, their parents, and an archive of them, in every order."""
    truth: Mapping[Any, Any] = RECORDS
    if ask not in RECORDS_ASKED:
        truth = {key: 0 if ask in STARTS_ASKED else records[-1][0] + 1 for key, records in RECORDS.items()}
    assert ask(cluster, (str(_pack(cluster)),) if paths is None else paths, choice) == truth


@contextmanager
def upload(directory: Path) -> Iterator[str]:
    """Yield the URL of a directory's copy in an object store."""
    with serving(DomainDispatcherApplication(create_backend_app)) as url, redirect_to(url):
        place = url.removeprefix("http://")
        store = fs.S3FileSystem(endpoint_override=place, scheme="http", region="us-east-1", allow_bucket_creation=True)
        store.create_dir("disks")
        fs.copy_files(str(directory), "disks/up", destination_filesystem=store)
        try:
            yield "s3://disks/up"
        finally:
            store.delete_dir_contents("disks")  # the server's store belongs to the process


def test_the_end_of_a_copy_in_a_store_is_told_as_on_disks(cluster: Path, tmp_path: Path) -> None:
    with upload(cluster) as up:
        ran, as_text = (
            run(["export", f"{up}/b3", str(cluster / "b1"), f"out-{form}", "-o", form], tmp_path)
            for form in ("json", "text")
        )
    left_out = json.loads(ran.stdout.splitlines()[-1])["taken"]["leftOut"]
    (found,) = (each for each in left_out if each["status"] == "abandoned")
    assert (found["firstOffset"], found["lastOffset"]) == (80, 119)
    told = "b3/orders-0 of broker 3: offsets 80 to 119, leader epoch 3: the cluster continued without them"
    assert told in as_text.stdout.decode() + as_text.stderr.decode()


def test_of_copies_in_a_store_the_one_with_the_furthest_segment_answers(tmp_path: Path) -> None:
    """The segment with the most bytes doesn't decide."""
    best, larger = (Part(0, 0, 90, "best"), Part(0, 100, 5, "best")), (Part(0, 0, 90, "large" * 200),)
    for broker, parts in enumerate((best, larger)):
        for part in parts:
            write_segment(tmp_path / "disks" / str(broker) / "orders-0", [batch(part)], part.first)
        (tmp_path / "disks" / str(broker) / "meta.properties").write_text(f"version=1\nnode.id={broker}\n")
    with upload(tmp_path / "disks") as up:
        assert run(["export", up, "out"], tmp_path).status == 0
    rows = pq.read_table(tmp_path / "out", columns=["topic", "partition", "offset", "value"]).to_pylist()
    assert of_rows(rows)["orders", 0][0] == (0, "best 0")


@pytest.mark.exhaustive
def test_an_object_store_answers_as_the_directories_do(cluster: Path, tmp_path: Path) -> None:
    with upload(cluster) as up:
        for number, paths in enumerate(ORDERS):
            urls = [f"{up}/{path}" if path in BROKERS else up for path in paths]
            assert run(["export", *urls, f"out{number}"], tmp_path).status == 0
            read = pq.read_table(tmp_path / f"out{number}", columns=["topic", "partition", "offset", "value"])
            assert of_rows(read.to_pylist()) == RECORDS


@pytest.mark.exhaustive
@for_each(
    "name",
    [path.name for path in sorted((golden.ROOT / "logs").iterdir()) if not re.search("remote|classes", path.name)],
)
def test_recorded_disks_get_the_same_answer_whoever_is_asked(name: str, tmp_path: Path) -> None:
    """Control records are printed and saved, but are in no table."""
    root = tmp_path / "bundle" / "disks"
    root.mkdir(parents=True)
    (root / name).symlink_to(golden.ROOT / "logs" / name)
    for asked in ((ask_dump, dumped_as_csv, ask_salvage), (ask_export, ask_query), (ask_open, ask_joined)):
        answers = [offsets_of(ask(root, (name,), ())) for ask in asked]
        assert [answer for answer in answers if answer != answers[0]] == [], asked
    by_query, *ends = (ask(root, (name,), ()) for ask in (ends_by_query, ends_by_lookup, ends_by_opening))
    assert ends[0] == ends[1]
    assert by_query == {key: end for key, end in ends[0].items() if key in by_query}


def offsets_of(found: Mapping[Any, list[tuple[int, str]]]) -> dict[Any, list[int]]:
    return {key: [offset for offset, _ in records] for key, records in found.items()}


@pytest.mark.parametrize("ask", ENDS_ASKED, ids=lambda ask: ask.__name__)
def test_logs_end_where_the_copy_ends_that_answers(ask: Ask, cluster: Path) -> None:
    ends = {key: records[-1][0] + 1 for key, records in RECORDS.items()}
    answers = {(paths, choice): ask(cluster, paths, choice) for paths in ORDERS for choice in CHOICES}
    assert {key: answer for key, answer in answers.items() if answer != ends} == {}


@pytest.mark.parametrize("ask", STARTS_ASKED, ids=lambda ask: ask.__name__)
def test_logs_start_where_the_copy_starts_that_answers(ask: Ask, cluster: Path) -> None:
    answers = [ask(cluster, paths, choice) for paths in ORDERS[::4] for choice in CHOICES]
    assert answers == [dict.fromkeys(RECORDS, 0)] * len(answers)


def test_an_opened_cluster_knows_its_brokers_lags_and_what_is_left_out(cluster: Path) -> None:
    with kseg.open_cluster([cluster / broker for broker in reversed(BROKERS)]) as opened:
        assert (opened.cluster_id, opened.brokers) == ("kQdd7jZGT3CMrgGgk1nVcQ", (1, 2, 3))
        assert dict(opened.lag("g")) == {("orders", 0): 105 - 70, ("orders", 1): 30 - 9}
        assert (opened.taken.copies, opened.taken.abandoned, len(opened.taken.left_out)) == (5, 1, 3)
        assert [copy.broker for copy in opened.topics["orders"].partitions[0].replicas] == [1, 2, 3]
        assert opened.topics["orders"].topic_id == CURRENT


def test_an_archive_answers_as_the_directories_do(cluster: Path) -> None:
    for ask in (ask_dump, ask_query, ask_open):
        assert ask(cluster, (str(_pack(cluster)),), ()) == RECORDS


def test_what_is_left_out_is_told(cluster: Path) -> None:
    told = [
        "b1/orders-1 of broker 1: of a topic that was deleted, or created again since",
        f"b3/orders-1.{'0' * 32}-stray of broker 3: put aside by its broker (-stray)",
        "b3/orders-0 of broker 3: offsets 80 to 119, leader epoch 3: the cluster continued without them (`kseg diff`)",
    ]
    for command in (["dump", "-o", "json"], ["query", "SELECT count(*) FROM records"]):
        said = run([*command, *BROKERS], cluster).stderr.decode()
        assert [line for line in told if line not in said] == []
    report = json.loads(run(["export", *BROKERS, "../../told", "-o", "json"], cluster).stdout.splitlines()[-1])
    assert [(each["status"], each["broker"], each.get("firstOffset")) for each in report["taken"]["leftOut"]] == [
        ("abandoned", 3, 80),
        ("stale", 1, None),
        ("stray", 3, None),
    ]


def test_doctor_and_verify_find_copies_that_diverged(cluster: Path) -> None:
    found = [json.loads(line) for line in run(["doctor", *BROKERS, "-o", "json"], cluster).stdout.splitlines()]
    (diverged,) = [each for each in found if each.get("id") == "copies-diverged"]
    told = {name: diverged[name] for name in ("file", "topic", "partition", "firstOffset", "lastOffset", "records")}
    assert told == {
        "file": "b3/orders-0",
        "topic": "orders",
        "partition": 0,
        "firstOffset": 80,
        "lastOffset": 119,
        "records": 40,
    }
    assert diverged["command"] == "kseg diff b1/orders-0 b2/orders-0 b3/orders-0"
    assert b"only here: 40 records" in run(str(diverged["command"]).split()[1:], cluster).stdout
    sentence = "offsets 80 to 119, up to 40 records, have leader epoch 3, which the cluster abandoned"
    assert f"warning copies-diverged: {sentence}" in run(["verify", *BROKERS], cluster).stdout.decode()


def test_the_copy_that_answers_for_each_partition_is_told_if_that_is_asked_for(cluster: Path) -> None:
    told = [
        "orders-0: b1/orders-0 of broker 1, leader epoch 5, log end 105; 2 further copies",
        "orders-1: b2/orders-1 of broker 2",
    ]
    asked = (
        ["dump"],
        ["query", "select count(*) from records"],
        ["salvage", "--dry-run"],
        ["txns"],
        ["compact", "--dry-run"],
    )
    for command in (*asked, ["export", "--to", "../../shown"]):
        ran = run([*command, *BROKERS, "-v"], cluster)
        lines = (ran.stderr + ran.stdout).decode().replace("kseg: ", "").replace(f"{cluster}/", "").splitlines()
        assert [line for line in told if line not in lines] == [], (command, lines)


def test_a_report_tells_what_each_copy_is(cluster: Path) -> None:
    ran = run(["report", "-o", "json", *reversed(BROKERS)], cluster)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    table = {(row["logDir"], row["partition"]): row for row in rows if row.get("table") == "replicas"}
    assert {key: (row["status"], row["behind"]) for key, row in table.items()} == {
        ("b1", "orders-0"): ("current", 0),
        ("b2", "orders-0"): ("current", 5),
        ("b3", "orders-0"): ("abandoned from offset 80 on", 25),
        ("b2", "orders-1"): ("current", 0),
        ("b1", "orders-1"): ("stale", None),
        ("b3", f"orders-1.{'0' * 32}-stray"): ("stray", None),
    }
    said = [row["sentence"] for row in rows if row.get("block") == "replicas" and row["type"] == "verdict"]
    assert said[1:] == [
        "orders-0: b2 lacks 5 offsets at the end.",
        "b1/orders-1 of broker 1: of a topic that was deleted, or created again since.",
    ]


def test_what_the_cluster_abandoned_can_be_kept_apart(cluster: Path) -> None:
    apart = cluster.parents[1] / "apart"
    ran = run(["salvage", *BROKERS, "--to", "../../kept", "--keep-diverged", str(apart), "-o", "json"], cluster)
    assert ran.status == 0, ran.stderr
    saved = {each["name"]: each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == "salvage"}
    (abandoned,) = saved["orders-0"]["abandoned"]
    assert (abandoned["broker"], abandoned["firstOffset"], abandoned["lastOffset"]) == (3, 80, 119)
    assert ask_dump(apart, ["."], ()) == {("orders", 0): [(n, f"lost {n}") for n in range(80, 120)]}


def test_each_copy_is_printed_if_that_is_asked_for(cluster: Path) -> None:
    found = ask_dump(cluster, BROKERS, ("--all-replicas",))
    assert len(found["orders", 0]) == 105 + 100 + 120


@pytest.mark.parametrize("ask", RECORDS_ASKED, ids=lambda ask: ask.__name__)
def test_a_directory_by_several_names_is_one(ask: Ask, cluster: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(cluster / "b1")
    names = ("b1", str(cluster / "b1"), "b2/../b1", str(tmp_path / "link"), "b2", "b3")
    for paths in (names, names[::-1], ("b1", "b2", "b3", "."), (".", "b3", "b1")):
        assert ask(cluster, paths, ()) == RECORDS, paths
