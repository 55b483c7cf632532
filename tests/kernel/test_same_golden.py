"""The twin prints golden logs like the compiled kernel, in the layouts of several releases.

`make test` takes some of the logs for each layout, and others for the next one; `make test-exhaustive` takes all.
"""

from pathlib import Path

import pytest

from kseg import kernel as kernels
from kseg.dump.log_steps import LogSummary, Rendering, new_output, render_log
from kseg.kernel.contract import GapRule
from kseg.layouts.programs import LogOptions, documented_program, release_program
from kseg.reading.log_file import LogFile
from kseg.releases import parse_release
from tests import golden
from tests.loops import TAKES_ALL

DEEP = LogOptions(deep=True, print_data=True)
RENDERINGS = {
    "documented": Rendering(documented_program(DEEP)),
    "0.10.0.1": Rendering(release_program(parse_release("0.10.0.1"), DEEP), gap_rule=GapRule.PLAIN_MESSAGES),
    "2.8": Rendering(release_program(parse_release("2.8"), DEEP), gap_rule=GapRule.ALL_RECORDS, as_kafka=True),
    "4.3": Rendering(
        release_program(parse_release("4.3"), DEEP), gap_rule=GapRule.ALL_RECORDS, last_offset=-1, as_kafka=True
    ),
    "4.3 shallow": Rendering(release_program(parse_release("4.3"), LogOptions())),
}


@pytest.mark.parametrize("name", RENDERINGS)
def test_golden_logs_are_printed_equally(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step = 1 if TAKES_ALL else 3
    for path in [*golden.files(".log"), *golden.damaged_files(".log")][[*RENDERINGS].index(name) % step :: step]:
        results = []
        for kernel in ("fast", "twin"):
            monkeypatch.setenv(kernels.KERNEL_VARIABLE, kernel)
            results.append(print_log(path, RENDERINGS[name]))
        assert results[0] == results[1], path


def print_log(path: Path, rendering: Rendering) -> tuple[bytes, LogSummary]:
    pieces: list[bytes] = []
    output = new_output(lambda piece: pieces.append(bytes(piece)))
    with LogFile(path) as log_file:
        summary = render_log(log_file, rendering, output)
    output.flush()
    return b"".join(pieces), summary
