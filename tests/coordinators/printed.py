"""Records of internal topics as the real tool printed them, 3.8 and later: JSON for key and payload."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests import golden
from tests.golden import GoldenCase

PRINTS_JSON = ("3.9.1", "4.1.0", "4.3.1", "4.4.0")
RECORD = re.compile(r"^\| offset: (\d+) .*? headerKeys: \[.*?\](?: key: (\{.*\}))? payload: (.*)$")
OLD_RECORD = re.compile(r"^\| offset: (\d+) .*?(?: key: (\{.*\}))? payload: (.*)$")


class PrintedRecord(NamedTuple):
    """A record; `value` None for a tombstone."""

    offset: int
    is_transactional: bool
    key: Any
    value: Any


def printed_records(case: GoldenCase) -> Iterator[PrintedRecord]:
    """Yield the records of a case, in the order of the file."""
    is_transactional = False
    for line in case.stdout().decode().splitlines():
        if line.startswith("baseOffset:"):
            is_transactional = "isTransactional: true" in line
        elif match := RECORD.match(line) or OLD_RECORD.match(line):
            key = None if match[2] is None else json.loads(match[2])
            value = None if match[3] == "<DELETE>" else json.loads(match[3])
            yield PrintedRecord(int(match[1]), is_transactional, key, value)


def cases_of(option: str, part_of_path: str) -> list[GoldenCase]:
    """Return the cases that print one complete file of a topic by a decoder."""
    return [
        case
        for printer in PRINTS_JSON
        for case in golden.cases("healthy", printer=printer)
        if case.arguments[:2] == (option, "--files") and part_of_path in case.files[0]
    ]
