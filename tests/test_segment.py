"""The Python API: segments, batches and records, compared with the real tool's output."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kseg
from kseg.formats.codes import Codec, TimestampType
from tests import golden
from tests.golden import GoldenCase
from tests.kernel.made import BatchHeader, Message, Record, batch

SAMPLE = golden.ROOT / "docs" / "test-1-0" / "00000000000000203000.log"
NO_TIME, CREATE, APPEND = TimestampType.NO_TIMESTAMP_TYPE, TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME


def classes(case: str) -> Path:
    """Return a log made with Kafka's record classes: RELEASE/CASE."""
    (path,) = (golden.ROOT / "logs" / f"classes-{case}").glob("*.log")
    return path


def batches_of(path: Path) -> list[kseg.Batch]:
    with kseg.open_segment(path) as segment:
        return [item for item in segment.scan() if isinstance(item, kseg.Batch)]


def records_of(path: Path) -> list[kseg.Record]:
    with kseg.open_segment(path) as segment:
        return list(segment.records(control=None))


def write_segment(directory: Path, content: bytes) -> Path:
    path = directory / f"{0:020}.log"
    path.write_bytes(content)
    return path


# --- the real tool's lines, composed from the API's values
# ---------------------------------------------------------------

TIMESTAMP_TYPES = {NO_TIME: "NoTimestampType", CREATE: "CreateTime", APPEND: "LogAppendTime"}
NOT_PLAIN = ("--skip-record-metadata", "--max-bytes", "--key-decoder-class", "--value-decoder-class")


def is_deep(case: GoldenCase) -> bool:
    return not any(option in NOT_PLAIN for option in case.arguments) and len(case.files) == 1


DEEP_CASES = {
    case.files[0]: case
    for case in golden.cases("healthy", ("log",), "4.3.1")
    if is_deep(case) and "--deep-iteration" in case.arguments and "--print-data-log" not in case.arguments
}


def tools_lines(path: Path) -> Iterator[str]:
    """Yield the lines of the tool of 4.3.1 for the batches and records of a log, with --deep-iteration."""
    for one in batches_of(path):
        yield batch_line(one)
        for record in one.records():
            yield record_line(one, record)


def batch_line(one: kseg.Batch) -> str:
    shared = (
        f"position: {one.position} {TIMESTAMP_TYPES[one.timestamp_type]}: {one.max_timestamp} size: {one.size}"
        f" magic: {one.magic} compresscodec: {Codec(one.codec).name.lower()} crc: {one.crc}"
        f" isvalid: {str(one.is_valid).lower()}"
    )
    if one.is_legacy:
        return f"offset: {one.last_offset} {shared}"
    horizon = "OptionalLong.empty" if one.delete_horizon_ms is None else f"OptionalLong[{one.delete_horizon_ms}]"
    last_sequence = -1
    if one.base_sequence != -1:
        last_sequence = (one.base_sequence + one.last_offset - one.base_offset) % 2**31
    return (
        f"baseOffset: {one.base_offset} lastOffset: {one.last_offset} count: {one.count}"
        f" baseSequence: {one.base_sequence} lastSequence: {last_sequence} producerId: {one.producer_id}"
        f" producerEpoch: {one.producer_epoch} partitionLeaderEpoch: {one.partition_leader_epoch}"
        f" isTransactional: {str(one.is_transactional).lower()} isControl: {str(one.is_control).lower()}"
        f" deleteHorizonMs: {horizon} {shared}"
    )


def record_line(one: kseg.Batch, record: kseg.Record) -> str:
    line = (
        f"| offset: {record.offset} {TIMESTAMP_TYPES[record.timestamp_type]}: {record.timestamp}"
        f" keySize: {record.key_size} valueSize: {record.value_size}"
    )
    if one.is_legacy:
        return f"{line} isValid: {str(record.is_valid).lower()} crc: {record.crc}"
    return f"{line} sequence: {record.sequence} headerKeys: [{','.join(header.key for header in record.headers)}]"


def test_api_tells_what_the_real_tool_told_of_each_batch_and_record() -> None:
    different = []
    for name, case in DEEP_CASES.items():
        wanted = case.stdout().decode().split("\n")[2:]
        told = "".join(f"{line}\n" for line in tools_lines(golden.ROOT / name))
        # the rest of a control record's line is its own key and value
        if [without_control(line) for line in wanted] != told.split("\n"):
            different.append(name)
    assert len(DEEP_CASES) > 50
    assert different == []


def without_control(line: str) -> str:
    for word in (" endTxnMarker: ", " controlType: ", " LeaderChange: ", " Snapshot", " KRaft"):
        line = line.split(word)[0]
    return line


# --- the segment -----------------------------------------------------------------------------------------------------


def test_segment_tells_its_file() -> None:
    with kseg.open_segment(SAMPLE) as segment:
        assert (segment.path, segment.base_offset, segment.size) == (SAMPLE, 203000, SAMPLE.stat().st_size)


def test_file_that_is_not_there_can_not_be_opened(tmp_path: Path) -> None:
    with pytest.raises(kseg.OpenError, match="can't be opened"):
        kseg.open_segment(tmp_path / f"{0:020}.log")


def test_closed_segment_can_not_be_read() -> None:
    with kseg.open_segment(SAMPLE) as segment:
        pass
    with pytest.raises(kseg.OpenError):
        next(segment.records())


def test_records_are_those_of_the_batches() -> None:
    for path in golden.files(".log")[::4]:
        in_batches = [record for one in batches_of(path) for record in one.records()]
        assert in_batches == records_of(path), path


def test_reading_begins_at_any_batchs_position() -> None:
    fourth = batches_of(SAMPLE)[3]
    with kseg.open_segment(SAMPLE) as segment:
        assert next(segment.scan(fourth.position)) == fourth


def test_documentations_first_record_answers_what_a_message_answers() -> None:
    record = records_of(SAMPLE)[0]
    assert (record.offset, record.next_offset, record.position) == (203000, 203001, 0)
    assert (record.timestamp, record.timestamp_type) == (1581597478310, CREATE)
    assert (record.has_key, record.key, record.key_size) == (False, None, -1)
    assert (record.is_null, record.value, record.value_size) == (False, b"local test -------- 0", 21)
    assert record.is_valid


def test_batches_and_records_can_not_be_changed() -> None:
    one = batches_of(SAMPLE)[0]
    record = next(one.records())
    with pytest.raises(AttributeError):
        one.position = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        record.offset = 1  # type: ignore[misc]


# --- checksums -------------------------------------------------------------------------------------------------------


def test_computed_checksum_is_the_stored_one_of_every_healthy_batch() -> None:
    wrong = [
        (path, one.position)
        for path in golden.files(".log")
        for one in batches_of(path)
        if one.compute_crc() != one.crc or not one.is_valid
    ]
    assert wrong == []


@pytest.mark.parametrize("case", ["2.0.1/singles-v0", "3.9.1/singles-v1", "2.0.1/singles-v2"])
def test_computed_checksum_differs_from_the_stored_one_where_a_byte_was_changed(case: str, tmp_path: Path) -> None:
    healthy = batches_of(classes(case))[0]
    changed = healthy.raw[:-2] + bytes([healthy.raw[-2] ^ 1]) + healthy.raw[-1:]
    (one,) = batches_of(write_segment(tmp_path, changed))
    assert not one.is_valid
    assert one.crc == healthy.crc
    assert one.compute_crc() != one.crc
    assert [record.is_valid for record in one.records()] == [False]


def test_old_records_have_checksums_of_their_own(tmp_path: Path) -> None:
    records = records_of(classes("2.0.1/v1-gzip-create"))
    assert len({record.crc for record in records}) == len(records)


def test_new_records_have_their_batchs_checksum() -> None:
    one = batches_of(classes("4.3.1/v2-gzip-create"))[0]
    assert {record.crc for record in one.records()} == {one.crc}


# --- wrappers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["2.0.1/gaps-v0-gzip", "2.0.1/gaps-v1-gzip", "2.0.1/gaps-v1-lz4", "3.9.1/gaps-v0-snappy"]
)
def test_wrapper_is_a_batch_of_its_messages_with_its_gaps(case: str) -> None:
    for one in batches_of(classes(case)):
        offsets = [record.offset for record in one.records()]
        assert (one.base_offset, one.last_offset, one.count) == (offsets[0], offsets[-1], len(offsets))
        assert offsets == sorted(set(offsets))


def test_wrappers_append_time_is_the_time_of_its_messages() -> None:
    for one in batches_of(classes("4.3.1/append-in-place-v1")):
        assert one.timestamp_type == APPEND
        assert {(record.timestamp, record.timestamp_type) for record in one.records()} == {(one.max_timestamp, APPEND)}


def test_batchs_append_time_is_the_time_of_its_records() -> None:
    for one in batches_of(classes("4.3.1/v2-gzip-append")):
        assert {(record.timestamp, record.timestamp_type) for record in one.records()} == {(one.max_timestamp, APPEND)}


def test_oldest_messages_have_no_time() -> None:
    records = records_of(classes("2.0.1/v0-gzip"))
    assert {(record.timestamp, record.timestamp_type) for record in records} == {(-1, NO_TIME)}


def test_relative_offsets_stand_as_they_are_where_the_wrappers_is_0(tmp_path: Path) -> None:
    import gzip

    inner = b"".join(Message(value=b"v", offset=offset).encode() for offset in range(3))
    wrapper = Message(value=gzip.compress(inner), offset=0, attributes=1).encode()
    assert [record.offset for record in records_of(write_segment(tmp_path, wrapper))] == [0, 1, 2]


@pytest.mark.parametrize(("magic", "offsets"), [(0, [0, 1, 4]), (1, [96, 97, 100])])
def test_inner_offsets_are_absolute_in_v0_and_relative_in_v1(magic: int, offsets: list[int], tmp_path: Path) -> None:
    import gzip

    inner = b"".join(Message(value=b"v", offset=offset, magic=magic).encode() for offset in (0, 1, 4))
    wrapper = Message(value=gzip.compress(inner), offset=100, magic=magic, attributes=1).encode()
    assert [record.offset for record in records_of(write_segment(tmp_path, wrapper))] == offsets


# --- batches ---------------------------------------------------------------------------------------------------------


def test_empty_batches_keep_their_offsets() -> None:
    empty = [one for one in batches_of(classes("4.3.1/empty-batches")) if one.count == 0]
    assert len(empty) >= 3
    assert all(one.size == 61 and list(one.records()) == [] for one in empty)
    assert [(one.base_offset, one.last_offset, one.next_offset) for one in empty[:2]] == [(3, 12, 13), (13, 13, 14)]


def test_delete_horizon_is_a_time_where_the_batch_has_one() -> None:
    horizons = [one.delete_horizon_ms for one in batches_of(classes("4.3.1/horizon"))]
    assert horizons[:2] == [1609003557434, 1609003557438]
    assert all(one.delete_horizon_ms is None for one in batches_of(SAMPLE))


def test_batches_of_a_transaction_and_its_marker_are_reported_apart() -> None:
    kinds = {(one.is_transactional, one.is_control) for one in batches_of(classes("4.3.1/transactions"))}
    assert (True, False) in kinds
    assert (True, True) in kinds


def test_sequences_go_on_at_0_behind_the_largest() -> None:
    sequences = [record.sequence for record in records_of(classes("4.3.1/sequence-wrap"))]
    at = sequences.index(2**31 - 1)
    assert sequences[at + 1] == 0


def test_formats_mix_in_a_file() -> None:
    assert {one.magic for one in batches_of(classes("3.9.1/mixed"))} == {0, 1, 2}


def test_what_a_format_does_not_have_is_minus_one() -> None:
    one = batches_of(classes("3.9.1/singles-v1"))[0]
    assert (one.partition_leader_epoch, one.producer_id, one.producer_epoch, one.base_sequence) == (-1, -1, -1, -1)
    assert (one.is_transactional, one.is_control, one.delete_horizon_ms) == (False, False, None)


# --- nulls and headers -----------------------------------------------------------------------------------------------

NULLS = [(key, value) for key in (None, b"", b"x") for value in (None, b"", b"x")]


@pytest.mark.parametrize("case", ["v0-none", "v0-gzip", "v1-none", "v1-gzip", "v2-none", "v2-gzip"])
def test_null_is_reported_from_empty_in_every_format(case: str) -> None:
    records = records_of(classes(f"3.9.1/nulls-{case}"))
    assert [(record.key, record.value) for record in records] == NULLS
    assert [(record.has_key, record.is_null) for record in records] == [(k is not None, v is None) for k, v in NULLS]
    assert [(record.key_size, record.value_size) for record in records] == [
        (-1 if key is None else len(key), -1 if value is None else len(value)) for key, value in NULLS
    ]


def test_headers_keep_order_doubles_nulls_and_empties(tmp_path: Path) -> None:
    headers = [(b"same", b"1"), (b"", b""), (b"same", None), ("日本".encode(), b"\xff\x00")]
    content = batch(BatchHeader(), [Record(value=b"v", headers=headers), Record(value=b"w", offset_delta=1)])
    first, second = records_of(write_segment(tmp_path, content))
    assert first.headers == (("same", b"1"), ("", b""), ("same", None), ("日本", b"\xff\x00"))
    assert second.headers == ()


def test_every_record_in_front_of_damage_is_given(tmp_path: Path) -> None:
    records = [Record(value=b"first"), Record(value=b"second", offset_delta=1)]
    body = b"".join(record.encode() for record in records)
    (one,) = batches_of(write_segment(tmp_path, batch(BatchHeader(count=3), body=body + b"\x7e")))
    assert [record.value for record in one.records(on_damage="skip")] == [b"first", b"second"]
    assert one.problem() is not None


def test_what_only_a_caller_can_do_is_not_in_what_commands_print(tmp_path: Path) -> None:
    (one,) = batches_of(write_segment(tmp_path, batch(BatchHeader(count=3), body=b"\x7e")))
    with pytest.raises(kseg.DamagedError) as caught:
        list(one.records())
    assert str(caught.value).endswith('on_damage="skip" continues after it')
    assert "on_damage" not in caught.value.one_line()
    assert str(caught.value).startswith(caught.value.one_line())


# --- damage ----------------------------------------------------------------------------------------------------------

IN_BATCHES = {
    "066-codec-5": "bad-codec",
    "075-codec-other": "bad-body",
    "168-body-truncated": "bad-body",
    "106-count-minus-one": "bad-count",
    "121-record-length-negative": "bad-record",
}
BETWEEN_BATCHES = {"000-torn-header": "torn-tail", "055-magic-3": "bad-magic", "199-hole-zeros": "bad-length"}


def damaged_segment(case: str) -> Path:
    (path,) = (golden.ROOT / "damaged" / case).glob("*.log")
    return path


@pytest.mark.parametrize("case", [*IN_BATCHES, *BETWEEN_BATCHES])
def test_records_of_a_segment_end_at_damage_unless_it_is_to_be_skipped(case: str) -> None:
    path = damaged_segment(case)
    damages: list[kseg.Damage] = []
    given: list[kseg.Record] = []
    with kseg.open_segment(path) as segment:
        skipped = list(segment.records(on_damage="skip"))
        assert list(segment.records(on_damage=damages.append)) == skipped
        with pytest.raises(kseg.DamagedError) as raised:
            given.extend(segment.records())
    assert (IN_BATCHES | BETWEEN_BATCHES)[case] in {damage.kind for damage in damages}
    assert (raised.value.path, raised.value.position) == (str(path), damages[0].position)
    assert str(raised.value).startswith(f"{path}: at position {damages[0].position}: {damages[0].kind}: ")
    assert "\n" not in str(raised.value)
    assert given == skipped[: len(given)]


@pytest.mark.parametrize("case", IN_BATCHES)
def test_records_of_a_batch_end_at_damage_unless_it_is_to_be_skipped(case: str) -> None:
    wrong = [one for one in batches_of(damaged_segment(case)) if one.problem() is not None]
    assert wrong
    for one in wrong:
        damages: list[kseg.Damage] = []
        readable = list(one.records(on_damage="skip"))
        assert list(one.records(on_damage=damages.append)) == readable
        assert [(damage.kind, damage.position) for damage in damages] == [(IN_BATCHES[case], one.position)]
        with pytest.raises(kseg.DamagedError, match=f"at position {one.position}: {IN_BATCHES[case]}"):
            list(one.records())
        with pytest.raises(kseg.DamagedError):
            list(one)


def test_damage_is_reported_between_the_records_around_it() -> None:
    met: list[kseg.Record | kseg.Damage] = []
    with kseg.open_segment(damaged_segment("066-codec-5")) as segment:
        for record in segment.records(on_damage=met.append):
            met.append(record)
    positions = [each.position for each in met]
    assert positions == sorted(positions)
    assert any(isinstance(each, kseg.Damage) for each in met[1:-1])


def test_records_and_damages_of_a_segment_come_in_the_order_of_its_batches() -> None:
    for path in sorted((golden.ROOT / "damaged").glob("*/*.log")):
        met: list[kseg.Record | kseg.Damage] = []
        of_batches: list[kseg.Record | kseg.Damage] = []
        with kseg.open_segment(path) as segment:
            for record in segment.records(control=None, on_damage=met.append):
                met.append(record)
            for item in segment.scan():
                if not isinstance(item, kseg.Batch):
                    of_batches += [item] if item.kind != "zero-tail" else []
                elif item.is_valid:
                    for record in item.records(on_damage=of_batches.append):
                        of_batches.append(record)
        assert [each for each in met if not is_wrong_checksum(each)] == [
            each for each in of_batches if not is_wrong_checksum(each)
        ], path


def is_wrong_checksum(met: kseg.Record | kseg.Damage) -> bool:
    if isinstance(met, kseg.Record):
        return not met.is_valid
    return met.kind == "bad-crc" or met.detail.startswith("the CRC of the message")


@pytest.mark.parametrize("case", ["024-crc-zero", "082-flip-crc", "021-flip-records"])
def test_a_batch_whose_checksum_is_wrong_is_damage(case: str) -> None:
    path = damaged_segment(case)
    wrong = [one for one in batches_of(path) if not one.is_valid]
    damages: list[kseg.Damage] = []
    with kseg.open_segment(path) as segment:
        given = list(segment.records(on_damage=damages.append))
        assert [damage.kind for damage in damages] == ["bad-crc"] * len(damages)
        assert {one.position for one in wrong} <= {damage.position for damage in damages}
        assert all(record.is_valid for record in given)
        assert [one.position for one in segment.batches(on_damage="skip")] == [
            one.position for one in batches_of(path) if one.is_valid
        ]
        for read in (segment.records, segment.batches, segment.to_arrow):
            with pytest.raises(kseg.DamagedError, match=f"at position {damages[0].position}: bad-crc"):
                list(read())


@pytest.mark.parametrize("case", ["012-zero-tail", "013-zero-tail", "014-zero-tail"])
def test_zeros_of_a_preallocated_file_are_no_damage(case: str) -> None:
    assert records_of(damaged_segment(case))


def test_segments_of_every_damaged_file_give_all_their_records_or_raise() -> None:
    for path in sorted((golden.ROOT / "damaged").glob("*/*.log")):
        damages: list[kseg.Damage] = []
        with kseg.open_segment(path) as segment:
            skipped = list(segment.records(on_damage=damages.append))
            if damages:
                with pytest.raises(kseg.DamagedError):
                    list(segment.records())
            else:
                assert list(segment.records()) == skipped
        problems = [one for one in batches_of(path) if not one.is_valid or one.problem() is not None]
        in_batches = {damage.position for damage in damages if damage.size == 0}
        assert in_batches <= {one.position for one in problems}, path


def test_other_words_for_damage_are_refused() -> None:
    with kseg.open_segment(SAMPLE) as segment:
        with pytest.raises(kseg.UsageError, match="on_damage is 'ignore'"):
            segment.records(on_damage="ignore")  # type: ignore[arg-type]
        with pytest.raises(kseg.UsageError, match="on_damage is 'ignore'"):
            next(segment.batches()).records(on_damage="ignore")  # type: ignore[arg-type]


def test_batch_shows_itself_in_a_line() -> None:
    shown = [repr(one) for path in golden.files(".log") for one in batches_of(path)]
    assert not any("\n" in each or len(each) > 160 for each in shown)
    assert repr(batches_of(SAMPLE)[0]) == (
        "Batch(position=0, size=2987, magic=2, base_offset=203000, last_offset=203099, count=100, codec=none,"
        " is_valid=True)"
    )
    wrapper = batches_of(classes("2.0.1/v1-gzip-create"))[0]
    assert "codec=gzip" in repr(wrapper)
    strange = next(one for one in batches_of(damaged_segment("066-codec-5")) if one.codec == 5)
    assert "codec=5, is_valid=True)" in repr(strange)
