"""Where orders meet inside a segment: damage that only one of them could see whole."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kseg.export.order import Result


def join_seams(results: Iterable[Result]) -> None:
    """Sets right what orders say of damage at their start.

    Where an index was wrong, an order began in the middle of a batch that the order before has read to its end: that is
    no damage. Where it is one, the offsets lost begin where the order before ended.
    """
    readers: dict[str, list[tuple[int, int, Result]]] = defaultdict(list)
    results = list(results)
    for result in results:
        for source in result["sources"]:
            readers[source["path"]].append((source["start"], source["end"], result))
    for result in results:
        losses = result["tally"]["losses"]
        result["tally"]["losses"] = [loss for loss in losses if not _is_read_by_another(loss, readers[loss["segment"]])]
        for loss in losses:
            if loss["first"] is None:
                loss["first"] = _offset_before(loss["position"], readers[loss["segment"]])


def _is_read_by_another(loss: dict[str, Any], readers: list[tuple[int, int, Result]]) -> bool:
    """Whether the damage begins where an order does, and the order before has read the same bytes."""
    start, end = loss["position"], loss["position"] + loss["size"]
    if loss["size"] == 0 or all(first != start for first, _, _ in readers):
        return False
    return any(first < start < last and end <= last for first, last, _ in readers)


def _offset_before(position: int, readers: list[tuple[int, int, Result]]) -> int | None:
    return next((result["tally"]["next_offset"] for _, end, result in readers if end == position), None)
