"""Sentences about the forecast of a start, for people and for JSON."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kseg.errors import plural
from kseg.findings.at_start import AtStart, refusal
from kseg.verify.start_effects import Lost, NodeStart, StartForecast, most_records
from kseg.verify.stops import Stop

_STOPS = {
    Stop.CLEAN: "stopped cleanly (.kafka_cleanshutdown)",
    Stop.KILLED: "killed (no .kafka_cleanshutdown)",
    Stop.UNKNOWN: "the kind of stop doesn't matter (no meta.properties)",
}


def forecast_sentence(forecast: StartForecast, *, is_all: bool) -> str:
    """Return the end of a start.

    If several nodes don't start well, the gravest end is first, then their number. is_all: whether everything was read.
    """
    nodes = forecast.nodes
    worst = nodes[0]
    is_known = (is_all and forecast.is_of_all) or worst.consequence is AtStart.REFUSES
    bound = "" if is_known else ", as far as kseg read"
    if len(nodes) == 1:
        return _close_sentence(f"A broker {_end(worst)}{bound}")
    if all(each.is_well for each in nodes):
        return f"{'Both' if len(nodes) == 2 else f'All {len(nodes)}'} nodes would start without problems{bound}."
    bad = [each for each in nodes if not each.is_well]
    told = " ".join(_close_sentence(f"{_name(each)} {_end(each)}") for each in bad)
    well = sum(each.consequence is AtStart.WELL for each in nodes)
    return f"{told} {well} of {plural(len(nodes), 'node')} would start without problems{bound}."


def _close_sentence(sentence: str) -> str:
    """Return a sentence with its full stop, which a broker's truncated words don't need."""
    return sentence if sentence.endswith("…") else f"{sentence}."


def _name(node: NodeStart) -> str:
    """Return the id of a node and its first log directory."""
    first = node.log_dirs[0]
    return f"The node of {first.path}" if first.identity.broker is None else f"Node {first.identity.broker}"


def _end(node: NodeStart) -> str:
    harms, lost = list(_harms(node)), _all(list(_lost_before(node)))
    if not (node.refusals or node.is_empty or harms):
        return f"would start without problems, but {lost}" if lost else "would start without problems"
    after = f"; {lost}" if lost else ""
    if node.refusals:
        first, *others = node.refusals.values()
        said = refusal(first) or first.kind.meaning.rstrip(".")
        too = f"; {plural(len(others), 'more finding')} would also stop it" if others else ""
        return f"doesn't start: {said}{too}" + (f"; when it does, it {_all(harms)}" if harms else "") + after
    if node.is_empty:
        return f"starts as an empty cluster if it is a controller: it renames all partitions to `-stray`{after}"
    return f"starts, but {_all(harms)}{after}"


def _lost_before(node: NodeStart) -> Iterator[str]:
    """Records that are lost whatever a start does."""
    for finding_id, places in node.lost_before.items():
        what = f"{_records(places)} of {plural(len(places), 'partition')}"
        is_of_end = finding_id == "checkpoint-beyond-end"
        yield f"{what} were already lost" if is_of_end else f"the cluster abandoned {what}"


def _all(harms: Sequence[str]) -> str:
    return " and ".join((", ".join(harms[:-1]), harms[-1])) if len(harms) > 1 else "".join(harms)


def _harms(node: NodeStart) -> Iterator[str]:
    """Yield the consequences for records."""
    for consequence in sorted(node.harmed, key=lambda each: each.rank):
        yield _harm(node, consequence)


def _harm(node: NodeStart, consequence: AtStart) -> str:
    partitions = plural(len(node.harmed[consequence]), "partition")
    match consequence:
        case AtStart.LEADERLESS:
            return f"leads few partitions or none ({partitions} with the id of another topic)"
        case AtStart.HIDES:
            return f"renames {partitions} to `-stray` and creates empty ones instead"
        case AtStart.LOSES:
            return f"loses {_records(node.harmed[consequence])} of {partitions}"
        case AtStart.UNSERVED:
            return f"keeps {_records(node.harmed[consequence])} of {partitions} that consumers can't read"
        case AtStart.NO_GROUPS:
            return f"doesn't load the groups in {partitions} of __consumer_offsets"
        case _:
            return f"serves wrong records from {partitions}"


def _records(places: Mapping[Path, Sequence[Lost]]) -> str:
    most = most_records(places)
    return "records" if most is None else f"up to {plural(most, 'record')}"


def assumptions(forecast: StartForecast) -> str:
    """Return assumptions of the sentence that the given directories don't confirm."""
    stops = {stop for node in forecast.nodes for stop in node.stops}
    if not stops:
        return "the broker knows these partitions, and its other disks have no problems"
    stop = (
        _STOPS[next(iter(stops))]
        if len(stops) == 1
        else "stopped cleanly if .kafka_cleanshutdown exists, otherwise killed"
    )
    known = "" if forecast.has_metadata else "; the cluster has these partitions"
    return f"{stop}; the same release and settings; no damage in other log directories{known}"


def forecast_fields(forecast: StartForecast, *, is_all: bool) -> dict[str, object]:
    """Return fields of a summary: the gravest end, the sentence, and its assumptions."""
    return {
        "start": str(forecast.consequence),
        "startSentence": forecast_sentence(forecast, is_all=is_all),
        "startAssumed": assumptions(forecast),
    }
