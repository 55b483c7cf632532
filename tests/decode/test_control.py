"""JSON of KRaft's control records against what the real tools of 3.3 to 4.3 printed."""

import re
from collections.abc import Callable

import pytest

from kseg.decode.decoded import DecodeError
from kseg.decode.internal_records import (
    kraft_version_json,
    kraft_voters_json,
    leader_change_json,
    snapshot_footer_json,
    snapshot_header_json,
)
from tests import golden
from tests.decode.records import records

TEXTS: dict[int, tuple[bytes, Callable[[bytes], str]]] = {
    2: (b" LeaderChange: ", leader_change_json),
    3: (b" SnapshotHeader ", snapshot_header_json),
    4: (b" SnapshotFooter ", snapshot_footer_json),
    5: (b" KRaftVersion ", kraft_version_json),
    6: (b" KRaftVoters ", kraft_voters_json),
}
SINCE = {2: (4, 1), 3: (3, 3), 4: (3, 3), 5: (3, 8), 6: (3, 8)}


@pytest.mark.parametrize("printer", ["3.3.2", "3.9.1", "4.1.0", "4.3.1"])
def test_json_is_the_real_tools(printer: str) -> None:
    seen = set()
    for case in golden.cases("healthy", printer=printer, kinds=("log", "log-decoded", "checkpoint")):
        stdout = case.stdout()
        if not any(word in stdout for word, _ in TEXTS.values()):
            continue
        for offset, number, value in control_records(case.files[0]):
            word, text = TEXTS[number]
            line = re.search(rb"(?m)^\| offset: %d .*?%b(.*)$" % (offset, word), stdout)
            if line:
                seen.add(number)
                assert line[1].decode() == text(value), str(case)
    assert seen >= {number for number, since in SINCE.items() if since <= tuple(map(int, printer.split(".")))}


def control_records(name: str) -> list[tuple[int, int, bytes]]:
    """Offset, type and value of a log's control records that KRaft writes."""
    found = []
    for record in records(golden.ROOT / name):
        if record.is_control and record.key and record.value and record.key[3] in TEXTS:
            found.append((record.offset, record.key[3], record.value))
    return found


def test_newer_version_is_read_as_the_first_and_printed_with_defaults() -> None:
    value = bytes.fromhex("0001 00000007 02 00000007 00 01 00")
    assert leader_change_json(value) == (
        '{"version":1,"leaderId":7,"voters":[{"voterId":7,"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}],'
        '"grantingVoters":[]}'
    )


@pytest.mark.parametrize("text", [text for _, text in TEXTS.values()])
def test_value_that_is_cut_kills_the_real_tool(text: Callable[[bytes], str]) -> None:
    with pytest.raises(DecodeError):
        text(b"\0")
