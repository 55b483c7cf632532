"""A broker's disks: golden ones cut in two, and made ones with arbitrary metadata, groups and names."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from kseg.formats.messages import MessageError, build_message
from kseg.formats.schemas import REQUESTS, Field, MessageSchema, messages_in, version_range
from tests import golden
from tests.fuzz.mutations import EDGES, havoc, mutated_file, mutated_json, number
from tests.kernel.made import BatchHeader, Record, batch
from tests.protocol.packets import frame_message, request

LOG = f"{0:020}.log"
DISKS = ("disk1", "disk2", "other")
"""Two log directories of a broker, and one of another broker with replicas of the same partitions."""
METADATA = "__cluster_metadata-0"
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
MOST_PARTITIONS = 6
IDS = [urlsafe_b64encode(bytes((place,)) * 16).decode()[:22] for place in range(1, 12)]
"""Ids of the broker's directories, followed by topics' ids."""
MARK = "fuzz"
"""The element and, after `on`, the attribute that unescaped hostile names would put into a page."""
NAMES = (
    *("<fuzz>", "</script><fuzz>", "<!--<script>", '"onfuzz="', "' onfuzz='1", " onfuzz=1 ", "]]><fuzz>", "&lt;fuzz"),
    *("\x1b[35;1;7m", "\x1b]0;owned\x07", "\x9b31m", "\u202e", "\u2028", "\r", "\n", "\t", "\x7f", "\ufeff", "\udc9b"),
    *("[bold]", "[/]", "=cmd()", "`id`", "$(id)", "'", '"', "\\", ",", ";", "%s", "{0}", "é😀", "orders", "-0", " "),
)


def name(random: Random) -> str:
    """Return a name that is harmful unless escaped: in a page, on a terminal, in a shell, in CSV."""
    text = "".join(random.choice(NAMES) for _ in range(random.choice((1, 1, 2, 3, 4))))
    return text * 500 if random.random() < 0.01 else text


def _file_name(random: Random) -> str:
    """Return the same as a directory name: a byte that isn't UTF-8 stays, as in os.fsdecode."""
    text = name(random).replace("/", "").replace("\0", "")[:40] or "t"
    return "t" if text.startswith(".") else text


def _text(random: Random) -> str:
    """Return a name in a message, which is UTF-8."""
    return name(random).replace("\udc9b", "\x9b")


# --- records of internal topics --------------------------------------------------------------------------------------


class Fields:
    """A generator of messages' fields: names from a few, so that records refer to each other; small numbers."""

    def __init__(self, random: Random, names: Sequence[str]) -> None:
        self._random, self._names = random, names

    def of(self, fields: Sequence[Field], version: int) -> dict[str, Any]:
        """Return values by name for the fields of a version."""
        known = [field for field in fields if version in version_range(field.versions)]
        return {field.name: self._value(field, version) for field in known}

    def _value(self, field: Field, version: int) -> Any:
        if version in version_range(field.nullable) and self._random.random() < 0.1:
            return None
        if field.type.startswith("[]"):
            return [self._one(field, version) for _ in range(self._random.choice((0, 1, 1, 2)))]
        return self._one(field, version)

    def _one(self, field: Field, version: int) -> Any:
        kind = field.type.removeprefix("[]")
        if field.fields:
            return self.of(field.fields, version)
        match kind:
            case "string":
                return self._random.choice(self._names)
            case "uuid":
                return self._random.choice(IDS)
            case "bool":
                return self._random.random() < 0.5
            case "bytes" | "records":
                return self._random.choice((b"", self._random.choice(self._names).encode(), self._random.randbytes(9)))
            case "float64":
                return self._random.choice((0.0, 1.5, float("inf"), float("nan")))
            case _:
                small = self._random.choice((0, 0, 1, 1, 2, 3, -1))
                if self._random.random() < 0.05:
                    small = number(self._random, small, _WIDTHS[kind.removeprefix("u")])
                return abs(small) if kind.startswith("u") else small


_WIDTHS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}
"""Bytes of the types of numbers."""


@cache
def _pairs(file: str) -> list[tuple[MessageSchema, MessageSchema]]:
    """Return the keys of a coordinator's topic with their values."""
    known = {message.name: message for message in messages_in(file)}
    return [(each, known[each.name[:-3] + "Value"]) for each in known.values() if each.name.endswith("Key")]


def _version(random: Random, message: MessageSchema) -> int:
    known = version_range(message.versions)
    return known.last if random.random() < 0.5 else random.randint(known.first, known.last)


def _built(
    random: Random, fields: Fields, message: MessageSchema, version: int, known: dict[str, Any] | None = None
) -> bytes:
    """Return a message with these fields, or any; some are changed."""
    value = known or fields.of(message.fields, version)
    if random.random() < 0.2:
        value = mutated_json(random, value)
    try:
        content = build_message(message, version, value)
    except (MessageError, AttributeError, TypeError, ValueError, KeyError):
        content = build_message(message, version, fields.of(message.fields, version))
    return havoc(random, content) if random.random() < 0.02 else content


def _coordinator_log(random: Random, fields: Fields, file: str, count: int) -> bytes:
    records = []
    for _ in range(count):
        key, value = random.choice(_pairs(file))
        version = _version(random, value)
        kind = (0 if key.api_key is None else key.api_key) if file != "share_group_state" else key.api_key or 0
        content = version.to_bytes(2, "big") + _built(random, fields, value, version)
        own = kind.to_bytes(2, "big") + _built(random, fields, key, version_range(key.versions).last)
        records.append(Record(own, None if random.random() < 0.1 else content))
    return _log(records)


def _metadata_log(random: Random, fields: Fields, names: Sequence[str], count: int) -> bytes:
    """Return a log with a broker, its topics and their partitions, then records of any types."""
    types = {message.name: message for message in messages_in("cluster_metadata")}
    records = []
    for name, value in (*_known(names), *((name, None) for name in random.choices(sorted(types), k=count))):
        message = types[name]
        version = version_range(message.versions).last if value else _version(random, message)
        start = bytes((1, message.api_key or 0, version))
        records.append(Record(None, start + _built(random, fields, message, version, value)))
    return _log(records)


def _known(names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield types and fields of the records that create topics and their first partitions on a broker.

    The broker has two directories.
    """
    yield "RegisterBrokerRecord", {"brokerId": 1, "logDirs": IDS[:2]}
    for topic_id, name in zip(IDS[2:], (*INTERNAL, *names), strict=False):
        yield "TopicRecord", {"name": name, "topicId": topic_id}
        for partition in range(3):
            own = {"partitionId": partition, "topicId": topic_id, "replicas": [1, 2], "isr": [1], "leader": 1}
            yield "PartitionRecord", {**own, "leaderEpoch": 0, "partitionEpoch": 0, "directories": [IDS[0], IDS[1]]}


def _log(records: Sequence[Record]) -> bytes:
    """Return a log of batches of a few records."""
    pieces = []
    for first in range(0, len(records), 7):
        own = [
            Record(each.key, each.value, each.headers, place) for place, each in enumerate(records[first : first + 7])
        ]
        header = BatchHeader(first, last_offset_delta=len(own) - 1, base_timestamp=1_700_000_000_000 + first)
        pieces.append(batch(header, own))
    return b"".join(pieces)


# --- disks -----------------------------------------------------------------------------------------------------------


@cache
def _golden_disks() -> list[dict[str, bytes]]:
    """Return golden log directories that have the cluster metadata: contents by path."""
    folders = sorted(path.parent for path in (golden.ROOT / "logs").glob(f"*/{METADATA}"))
    return [_files(folder) for folder in folders]


def _files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def disk_files(random: Random, others: Sequence[bytes]) -> dict[str, bytes]:
    """Return two disks of a broker and one of another, with changes in the given files.

    `others`: pieces to splice in.
    """
    disk = dict(random.choice(_golden_disks()) if random.random() < 0.5 else _made_disk(random, ["a", "orders", "b"]))
    partitions = sorted({path.partition("/")[0] for path in disk if "/" in path} - {METADATA})
    kept = random.sample(partitions, min(len(partitions), MOST_PARTITIONS))
    files: dict[str, bytes] = {}
    for path, content in disk.items():
        directory = path.partition("/")[0]
        if "/" not in path:
            files |= {f"{place}/{path}": content for place in DISKS}
        elif directory == METADATA:
            files |= {f"{place}/{path}": content for place in (DISKS[0], DISKS[2])}
        elif directory in kept:
            at = kept.index(directory)
            files[f"{DISKS[at == 1]}/{path}"] = content
            if at < 2:
                files[f"{DISKS[2]}/{path}"] = content
    files |= {f"{place}/meta.properties": _properties(disk, place) for place in DISKS}
    for _ in range(random.choice((1, 2, 4, 8))):
        small = [path for path in files if not path.endswith((".log", ".index", ".timeindex"))]
        path = random.choice(small if random.random() < 0.5 else list(files))
        files[path] = mutated_file(random, path, files[path], others)
    return files


def _properties(disk: dict[str, bytes], place: str) -> bytes:
    """Return `meta.properties` of a disk: with another directory id on the second, another node's on the third."""
    lines = disk.get("meta.properties", b"version=1\nnode.id=1\n").splitlines()
    kept = [line for line in lines if not line.startswith((b"directory.id", b"node.id", b"broker.id"))]
    own = [f"node.id={2 if place == DISKS[2] else 1}", f"directory.id={IDS[DISKS.index(place)]}"]
    return b"\n".join([*kept, *(line.encode() for line in own), b""])


def _made_disk(random: Random, names: Sequence[str]) -> dict[str, bytes]:
    """Return a log directory without golden files: all internal topics, checkpoints, and partitions of `names`."""
    fields = Fields(random, names)
    count = random.choice((5, 20, 60))
    state: dict[str, object] = {"leaderId": 1, "leaderEpoch": 3, "votedId": -1, "data_version": random.randrange(2)}
    if not state["data_version"]:
        state |= {"clusterId": names[0], "appliedOffset": 0, "currentVoters": [{"voterId": 1}]}
    files = {
        f"{METADATA}/{LOG}": _metadata_log(random, fields, names, count),
        f"{METADATA}/quorum-state": json.dumps(state).encode(),
        f"__consumer_offsets-0/{LOG}": _coordinator_log(random, fields, "consumer_offsets", count),
        f"__transaction_state-0/{LOG}": _coordinator_log(random, fields, "transaction_state", count),
        f"__share_group_state-0/{LOG}": _coordinator_log(random, fields, "share_group_state", 5),
        "meta.properties": f"version=1\ncluster.id={names[0]}\nnode.id=1\n".encode("utf-8", "surrogateescape"),
    }
    for checkpoint in ("replication-offset", "recovery-point-offset", "cleaner-offset", "log-start-offset"):
        files[f"{checkpoint}-checkpoint"] = _checkpoint(random, names)
    return files | dict(_partitions(random, names))


def _checkpoint(random: Random, names: Sequence[str]) -> bytes:
    lines = [f"{each} {random.randrange(3)} {random.choice((0, 5, *EDGES))}" for each in names]
    return "\n".join(["0", str(len(lines)), *lines, ""]).encode("utf-8", "surrogateescape")


def _partitions(random: Random, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for place, topic in enumerate(names):
        texts = [random.choice(names).encode("utf-8", "surrogateescape") for _ in range(3)]
        sizes = random.choice((3, 30, 100))
        records = [Record(texts[n % 3], texts[n % 2] * (n % 5), [(texts[0], texts[1])] * (n % 3)) for n in range(sizes)]
        yield f"{topic}-{place % 3}/{LOG}", _log(records)
        epochs = f"0\n1\n{random.randrange(4)} {random.choice((0, 3, *EDGES))}\n"
        yield f"{topic}-{place % 3}/leader-epoch-checkpoint", epochs.encode()
        topic_id = IDS[2 + len(INTERNAL) + place] if random.random() < 0.9 else random.choice(IDS)
        yield f"{topic}-{place % 3}/partition.metadata", f"version: 0\ntopic_id: {topic_id}".encode()


def named_files(random: Random) -> dict[str, bytes]:
    """Return a log directory with hostile names only, and requests of such clients."""
    topics = [_file_name(random) for _ in range(random.choice((1, 3)))]
    in_messages = [*(topic.replace("\udc9b", "\x9b") for topic in topics), *(_text(random) for _ in range(3))]
    disk = _made_disk(random, in_messages)
    files = {f"broker/{path}": content for path, content in disk.items() if path.startswith("__") or "/" not in path}
    files |= {f"broker/{path}": content for path, content in _partitions(random, topics)}
    return files | {"broker2/meta.properties": _properties(disk, DISKS[1]), "frames": _frames(random, in_messages)}


def _frames(random: Random, names: Sequence[str]) -> bytes:
    fields, frames = Fields(random, names), []
    for place in range(5):
        key = random.choice([key for key in sorted(REQUESTS) if REQUESTS[key].versions != "none"])
        version = _version(random, REQUESTS[key])
        try:
            frames.append(
                frame_message(request(key, version, fields.of(REQUESTS[key].fields, version), place, names[0]))
            )
        except (MessageError, AssertionError):
            continue
    return b"".join(frames) or b"\0\0\0\1a"
