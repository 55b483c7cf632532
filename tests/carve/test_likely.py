"""`--likely` puts unnamed partitions together where pieces fit; `--topic` chooses the ones to write."""

from pathlib import Path

from tests.carve.made_images import make_log
from tests.carve.test_internal_names import disk_of_logs
from tests.carve.test_names import write_copy
from tests.commands.test_carve import blocks_of, carve, carved_logs, evidence, log_broken_at
from tests.run import kseg

BLOCK = 4096
CUT = 30
"""Bytes of a torn batch in the first block: too few to prove that the rest is of the same partition."""


def likely_pair(name: str = "x") -> bytes:
    first, second = blocks_of(log_broken_at(CUT, name))
    return second + b"\xaa" * BLOCK + first


def test_likely_links_are_used_only_if_wanted(tmp_path: Path) -> None:
    log = log_broken_at(CUT, "x")
    carve(tmp_path, likely_pair())
    assert len(carved_logs(tmp_path)) == 2
    assert [line["kind"] for line in evidence(tmp_path) if line["type"] == "link"] == ["likely"]
    ran = kseg(["carve", "disk.img", "--likely", "--to", "joined"], tmp_path)
    assert b"put together by 1 likely link" in ran.stdout
    (path,) = (tmp_path / "joined").glob("*/*.log")
    assert path.read_bytes() == log.content


def test_a_name_never_travels_over_a_likely_link(tmp_path: Path) -> None:
    log = log_broken_at(CUT, "x")
    write_copy(tmp_path / "broker2", log, 1)
    carve(tmp_path, likely_pair(), "--likely", "--like", "broker2")
    assert [name.split("/")[0] for name in carved_logs(tmp_path)] == ["carved-0001-0", "x-0"]


def test_a_given_name_is_for_all_that_is_put_together(tmp_path: Path) -> None:
    carve(tmp_path, likely_pair(), "--likely", "--name", "carved-0001=orders-0")
    assert list(carved_logs(tmp_path).values()) == [log_broken_at(CUT, "x").content]
    assert kseg(["carve", "--check", "carved/carve.jsonl"], tmp_path).status == 0


def test_only_chosen_topics_are_written(tmp_path: Path) -> None:
    logs = [make_log(name, [(1, 300)] * 30, 1) for name in ("orders", "orders-eu", "payments")]
    names = [option for number, log in enumerate(logs, 1) for option in ("--name", f"carved-000{number}={log.name}-0")]
    ran = carve(tmp_path, disk_of_logs(*logs), *names, "--topic", "ord*")
    assert {name.split("/")[0] for name in carved_logs(tmp_path)} == {"orders-0", "orders-eu-0"}
    assert b"left out 30 batches in 1 partition (--topic)" in ran.stdout
    assert ran.status == 0
    (other,) = [line for line in evidence(tmp_path) if line["type"] == "other"]
    assert other["directory"] == "payments-0"


def test_a_topic_that_was_not_found_ends_with_status_2(tmp_path: Path) -> None:
    ran = carve(tmp_path, make_log("a", [(1, 300)] * 30, 1).content, "--topic", "orders")
    assert ran.status == 2
    assert b"disk.img: has no partitions of the chosen topics; list partitions by --dry-run" in ran.stderr
    assert not (tmp_path / "carved").exists()
