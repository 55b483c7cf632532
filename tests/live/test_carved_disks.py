"""Topics that a real broker deleted come back from ext4 and xfs: all batches, right names, and a broker reads them.

Needs root, mkfs.ext4, mkfs.xfs, Java and Maven. `make test-carve-live` prints a table of what came back.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import run
from tests.live.carved_disk import (
    SLOW,
    TOPICS,
    Contents,
    Judgement,
    commit_groups,
    contents_of,
    judge,
    make_disk,
    mounted,
    write_other_files,
    write_topics,
)
from tests.log.real_broker import PATIENCE, Broker, ServedRecord, make_topics, new_broker, put_in_place, served_records

pytestmark = pytest.mark.disks

SECONDS = float(os.environ.get("SECONDS", "60"))
OTHER_SIZES = (0, 250 << 20, 1 << 30)
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 7,
    "replica.high.watermark.checkpoint.interval.ms": 1000,
}
"""As many checkpoints in a minute as in five by default."""
LOADED = ("codec-none-0", "codec-lz4-2", "codec-zstd-1", "codec-snappy-0", "paid", "plain", "blobs", SLOW[0])
"""Topics that another broker reads."""


class Deleted(NamedTuple):
    """An image whose topics were deleted, what they had, and the records that a client read before."""

    image: Path
    truth: Contents
    records: dict[str, list[ServedRecord]]


@pytest.fixture(scope="module", params=["ext4", "xfs", "ext4-aged", "xfs-aged"])
def deleted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deleted]:
    kind, _, aged = request.param.partition("-")
    broker = new_broker(tmp_path_factory, SETTINGS)
    image = broker.work / f"{request.param}.img"
    make_disk(kind, image, broker.logs, is_aged=bool(aged))
    with mounted(image, broker.logs):
        with broker.running("source"):
            make_topics(broker.port, TOPICS, TOPICS)
            write_topics(broker, SECONDS)
            commit_groups(broker)
            os.sync()
            time.sleep(2)  # a checkpoint of the high watermarks
            os.sync()
            records = {topic: served_records(broker.port, topic, "read_committed") for topic in LOADED}
            truth = contents_of(broker.logs)
            delete_topics(broker)
        os.sync()
    yield Deleted(image, truth, records)
    image.unlink()


def delete_topics(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    for future in admin.delete_topics(list(TOPICS)).values():
        future.result(PATIENCE)
    end = time.monotonic() + 2 * PATIENCE
    while any((broker.logs / f"{topic}-0").exists() for topic in TOPICS) or any(broker.logs.glob("*-delete")):
        assert time.monotonic() < end, "topics aren't deleted"
        time.sleep(0.2)


def carve(image: Path, directory: Path, *options: str) -> float:
    """Carve an image into a directory; return the seconds that it took."""
    shutil.rmtree(directory, ignore_errors=True)
    began = time.monotonic()
    ran = run.process(["carve", str(image), "--to", str(directory), *options], directory.parent, timeout=900)
    assert ran.status in (0, 1), ran.stderr
    return time.monotonic() - began


TITLES = ("disk", "batches", "back", "bytes", "named", "bytes", "dirs", "wrong names", "mixed", "seconds")
WIDTHS = (18, 7, 7, 7, 7, 7, 5, 11, 5, 7)


def line_of(cells: Sequence[object]) -> str:
    texts = [f"{each:.2%}" if isinstance(each, float) else str(each) for each in cells]
    return "  ".join(text.rjust(width) for text, width in zip(texts, WIDTHS, strict=True)) + "\n"


def row(name: str, truth: Contents, judged: Judgement, seconds: float) -> str:
    back = judged.batches / truth.count, judged.size / truth.size
    named = judged.named_batches / truth.count, judged.named_size / truth.size
    wrong = judged.directories, judged.wrong_names, judged.mixed
    return line_of((name, truth.count, *back, *named, *wrong, f"{seconds:.1f}"))


def test_deleted_topics_come_back_without_a_wrong_name_or_link(
    deleted: Deleted, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "mounted"
    place.mkdir()
    copy = tmp_path / "copy.img"
    shutil.copyfile(deleted.image, copy)
    written = 0
    with capsys.disabled():
        sys.stdout.write("\n" + line_of(TITLES))
    for size in OTHER_SIZES:
        if size > written:
            write_other_files(copy, place, size - written)
            written = size
        for options in ((), ("--hints", "none"))[: 1 if size else 2]:
            seconds = carve(copy, tmp_path / "carved", *options)
            judged = judge(tmp_path / "carved", deleted.truth)
            with capsys.disabled():
                name = f"{deleted.image.stem} {size >> 20}{' no hints' if options else ''}"
                sys.stdout.write(row(name, deleted.truth, judged, seconds))
            assert (judged.wrong_names, judged.mixed) == (0, 0)
            assert size or judged.batches >= 0.95 * deleted.truth.count


@pytest.fixture(scope="module")
def carved(deleted: Deleted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the carved directories of an image, each of the largest under its partition's name."""
    directory = tmp_path_factory.mktemp("carved") / "carved"
    carve(deleted.image, directory)
    names = judge(directory, deleted.truth).largest
    given = [f"{names[f'{topic}-0'].removesuffix('-0')}={topic}-0" for topic in LOADED]
    given = [each for each in given if each.startswith("carved-")]
    carve(deleted.image, directory, *(option for each in given for option in ("--name", each)))
    return directory


def test_a_broker_loads_carved_partitions(
    deleted: Deleted, carved: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broker = new_broker(tmp_path_factory, {"auto.create.topics.enable": "false"})
    with broker.running("empty"):
        make_topics(broker.port, LOADED)
    for topic in LOADED:
        put_in_place(carved / f"{topic}-0", broker.logs / f"{topic}-0")
    (broker.logs / ".kafka_cleanshutdown").unlink()
    with broker.running("loaded"):
        for topic in LOADED:
            assert_part_of(served_records(broker.port, topic, "read_committed"), deleted.records[topic], topic)


def test_carved_partitions_are_restored_into_a_running_cluster(
    deleted: Deleted, carved: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broker = new_broker(tmp_path_factory, {"auto.create.topics.enable": "false"})
    with broker.running("target"):
        topics = [option for topic in LOADED for option in ("--topic", topic)]
        arguments = ["restore", str(carved), "--bootstrap", f"127.0.0.1:{broker.port}", "--yes", *topics]
        ran = run.process(arguments, broker.work, timeout=900)
        assert ran.status in (0, 1), ran.stderr
        for topic in LOADED:
            found = served_records(broker.port, topic, "read_committed")
            without_offsets = [each[1:] for each in found]
            wanted = [each[1:] for each in deleted.records[topic]]
            assert_part_of(without_offsets, wanted, topic)


def assert_part_of(found: list[object], wanted: list[object], topic: str) -> None:
    """Assert that some records are a run of others, and hardly fewer."""
    assert len(found) >= 0.5 * len(wanted), f"{topic}: {len(found)} of {len(wanted)}"
    start = wanted.index(found[0])
    assert found == wanted[start : start + len(found)], topic
