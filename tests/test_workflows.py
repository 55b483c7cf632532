"""Workflows call make like developers, with each Python that kseg supports; issue forms ask for commands that exist."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import golden, run

ROOT = golden.ROOT.parent
FORMS_FOLDER = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in FORMS_FOLDER.glob("*.yml") if path.name != "config.yml")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return content


def commands(path: Path) -> Iterator[str]:
    """Yield the commands of a workflow, without those that install packages into a container."""
    for job in read(path)["jobs"].values():
        for step in job["steps"]:
            lines = step.get("run", "").splitlines()
            yield from (line for line in lines if "container" not in job or not line.startswith("apt-get "))


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
    assert called >= demanded | {"docs", "fuzz", "test-browser", "test-install", "test-release"}


def test_each_python_that_the_project_names_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rpartition(" :: ")[2] for line in project["classifiers"] if re.search(r":: 3\.\d+$", line)]
    tests, wheels = (read(ROOT / ".github" / "workflows" / name) for name in ("tests.yml", "wheels.yml"))
    assert tests["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    (setup,) = [step for step in wheels["jobs"]["wheels"]["steps"] if "setup-python" in step.get("uses", "")]
    assert sorted(setup["with"]["python-version"].split()) == named


@pytest.mark.parametrize(
    ("schema", "paths"),
    [("workflows", WORKFLOWS), ("issue-forms", FORMS), ("issue-config", [FORMS_FOLDER / "config.yml"])],
)
def test_file_has_the_form_that_the_host_demands(schema: str, paths: list[Path]) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{schema}"]
    ran = subprocess.run([*check, *map(str, paths)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_issue_forms_ask_for_commands_and_options_that_exist() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FORMS)
    lines = {line for line in re.findall(r"`(kseg [^`]+)`", text) if " --" in line}
    assert lines == {"kseg --version", *(f"kseg doctor --bundle{rest}" for rest in ("", " bundle.tar.zst kafka-logs/"))}
    for command, option in (([], "--version"), (["doctor"], "--bundle FILE.tar.zst")):
        assert option in run.kseg([*command, "--help"], golden.ROOT).stdout.decode()
