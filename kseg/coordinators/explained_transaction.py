"""One transaction by its producer or transactional id, and its evidence, for `kseg txns --explain`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kseg.coordinators.transactions import Coordinators, Judge
from kseg.errors import UsageError
from kseg.kernel.contract import MOST
from kseg.log.partition import PartitionLog
from kseg.log.transaction_evidence import Clue, ClueKind, clues_of, outcome_text
from kseg.log.transactions import (
    TOPIC,
    CoordinatorTransaction,
    PartitionTransactions,
    Transaction,
    coordinator_history,
)
from kseg.times import time_text


class _WantedTransaction(NamedTuple):
    """The wanted transaction's producer, and an offset of it.

    None for the latest. states: of its coordinator, in order.
    """

    producer_ids: frozenset[int]
    offset: int | None
    states: tuple[CoordinatorTransaction, ...]


def explain_transaction(
    places: Sequence[PartitionLog], coordinators: Coordinators, judge: Judge, wanted: str
) -> Iterator[Clue]:
    """Yield the evidence of a transaction in each partition that has it: the log, the coordinator, the outcome.

    Args:
        places: the available partitions.
        coordinators: the states of transactional ids.
        judge: decides whether an open transaction hangs.
        wanted: a producer id or a transactional id; with `@OFFSET`, the transaction that has this offset; without it,
            the latest of each partition.

    Raises:
        UsageError: if there is no such transaction.
        OpenError: if a log can't be opened.
    """
    coordinators.read()
    known = _resolve(coordinators, wanted)
    has_any = False
    for place in places:
        transaction = _choose_transaction(place, known)
        if transaction is None:
            continue
        has_any = True
        yield from clues_of(place, transaction)
        yield from _coordinator_clues(known.states, transaction)
        (verdict,) = judge.verdicts(place, [transaction]).values() if transaction.is_open else (None,)
        outcome = outcome_text(transaction) + (f"; {verdict.reason}" if verdict is not None else "")
        yield Clue(place.topic, place.partition, ClueKind.OUTCOME, None, None, None, outcome)
    if not has_any:
        raise UsageError(
            f"--explain {wanted}: no such transaction; run `kseg txns` to list producers and first offsets"
        )


def _resolve(coordinators: Coordinators, wanted: str) -> _WantedTransaction:
    """Parse the wanted transaction; `@OFFSET` counts only if the complete text isn't a transactional id.

    Such an id may have any characters.
    """
    name, _, offset = wanted.rpartition("@")
    tries = [(wanted, None), (name, int(offset))] if name and _is_number(offset) else [(wanted, None)]
    for given, at in tries:
        states = tuple(_states(coordinators, given))
        if states or _is_number(given):
            ids = {state.producer_id for state in states if state.transactional_id == given}
            return _WantedTransaction(frozenset(ids or {int(given)}), at, states)
    raise UsageError(
        f"--explain {wanted}: this isn't a known transactional id or a producer id; specify all log directories"
    )


def _is_number(text: str) -> bool:
    """Return True if it may be a producer id or an offset: 64 bits are up to 19 digits."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(MOST))


def _states(coordinators: Coordinators, given: str) -> Iterator[CoordinatorTransaction]:
    for partition in coordinators.partitions:
        yield from coordinator_history(
            partition, lambda state: given in (state.transactional_id, str(state.producer_id))
        )


def _choose_transaction(place: PartitionLog, wanted: _WantedTransaction) -> Transaction | None:
    chosen = None
    for each in PartitionTransactions(place).transactions():
        if each.producer_id in wanted.producer_ids and _has(each, wanted.offset):
            chosen = each
    return chosen


def _has(transaction: Transaction, offset: int | None) -> bool:
    if offset is None:
        return True
    ends = [end for end in (transaction.last_offset, transaction.end_offset) if end is not None]
    first = transaction.first_offset
    return (offset if first is None else first) <= offset <= max(ends, default=offset if transaction.is_open else -1)


def _coordinator_clues(states: Sequence[CoordinatorTransaction], transaction: Transaction) -> Iterator[Clue]:
    """Yield the coordinator's states of the transaction: those with its beginning, the last ones before its marker."""
    end = transaction.end_timestamp
    begun = [state.start_timestamp for state in states if end is None or state.start_timestamp <= end]
    for state in states:
        if state.start_timestamp == max(begun, default=None):
            partitions = ", ".join(f"{topic}-{number}" for topic, number in state.partitions)
            time = time_text(state.last_update_timestamp, none="no time")
            text = (
                f"{state.transactional_id} is {state.state} at {time}, producer"
                f" {state.producer_id}, epoch {state.producer_epoch}{f', in {partitions}' if partitions else ''}"
            )
            where = f"{TOPIC}-{state.coordinator_partition}"
            yield Clue(
                transaction.topic, transaction.partition, ClueKind.COORDINATOR, state.record_offset, where, None, text
            )
