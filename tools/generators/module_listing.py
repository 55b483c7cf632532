"""docs/developers/architecture.md with a current list of kseg's modules: the first line of each one's docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "developers" / "architecture.md"
WIDTH = 26
OTHER_FILES = {
    "fast.pyx": "The compiled kernel (Cython), joined from its parts",
    "fast": "The parts of the compiled kernel",
    "carve.h": "Headers at any byte, and CRCs of ranges from those of parts, for the compiled kernel",
    "crc.h": "CRC-32 and CRC-32C for the compiled kernel",
    "ascii.h": "ASCII copied, and escaped for JSON strings, many bytes a step, for the compiled kernel",
    "keyed.h": "What stands for a redacted content: BLAKE2b, SHAKE256 and permutations, for the compiled kernel",
    "message_schemas": "Kafka's message schemas, one JSON line per message, written by tools/read_schemas.py",
}
"""Files and folders that aren't Python."""
MADE_AT_BUILD = "declarations.pxi"
"""A part of the compiled kernel that only exists after a build."""
SHORTEST_PACKAGE = 3
"""Lines from which a package's own module has more than its docstring."""


def page() -> str:
    """Return the page with a current listing of modules."""
    text = PAGE.read_text(encoding="utf-8")
    order = re.search(r"```layers\n(.*?)```", text, re.DOTALL)
    layers = [line.split()[0] for line in order[1].splitlines() if line] if order else []
    listing = "\n".join(["kseg/", *lines(ROOT / "kseg", 2, layers)])
    return re.sub(r"```listing\n.*?```", lambda _: f"```listing\n{listing}\n```", text, count=1, flags=re.DOTALL)


def lines(folder: Path, depth: int, layers: list[str]) -> Iterator[str]:
    """Yield the lines of a folder: its own module, then files and folders, the top ones in the order of the layers."""
    places = [path for path in folder.iterdir() if is_listed(path)]
    for path in sorted(places, key=lambda path: rank(path, layers)):
        if path.is_dir():
            about = OTHER_FILES.get(path.name) or first_line(path / "__init__.py")
            yield line(depth, f"{path.name}/", about)
            yield from lines(path, depth + 2, [])
        else:
            yield line(depth, path.name, OTHER_FILES.get(path.name) or first_line(path))


def is_listed(path: Path) -> bool:
    """Return True if a module or folder has a line of its own."""
    if path.is_dir():
        return path.name in OTHER_FILES or (path / "__init__.py").exists()
    if path.name == "__init__.py":
        return path.read_text(encoding="utf-8").count("\n") >= SHORTEST_PACKAGE
    return (path.suffix in (".py", ".pxi") and path.name != MADE_AT_BUILD) or path.name in OTHER_FILES


def rank(path: Path, layers: list[str]) -> tuple[int, str, bool]:
    """Return a sort key: packages' own modules first, then the layers, then by name.

    A module precedes the folder of its name.
    """
    if path.name == "__init__.py":
        return -1, "", False
    name = path.stem if path.is_file() else path.name
    return (layers.index(name) if name in layers else len(layers)), name, path.is_dir()


def first_line(path: Path) -> str:
    """Return a module's first line without the full stop; a part of the kernel has it in a comment."""
    if path.suffix == ".pxi":
        return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").rstrip(".")
    about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return about.splitlines()[0].rstrip(".") if about else ""


def line(depth: int, name: str, about: str) -> str:
    """Return one line, its text in a column."""
    return f"{' ' * depth}{name:{WIDTH - depth}} {about}".rstrip()
