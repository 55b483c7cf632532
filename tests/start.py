"""Imports of a run of kseg."""

import json
import subprocess
import sys

from tests.architecture import ROOT


def loaded_by(arguments: list[str]) -> set[str]:
    """Return the modules that are loaded after kseg ran in an interpreter of its own."""
    code = "import sys; from kseg.cli import main; main(sys.argv[1:]); loaded = list(sys.modules)"
    code += "; import json; print(json.dumps(loaded), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(ran.stderr.splitlines()[-1]))
