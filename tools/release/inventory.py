"""The contents of the self-contained folder: a bill of materials in CycloneDX's form, and all licenses in one file."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import spdx

from tools.make_dist import ROOT, run
from tools.release.bundle import python_of, site_packages_of

LICENSE_NAMES = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)


def write_bill(folder: Path, target: Path, time: int) -> None:
    """Write the components: the libraries with their licenses, then Python and the shared libraries of this system."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--mc-type", "application"]
    printed = run(
        [*command, "--pyproject", str(ROOT / "pyproject.toml"), str(python_of(folder))],
        folder,
        {"SOURCE_DATE_EPOCH": str(time)},
    )
    bill: dict[str, Any] = json.loads(printed)
    bill["components"] = [each for each in bill["components"] if each["name"] != "kseg"] + [*_other_components(folder)]
    target.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _other_components(folder: Path) -> Iterator[dict[str, str]]:
    version = sys.version.split()[0]
    yield {
        "type": "platform",
        "name": "cpython",
        "version": version,
        "bom-ref": f"cpython=={version}",
        "purl": f"pkg:generic/cpython@{version}",
    }
    for name, package, version in _packages_of_the_host(folder):
        purl = f"pkg:deb/debian/{package}@{version}"
        yield {"type": "library", "name": name, "version": version, "bom-ref": f"{name}=={version}", "purl": purl}


def _packages_of_the_host(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield each shared library that was copied from this system, with its package and the package's version."""
    for path in sorted((folder / "lib").glob("lib*.so.*")):
        if not path.name.startswith("libpython"):
            package = run(["dpkg-query", "--search", f"*/{path.name}"], folder).partition(":")[0]
            yield path.name, package, run(["dpkg-query", "--show", "--showformat=${Version}", package], folder)


def write_licenses(folder: Path, bill: Path, target: Path) -> None:
    """Write the license texts of kseg, Python, the libraries and the shared libraries, each under its name."""
    declared = _declared_licenses(json.loads(bill.read_text(encoding="utf-8")))
    texts = _license_texts(folder, declared)
    parts = [f"{'=' * 100}\n{name}\n{'=' * 100}\n\n{text.strip()}\n" for name, text in texts]
    target.write_text("\n\n".join(parts), encoding="utf-8")


def _declared_licenses(bill: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the SPDX identifiers of each library's licenses in a bill of materials."""
    return {
        each["name"].replace("-", "_").lower(): [
            identifier for given in each.get("licenses", ()) for identifier in _identifiers(given)
        ]
        for each in bill["components"]
    }


def _identifiers(given: Mapping[str, Any]) -> list[str]:
    """Return the identifiers in an entry, which has one license or an expression of several."""
    if "expression" in given:
        return [word for word in re.findall(r"[\w.+-]+", given["expression"]) if word not in ("AND", "OR", "WITH")]
    return [given["license"]["id"]] if "id" in given.get("license", ()) else []


def _license_texts(folder: Path, declared: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    yield "kseg", _read(ROOT / "LICENSE") + "\n\n" + _read(ROOT / "NOTICE")
    libraries = site_packages_of(folder)
    yield f"Python {sys.version.split()[0]}", _read(libraries.parent / "LICENSE.txt")
    for place in sorted(libraries.glob("*.dist-info")):
        name, version = place.stem.split("-")
        if name != "kseg":
            found = [path for path in sorted(place.rglob("*")) if path.is_file() and LICENSE_NAMES.match(path.name)]
            yield f"{name} {version}", "\n\n".join(map(_read, found)) or _standard_texts(name, declared)
    for name, package, version in _packages_of_the_host(folder):
        yield f"{name} ({package} {version})", _read(Path("/usr/share/doc") / package / "copyright")


def _standard_texts(name: str, declared: Mapping[str, list[str]]) -> str:
    """Return the standard texts of the licenses that a library without a license file declares."""
    known = [spdx.License(each) for each in spdx.licenses() if each["id"] in declared.get(name.lower(), ())]
    if not known:
        sys.exit(f"{name}: the library has no license that SPDX lists; find its license before you ship it")
    holders = f"the authors of {name}"
    return "\n\n".join(each.template.replace("<year> <copyright holders>", holders) for each in known)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
