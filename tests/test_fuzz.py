"""The fuzzer's own parts: pieces are restored unchanged, cases are reproducible, finds are reduced."""

import json
import os
from pathlib import Path
from random import Random

import pytest

from kseg.kernel import KERNEL_VARIABLE
from tests import golden
from tests.fuzz.cases import EVERY, KINDS, LOG_NAME, Case, Series, kind_of
from tests.fuzz.minimize import minimize
from tests.fuzz.mutations import mutated_log
from tests.fuzz.pieces import Batch, Entry, cut, of_tokens, records_of, right, taken_apart, tokens_of, with_length
from tests.fuzz.properties import BrokenError, check_page, check_terminal
from tests.fuzz.worker import FOUND, Worker
from tests.loops import for_each


@pytest.fixture(autouse=True)
def _kernel_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KERNEL_VARIABLE, os.environ.get(KERNEL_VARIABLE, ""))


def golden_pieces() -> list[bytes]:
    return [piece for path in golden.files(".log") for piece in cut(path.read_bytes())]


def test_golden_batches_come_back_as_they_were() -> None:
    pieces = golden_pieces()
    apart = [(piece, taken_apart(piece)) for piece in pieces]
    plain = [(piece, each) for piece, each in apart if not (isinstance(each, Batch) and each.codec)]
    plain = [(piece, each) for piece, each in plain if not (isinstance(each, Entry) and each.inner)]
    assert len(plain) > 2000
    assert [piece for piece, each in plain if right(each.built()) != piece] == []


def test_golden_records_come_back_as_they_were() -> None:
    bodies = [each.body for each in map(taken_apart, golden_pieces()) if isinstance(each, Batch)]
    assert sum(map(len, map(records_of, bodies))) > 5000
    for body in bodies:
        assert b"".join(map(with_length, records_of(body))) == body
        assert all(of_tokens(tokens_of(record)) == record for record in records_of(body))


def test_most_changed_batches_are_valid() -> None:
    """Deep code isn't reached if a CRC is wrong."""
    random = Random(1)
    pieces = golden_pieces()
    logs = [cut(mutated_log(random, random.choices(pieces, k=5), pieces)) for _ in range(200)]
    batches = [piece for log in logs for piece in log if len(piece) > 26]
    assert sum(right(piece) == piece for piece in batches) > 0.85 * len(batches)


@for_each("kind", KINDS)
def test_case_is_the_same_again(kind: str) -> None:
    _, case = Series(3, kind).case(5)
    assert Series(3, kind).case(5)[1] == case
    assert Series(4, kind).case(5)[1] != case


def test_all_kinds_take_turns() -> None:
    assert {kind_of(number) for number in range(8 * EVERY)} == {*KINDS}


def test_control_characters_on_a_terminal_are_found(tmp_path: Path) -> None:
    _, case = Series(1, "names").case(0)
    case.write(tmp_path)
    arguments = ["dump", "--print-data-log", "broker"]
    check_terminal(arguments, tmp_path)
    with pytest.raises(BrokenError, match="terminal"):
        check_terminal([*arguments, "--raw"], tmp_path)


@for_each("element", ["<fuzz>", '<a href="" onfuzz="">', "<b onfuzz=1>"])
def test_markup_of_a_name_is_found(element: str) -> None:
    page = "<!DOCTYPE html><html><a href='&lt;fuzz onfuzz=1'>&quot;onfuzz=</a>"
    check_page(page.encode())
    with pytest.raises(BrokenError, match="markup"):
        check_page(f"{page}{element}".encode())


def test_find_is_made_small() -> None:
    pieces = golden_pieces()[:300]
    wanted = pieces[150]
    case = Case({LOG_NAME: b"".join(pieces), "other": b"text"}, is_partition=True)
    smaller = minimize(case, lambda case: wanted[30:40] in case.files.get(LOG_NAME, b""), 2000)
    assert smaller.size < 200


def test_worker_keeps_what_breaks_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.properties.STATUSES", (0, 1))
    monkeypatch.setattr("tests.fuzz.worker.ATTEMPTS", 30)  # the size of reduced finds is tested above
    worker = Worker(Series(1, "partition"), 1, tmp_path / "progress", tmp_path / "found")
    status = worker.work(float("inf"), 200_000)
    assert status == FOUND
    assert json.loads((tmp_path / "progress").read_text())["cases"] > 10
    assert [path.name[:8] for path in (tmp_path / "found").iterdir()] == ["status-2"]
