"""Imports of a run of kseg."""

import json
import os
import subprocess
import sys

from tests.architecture import ROOT


def loaded_by(arguments: list[str]) -> set[str]:
    """Return the modules that are loaded after kseg ran as a process, without substitutes of late modules.

    Variables of kseg import checks of their names, so that the process has none.
    """
    code = "import sys; from kseg.__main__ import main; main(sys.argv[1:])"
    code += "; loaded = [name for name, module in sys.modules.items() if getattr(module, '__spec__', None)]"
    code += "; import json; print(json.dumps(loaded), file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={name: value for name, value in os.environ.items() if not name.startswith("KSEG_")},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(json.loads(ran.stderr.splitlines()[-1]))
