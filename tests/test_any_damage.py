"""Any damage: a complete account of every byte of a file, and no other batch lost."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import kseg
from kseg.formats.file_names import parse_file_name
from tests.damaged_logs import (
    COMPRESSED,
    MIXED,
    NAME,
    RECORDS,
    SINGLES,
    Log,
    dump_items,
    intact,
    log,
    scan_items,
    scanned_content,
)
from tests.kernel.made import BatchHeader, Message, batch

MANY = settings(max_examples=50)


SMALL = Log(
    batch(BatchHeader(1000), RECORDS)
    + Message(value=b"old", offset=1003, magic=0).encode()
    + batch(BatchHeader(1004), RECORDS[:2])
    + Message(key=b"k", value=b"newer", offset=1006, magic=1).encode()
    + batch(BatchHeader(1007), RECORDS[:1])
)


def untouched_batches(whole: Log, first: int, last: int, shift: int = 0) -> set[tuple[int, int]]:
    """Return the batches outside bytes first … last - 1 of a log; those after them are moved by `shift` bytes."""
    extents = [whole.extent(number) for number in range(len(whole.starts) - 1)]
    before = {(start, size) for start, size in extents if start + size <= first}
    return before | {(start + shift, size) for start, size in extents if start >= last}


@pytest.mark.usefixtures("kernel")
def test_no_flipped_byte_costs_another_batch(tmp_path: Path) -> None:
    for at in range(len(SMALL.content)):
        content = bytearray(SMALL.content)
        content[at] ^= (0x01, 0x80, 0xFF)[at % 3]
        assert untouched_batches(SMALL, at, at + 1) <= intact(scanned_content(bytes(content), tmp_path)), f"byte {at}"


@pytest.mark.usefixtures("kernel")
def test_no_cut_costs_a_batch_in_front_of_it(tmp_path: Path) -> None:
    for end in range(len(SMALL.content)):
        assert untouched_batches(SMALL, end, len(SMALL.content)) == intact(
            scanned_content(SMALL.content[:end], tmp_path)
        )


@pytest.mark.usefixtures("kernel")
def test_no_inserted_byte_costs_another_batch(tmp_path: Path) -> None:
    for at in range(len(SMALL.content) + 1):
        new = (b"\0", b"\xff", b"\x02" * 30)[at % 3]
        content = SMALL.content[:at] + new + SMALL.content[at:]
        assert untouched_batches(SMALL, at, at, len(new)) <= intact(scanned_content(content, tmp_path)), f"at {at}"


@pytest.mark.usefixtures("kernel")
def test_no_missing_byte_costs_more_than_its_batch(tmp_path: Path) -> None:
    for at in range(len(SMALL.content)):
        items = scanned_content(SMALL.content[:at] + SMALL.content[at + 1 :], tmp_path)
        assert sum(isinstance(item, kseg.Batch) and item.is_valid for item in items) >= len(SMALL.starts) - 2, (
            f"at {at}"
        )


@pytest.mark.usefixtures("kernel")
def test_flipped_length_that_ends_where_another_batch_begins_costs_none_between(tmp_path: Path) -> None:
    whole = log(SINGLES[2])
    (_, first), (second_at, second) = whole.extent(0), whole.extent(1)
    content = whole.change_bytes(0, 8, (first + second - 12).to_bytes(4, "big"))
    assert (second_at, second) in intact(scanned_content(content, tmp_path))


@pytest.mark.usefixtures("kernel")
def test_flipped_length_that_ends_at_the_files_end_costs_no_batch_behind(tmp_path: Path) -> None:
    whole = log(SINGLES[2])
    content = whole.change_bytes(20, 8, (len(whole.content) - whole.starts[20] - 12).to_bytes(4, "big"))
    assert untouched_batches(whole, whole.starts[20], whole.starts[21]) <= intact(scanned_content(content, tmp_path))


Edit = Callable[[bytes], bytes]
BYTES = st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 200).map(bytes))
SHARES = st.floats(0, 1, exclude_max=True)


def overwrite(share: float, new: bytes) -> Edit:
    return lambda content: content[: int(share * len(content))] + new + content[int(share * len(content)) + len(new) :]


def insert(share: float, new: bytes) -> Edit:
    return lambda content: content[: int(share * len(content))] + new + content[int(share * len(content)) :]


def omit(share: float, size: int) -> Edit:
    return lambda content: content[: int(share * len(content))] + content[int(share * len(content)) + size :]


def cut(share: float) -> Edit:
    return lambda content: content[: int(share * len(content))]


EDITS = st.lists(
    st.one_of(
        st.builds(overwrite, SHARES, BYTES),
        st.builds(insert, SHARES, BYTES),
        st.builds(omit, SHARES, st.integers(1, 300)),
        st.builds(cut, SHARES),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.usefixtures("kernel")
@MANY
@given(content=st.one_of(st.binary(max_size=200), st.integers(0, 100).map(bytes)))
@example(content=b"\0" * 8 + b"\0\0\0\x0e" + b"\0" * 14)
def test_any_bytes_are_accounted_for(content: bytes) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / NAME
        path.write_bytes(content)
        assert dump_items(path).status in (0, 1)
        scan_items(path)


@pytest.mark.usefixtures("kernel")
@MANY
@given(edits=EDITS)
def test_any_damage_is_accounted_for(edits: list[Edit]) -> None:
    content, name = log(MIXED).content, log(MIXED).name
    for edit in edits:
        content = edit(content)
    with TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(content)
        assert dump_items(path).status in (0, 1)
        items = scan_items(path)
        with kseg.open_segment(path) as segment:
            records = list(segment.records(control=None, on_damage="skip"))
    batches = [item for item in items if isinstance(item, kseg.Batch) and item.is_valid]
    assert [record for one in batches for record in one.records(on_damage="skip")] == records


@pytest.mark.usefixtures("kernel")
@MANY
@given(share=SHARES, new=BYTES)
def test_damage_of_one_place_costs_no_other_batch(share: float, new: bytes) -> None:
    whole = log(MIXED)
    at = int(share * len(whole.content))
    with TemporaryDirectory() as directory:
        found = scanned_content(overwrite(share, new)(whole.content)[: len(whole.content)], Path(directory), whole.name)
    assert untouched_batches(whole, at, at + len(new)) <= intact(found)


def test_names_of_golden_files_give_the_offsets_that_the_search_relies_on() -> None:
    logs = [log(case) for case in (*SINGLES, *COMPRESSED)]
    assert all((parse_file_name(one.name).base_offset or 0) <= one.offset(0) for one in logs)
