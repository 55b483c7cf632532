"""`kseg diff` on any copies, against a comparison of their records one by one."""

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.codes import Codec
from tests.log.cleaner_logs import batch
from tests.log.replicas import TOPIC
from tests.run import kseg

CODECS = (Codec.NONE, Codec.GZIP, Codec.LZ4)


class Step(NamedTuple):
    """A batch of a copy: skipped offsets before it, skipped epochs, its values, its codec."""

    gap: int
    elections: int
    values: str
    codec: Codec


class Held(NamedTuple):
    """A record of a copy: its value, and its batch's leader epoch and last offset."""

    value: str
    epoch: int
    last_offset: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0, 0, 0, 1, 3]),
        st.sampled_from([0, 0, 0, 1]),
        st.text("xy", min_size=1, max_size=4),
        st.sampled_from(CODECS),
    ),
    max_size=6,
)
PREFIXES = st.lists(st.builds(Step, st.just(0), st.just(0), st.text("xy", min_size=1, max_size=4), st.just(Codec.NONE)))


def write(directory: Path, steps: list[Step]) -> dict[int, Held]:
    """Write a copy of these batches; return its records by offset."""
    directory.mkdir(parents=True)
    offset, epoch, raw, records = 0, 0, b"", dict[int, Held]()
    for step in steps:
        offset, epoch = offset + step.gap, epoch + step.elections
        pairs = [(None, value) for value in step.values]
        raw += batch(offset, *pairs, codec=step.codec, partition_leader_epoch=epoch)
        last = offset + len(step.values) - 1
        records |= {offset + place: Held(value, epoch, last) for place, value in enumerate(step.values)}
        offset = last + 1
    (directory / f"{0:020}.log").write_bytes(raw)
    return records


def groups_of(copies: list[dict[int, Held]]) -> list[tuple[int, set[int]]]:
    """Return each record with its offset, and the numbers of the copies that have it."""
    found: dict[tuple[int, str], set[int]] = {}
    for number, records in enumerate(copies):
        for offset, held in records.items():
            found.setdefault((offset, held.value), set()).add(number)
    return sorted(((offset, has) for (offset, _), has in found.items()), key=lambda item: item[0])


def verdict(copies: list[dict[int, Held]]) -> str:
    ends = [max(records, default=-1) + 1 for records in copies]
    offsets = sorted(set().union(*copies))
    at = {offset: [records[offset] for records in copies if offset in records] for offset in offsets}
    if any(len({(held.value, held.epoch) for held in found}) > 1 for found in at.values()):
        return "diverged"
    if any(
        offset not in records and offset < end for records, end in zip(copies, ends, strict=True) for offset in offsets
    ):
        return "holes"
    return "ahead" if len(set(ends)) > 1 else "identical"


def divergence(copies: list[dict[int, Held]]) -> int | None:
    """Return the first offset with several records, or with one of several leaders."""
    for offset in sorted(set().union(*copies)):
        if len({records[offset][:2] for records in copies if offset in records}) > 1:
            return offset
    return None


def offsets_in(ranges: list[dict[str, int]]) -> set[int]:
    return {offset for each in ranges for offset in range(each["from"], each["to"] + 1)}


@given(PREFIXES, st.lists(STEPS, min_size=2, max_size=3))
def test_copies_differ_as_their_records_do(prefix: list[Step], rests: list[list[Step]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        sides = [f"side{number}" for number in range(len(rests))]
        copies = [write(Path(place) / side / TOPIC, prefix + rest) for side, rest in zip(sides, rests, strict=True)]
        ran = kseg(["diff", *sides, "--leader", sides[0], "--records", "-o", "json"], Path(place))
    *printed, found, _ = (json.loads(line) for line in ran.stdout.splitlines())
    assert (found["verdict"], ran.status) == (verdict(copies), int(verdict(copies) != "identical"))
    assert (found["divergence"] or {"offset": None})["offset"] == divergence(copies)
    groups, everyone = groups_of(copies), set(range(len(copies)))
    for number, copy in enumerate(found["copies"]):
        assert copy["missing"] == sum(number not in has for _, has in groups)
        assert only_in(found, copy["path"]) == {offset for offset, has in groups if has == {number}}
    assert sorted(each["offset"] for each in printed) == [offset for offset, has in groups if has != everyone]
    check_lost(found, printed, copies, groups)


def only_in(found: dict[str, Any], path: str) -> set[int]:
    return set().union(*(offsets_in(each["ranges"]) for each in found["onlyIn"] if each["path"] == path))


def check_lost(
    found: dict[str, Any],
    printed: list[dict[str, Any]],
    copies: list[dict[int, Held]],
    groups: list[tuple[int, set[int]]],
) -> None:
    """Check each follower's lost records: those that the leader lacks in batches that reach the offset, once."""
    lost_by = {}
    for number, truncated in enumerate(found["truncations"], 1):
        lost_by[number] = {
            offset
            for offset, has in groups
            if number in has and 0 not in has and copies[number][offset].last_offset >= truncated["toOffset"]
        }
        assert truncated["lostRecords"] == len(lost_by[number])
        assert set().union(*(offsets_in(each["ranges"]) for each in truncated["lostByEpoch"])) == lost_by[number]
    lost = [offset for offset, has in groups if any(number in has and offset in lost_by[number] for number in lost_by)]
    assert found["lostRecords"] == len(lost)
    assert sorted(each["offset"] for each in printed if each["isLost"]) == lost


KEYED = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", None]), st.booleans()), max_size=12)
"""Key and value of a record, and whether the other copy has it."""


@given(KEYED)
def test_compacted_copy_may_lack_what_the_cleaner_takes(records: list[tuple[str, str | None, bool]]) -> None:
    batches = [batch(offset, (key, value)) for offset, (key, value, _) in enumerate(records)]
    kept = [offset for offset, (*_, is_kept) in enumerate(records) if is_kept]
    end = max(kept, default=-1) + 1
    missing = {
        offset
        for offset, (key, value, is_kept) in enumerate(records)
        if not is_kept
        and (offset >= end or (value is not None and all(later != key for later, *_ in records[offset + 1 :])))
    }
    with tempfile.TemporaryDirectory() as place:
        for side, offsets in (("a", range(len(batches))), ("b", kept)):
            directory = Path(place) / side / "__consumer_offsets-0"
            directory.mkdir(parents=True)
            (directory / f"{0:020}.log").write_bytes(b"".join(batches[offset] for offset in offsets))
        ran = kseg(["diff", "a", "b", "-o", "json"], Path(place))
    found, _ = (json.loads(line) for line in ran.stdout.splitlines())
    assert only_in(found, "a/__consumer_offsets-0") == missing
    assert found["verdict"] == ("holes" if min(missing, default=end) < end else "ahead" if missing else "identical")
    assert found["copies"][1]["superseded"] == len(records) - len(kept) - len(missing)
