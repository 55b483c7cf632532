"""The benchmark of kseg and its peers, which prints tables."""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.building import Speed, build_speeds
from bench.datasets import DATA, DATA_SETS, MIB, SMALL, DataSet, Segment, make_segment
from bench.imports import import_times
from bench.machine import describe, kseg_version, load_average
from bench.measure import Command, CommandFailed, measure
from bench.peers import TOOLS, compile_c_programs, fetch_jars
from bench.report import DataSetResult, report
from bench.works import COMPARISONS, GROUPS, HELP, KSEG, PYTHON, TEXT, TEXTS, Comparison, Run, command

BUILD = "build"
OTHER_RUNS = "\n## Start\n"
LIMITS = Path(__file__).with_name("limits.py")


def main() -> None:
    """Run the command line."""
    options = _options()
    load = load_average()
    for release in TOOLS:
        fetch_jars(release)
    compile_c_programs()
    comparisons = [comparison for comparison in COMPARISONS if _is_chosen(comparison, options.work)]
    results = [
        _measure_data_set(data_set, comparisons, options)
        for data_set in DATA_SETS
        if _is_asked(data_set.name, options.data_set) and any(data_set.name in each.data_sets for each in comparisons)
    ]
    is_building = _is_asked(BUILD, options.work) and not options.data_set
    speeds: list[Speed] = build_speeds(options.repeat) if is_building else []
    small = make_segment(SMALL, 0)
    imports = {str(run): import_times(command(run, small, DATA).arguments) for run in (HELP, TEXT)}
    circumstances = [
        f"Command: `{shlex.join(['python', '-m', 'bench', *sys.argv[1:]])}`",
        f"Date: {datetime.now(UTC):%Y-%m-%d}",
        kseg_version(KSEG),
        *describe(),
        load,
    ]
    text = report(results, comparisons, imports, speeds, circumstances)
    print(text)
    if options.markdown:
        options.markdown.write_text(text + _kept(options.markdown))


def _kept(page: Path) -> str:
    """Return the end of a page, which has the figures of other benchmarks."""
    _, heading, figures = (page.read_text() if page.exists() else "").partition(OTHER_RUNS)
    return heading + figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--size", type=int, default=128, help="MiB of log in each data set (default 128)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default 3)")
    parser.add_argument(
        "--only", action="append", default=[], help="a data set, a work, or a group of works; may be repeated"
    )
    parser.add_argument("--markdown", type=Path, help="also write the tables into this file")
    options = parser.parse_args()
    names = {data_set.name for data_set in DATA_SETS}
    works = {BUILD, *GROUPS}.union(*(comparison.names() for comparison in COMPARISONS))
    options.data_set = names.intersection(options.only)
    options.work = works.intersection(options.only)
    if unknown := set(options.only) - names - works:
        parser.error(f"no data set or work: {', '.join(unknown)}; there are {', '.join(sorted(names | works))}")
    return options


def _is_asked(name: str, asked: set[str]) -> bool:
    return not asked or name in asked


def _is_chosen(comparison: Comparison, asked: set[str]) -> bool:
    groups = {name for name, comparisons in GROUPS.items() if comparison in comparisons}
    return not asked or bool(asked & (groups | comparison.names()))


def _measure_data_set(data_set: DataSet, comparisons: list[Comparison], options: argparse.Namespace) -> DataSetResult:
    """Measure all runs on one data set in turns, so that a change of the machine's load affects them all."""
    segment = make_segment(data_set, options.size * MIB)
    chosen = [comparison for comparison in comparisons if data_set.name in comparison.data_sets]
    runs = list(dict.fromkeys(run for each in chosen for run in each.runs()))
    result = DataSetResult(data_set, segment, {run: [] for run in runs}, {}, {}, "")
    for repetition in range(options.repeat):
        for run in runs:
            print(f"{data_set.name}, {repetition + 1} of {options.repeat}: {run}", file=sys.stderr, flush=True)
            _measure_run(run, result)
    texts = [run for run in TEXTS if result.measurements.get(run)]
    return result._replace(
        limits=_measure_limits(result) if data_set.size is None else {},
        comparison=_compare(texts, segment) if TEXT in texts and len(texts) > 1 else "not compared",
    )


def _measure_run(run: Run, result: DataSetResult) -> None:
    if run in result.failures:
        return
    try:
        with TemporaryDirectory(dir=DATA) as scratch:
            result.measurements[run].append(measure(command(run, result.segment, Path(scratch)), run.sink))
    except (CommandFailed, OSError) as failure:
        result.failures[run] = str(failure)


def _measure_limits(result: DataSetResult) -> dict[str, float]:
    path = result.segment.path
    texts = [measurement for run in TEXTS for measurement in result.measurements.get(run, ())]
    output_size = texts[0].output_size if texts else None
    cat = measure(Command(("cat", str(path))), "null")
    program = [PYTHON, str(LIMITS), str(path), str(output_size or 0)]
    limits: dict[str, float] = json.loads(subprocess.run(program, check=True, stdout=subprocess.PIPE).stdout)
    return {"cat": cat.cpu_seconds, **limits}


def _compare(texts: list[Run], segment: Segment) -> str:
    """Return whether the runs print the same bytes, or the failure of one."""
    try:
        return "yes" if len({_digest(command(run, segment, DATA)) for run in texts}) == 1 else "no"
    except CommandFailed as failure:
        return f"failed: {failure}"


def _digest(program: Command) -> bytes:
    with subprocess.Popen(
        program.arguments,
        env={**os.environ, "LANG": "C.UTF-8", **dict(program.environment)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        digest = hashlib.sha256()
        while chunk := process.stdout.read(MIB):
            digest.update(chunk)
    if process.returncode != program.exit_status:
        raise CommandFailed(f"{Path(program.arguments[0]).name}: exit status {process.returncode}")
    return digest.digest()


if __name__ == "__main__":
    main()
