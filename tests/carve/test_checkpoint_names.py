"""Names by old copies of Kafka's offset checkpoints: right or none."""

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.carve.made_images import Log, lockstep_logs, make_log
from tests.carve.test_internal_names import disk_of_logs
from tests.cluster.made_metadata import write_metadata
from tests.commands.test_carve import carve, carved_logs, evidence

BLOCK = 4096
COPIES = 40
TOPIC_ID = "MkU3OEVBNTcwNTJENDM2Qg"
Entry = tuple[str, int, int]


def checkpoint(entries: Sequence[Entry]) -> bytes:
    lines = (f"{topic} {partition} {offset}\n" for topic, partition, offset in entries)
    return f"0\n{len(entries)}\n{''.join(lines)}".encode()


def disk_of_texts(texts: Iterable[bytes]) -> bytes:
    return b"".join(text + bytes(-len(text) % BLOCK) for text in texts)


def checkpoints_of(logs: Sequence[Log], seed: int = 1) -> list[bytes]:
    """Return checkpoints as a broker writes them again and again: each has a boundary of every log, a bit later."""
    chance = random.Random(seed)
    texts = []
    for number in range(COPIES):
        share = (number + chance.random()) / COPIES
        texts.append(checkpoint([(log.name, 0, log.batches[int(share * len(log.batches))][0]) for log in logs]))
    return texts


def names_of(directory: Path, logs: Sequence[Log]) -> dict[str, str]:
    """Return the directories of carved logs by the names of the logs that they are a part of."""
    return {
        next(log.name for log in logs if content in log.content): name.split("/")[0]
        for name, content in carved_logs(directory).items()
    }


def varied_log(name: str, seed: int = 1) -> Log:
    chance = random.Random(f"{name} {seed}")
    return make_log(name, [(chance.randint(1, 20), 60) for _ in range(200)], seed)


def test_partitions_get_the_names_that_all_their_boundaries_fit(tmp_path: Path) -> None:
    logs = list(lockstep_logs(8, 150_000, 5))
    carve(tmp_path, disk_of_logs(*logs) + disk_of_texts(checkpoints_of(logs)))
    found = names_of(tmp_path, logs)
    named = {log: name for log, name in found.items() if not name.startswith("carved-")}
    assert named == {log: f"{log}-0" for log in ("topic-2", "topic-6")}  # others are twins, or have few batches
    name = next(line for line in evidence(tmp_path) if line["type"] == "name" and line["directory"] == "topic-2-0")
    assert name["kind"] == "checkpoints"
    assert name["bits"] >= 24
    assert name["bits"] - name["runnerUpBits"] >= 16


def test_a_checkpoint_at_any_byte_counts(tmp_path: Path) -> None:
    log = varied_log("orders")
    texts = b"".join(random.Random(number).randbytes(777) + text for number, text in enumerate(checkpoints_of([log])))
    carve(tmp_path, disk_of_logs(log) + texts)
    assert names_of(tmp_path, [log]) == {"orders": "orders-0"}


def test_few_checkpoints_prove_nothing(tmp_path: Path) -> None:
    log = varied_log("orders")
    carve(tmp_path, disk_of_logs(log) + disk_of_texts(checkpoints_of([log])[::8]))
    assert names_of(tmp_path, [log]) == {"orders": "carved-0001-0"}


def test_one_offset_inside_a_batch_takes_the_name(tmp_path: Path) -> None:
    log = varied_log("orders")
    inside = next(
        offset
        for (offset, _, _), (after, _, _) in zip(log.batches[9:], log.batches[10:], strict=False)
        if after > offset + 1
    )
    texts = [*checkpoints_of([log]), checkpoint([("orders", 0, inside + 1)])]
    carve(tmp_path, disk_of_logs(log) + disk_of_texts(texts))
    assert names_of(tmp_path, [log]) == {"orders": "carved-0001-0"}


def test_a_name_that_two_overlapping_partitions_fit_is_given_to_neither(tmp_path: Path) -> None:
    sizes = [(random.Random(number).randint(1, 20), 60) for number in range(200)]
    log, twin = make_log("orders", sizes, 1), make_log("payments", sizes, 1)
    carve(tmp_path, disk_of_logs(log, twin) + disk_of_texts(checkpoints_of([log])))
    assert set(names_of(tmp_path, [log, twin]).values()) == {"carved-0001-0", "carved-0002-0"}


def test_a_partition_that_a_known_topic_never_had_gives_no_name(tmp_path: Path) -> None:
    log = varied_log("orders")
    texts = [text.replace(b"orders 0 ", b"orders 3 ") for text in checkpoints_of([log])]
    write_metadata(tmp_path / "broker2", {"orders": TOPIC_ID}, count=3)
    carve(tmp_path, disk_of_logs(log) + disk_of_texts(texts), "--metadata", "broker2")
    assert names_of(tmp_path, [log]) == {"orders": "carved-0001-0"}


def test_hostile_checkpoints_name_nothing_and_cost_little(tmp_path: Path) -> None:
    log = varied_log("orders")
    texts = [
        text.replace(b"orders", name)
        for name in (b"../../etc", b"..", b"/etc", b"", b"a" * 250, b"a\0b")
        for text in checkpoints_of([log])
    ]
    texts += [b"0\n1000000\n" + b"orders 0 99999999999999999999\n" * 30_000, b"0\n9999999\na 0 1\n" * 20_000]
    carve(tmp_path, disk_of_logs(log) + disk_of_texts(texts))
    assert names_of(tmp_path, [log]) == {"orders": "carved-0001-0"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["carved", "disk.img"]
