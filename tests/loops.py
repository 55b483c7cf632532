"""Loops over many cases within few test items: every case runs, and a failure names each failed case.

A case that skips itself, or expects to fail, is a failure: it would be hidden among the others.
"""

import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

SHOWN = 10
"""Most failures that are shown; the others are counted."""
WIDTH = 100
"""Most characters of a case's name that are shown."""
TAKES_ALL = os.environ.get("ALL_CASES") == "yes"
"""True if all cases run: `make test-exhaustive`."""
Case = TypeVar("Case")


def some(cases: Iterable[Case], every: int) -> list[Case]:
    """Return one of every `every` cases, for slow tests: `make test` runs these, `make test-exhaustive` all."""
    return list(cases)[:: 1 if TAKES_ALL else every]


def some_of_each(
    cases: Iterable[Case], kind: Callable[[Case], object], every: int = sys.maxsize, turn: int = 0
) -> list[Case]:
    """Return one of every `every` cases of each kind, at least one per kind; different ones with each turn."""
    kinds: dict[object, list[Case]] = {}
    for case in cases:
        kinds.setdefault(kind(case), []).append(case)
    step = 1 if TAKES_ALL else every
    return [
        case
        for number, alike in enumerate(kinds.values(), turn)
        for case in alike[number % min(step, len(alike)) :: step]
    ]


def examples(count: int) -> int:
    """Return the number of examples to generate for a property: `make test` uses a third of them."""
    return count if TAKES_ALL else count // 3


def for_each(
    names: str, cases: Collection[Any], *, ids: Callable[[Any], object] = str, shards: int = 1
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the decorated test on each case, like `pytest.mark.parametrize`, but in `shards` test items.

    Several comma-separated names take their values from cases that are tuples. Each case gets a `tmp_path` and a
    `monkeypatch` of its own; the cases of a shard share all other fixtures. Neighbouring cases go to different shards,
    so that all shards take about the same time.
    """
    cases = list(cases)
    assert cases, f"no case for {names}"
    assert len(cases) >= shards, f"{shards} shards for {len(cases)} cases of {names}"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        arguments = [name.strip() for name in names.split(",")]

        @functools.wraps(test)
        def loop(**fixtures: Any) -> None:
            part = cases[fixtures.pop("shard") :: shards]
            failures = [
                (ids(case), error)
                for number, case in enumerate(part)
                if (error := _failure(test, _values(arguments, case), fixtures, number)) is not None
            ]
            if failures:
                file = inspect.unwrap(test).__code__.co_filename
                raise AssertionError(_report(failures, len(part), file)) from failures[0][1]

        # pytest takes the fixtures' names from here, not from the wrapped test.
        kept = [each for each in inspect.signature(test).parameters.values() if each.name not in arguments]
        shard = inspect.Parameter("shard", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        loop.__signature__ = inspect.Signature([shard, *kept])  # type: ignore[attr-defined]  # functions take attributes
        del loop.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps
        return pytest.mark.parametrize("shard", range(shards), ids=lambda shard: f"shard-{shard}")(loop)

    return decorate


def _values(arguments: Sequence[str], case: Any) -> dict[str, Any]:
    return dict(zip(arguments, case, strict=True)) if len(arguments) > 1 else {arguments[0]: case}


def _failure(
    test: Callable[..., None], values: Mapping[str, Any], fixtures: Mapping[str, Any], number: int
) -> BaseException | None:
    own = dict(fixtures)
    if "tmp_path" in own:
        own["tmp_path"] = _directory(own["tmp_path"], number)
    patch = own.get("monkeypatch")
    try:
        if patch is None:
            test(**values, **own)
        else:
            with patch.context() as own["monkeypatch"]:
                test(**values, **own)
    except (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - any failure is reported with its case
        return error
    return None


def _directory(parent: Path, number: int) -> Path:
    directory = parent / f"case{number}"
    directory.mkdir()
    return directory


def _report(failures: Sequence[tuple[object, BaseException]], count: int, file: str) -> str:
    lines = [f"{len(failures)} of {count} cases fail"]
    for name, error in failures[:SHOWN]:
        lines.append(f"{_shorten(str(name))}: {_place(error, file)}: {type(error).__name__}: {error}")
    if len(failures) > SHOWN:
        lines.append(f"and {len(failures) - SHOWN} more")
    return "\n".join(lines)


def _shorten(name: str) -> str:
    return name if len(name) <= WIDTH else f"{name[: WIDTH - 1]}…"


def _place(error: BaseException, file: str) -> str:
    """Return the deepest line of the test's own file in a traceback; without one, the deepest of all."""
    frames = traceback.extract_tb(error.__traceback__)
    place = [*frames[-1:], *(frame for frame in frames if frame.filename == file)][-1]
    return f"{Path(place.filename).name}:{place.lineno}"
