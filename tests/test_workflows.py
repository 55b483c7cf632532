"""The workflows of the project's host call make like developers, with each Python that kseg supports."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import golden

ROOT = golden.ROOT.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def commands(path: Path) -> Iterator[str]:
    """Yield the commands of a workflow."""
    for job in read(path)["jobs"].values():
        for step in job["steps"]:
            yield from step.get("run", "").splitlines()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_calls_targets_of_make_and_nothing_else(path: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    called = [line.split() for line in commands(path)]
    assert {words[0] for words in called} == {"make"}
    assert {words[1] for words in called} <= set(targets)


def test_workflows_call_what_every_change_must_pass() -> None:
    called = {line.split()[1] for path in WORKFLOWS for line in commands(path)}
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    demanded = set(re.findall(r"^stage \d+ (?:--jobs=2 )?([\w-]+)", script, re.MULTILINE))
    assert demanded == {"lint", "test-asan", "test"}
    assert called >= demanded | {"docs", "fuzz", "test-browser", "test-install"}


def test_each_python_that_the_project_names_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" :: ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)]
    (tests, wheels) = map(read, WORKFLOWS)
    assert tests["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    (setup,) = [step for step in wheels["jobs"]["wheels"]["steps"] if "setup-python" in step.get("uses", "")]
    assert sorted(setup["with"]["python-version"].split()) == named


def test_workflows_have_the_form_that_the_host_demands() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    ran = subprocess.run([*check, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
