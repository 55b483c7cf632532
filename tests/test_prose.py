"""English of docstrings, names and pages: counts of foreign patterns, which may only fall."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests import golden

SOURCES = golden.ROOT.parent / "kseg"
RELATIVE = frozenset(
    ("What", "Whether", "Where", "How", "Which", "Who", "Why", "Those", "Of", "As", "That", "So", "Whose")
)
"""First words of a clause that isn't a sentence: a docstring begins with a verb or a noun."""
PARTICIPLE = re.compile(r"_?[a-z]+(ed|en|told|said|found|known|read)")
NO_PARTICIPLES = frozenset(("open", "feed", "token", "fixed", "listen", "widen", "shorten", "lengthen"))
"""Verbs and nouns that only look like one."""
HEADLESS = re.compile(
    r"\b(what (is|was|lies|goes|comes|has|they|it)|those that|that of|anew|beside|by itself|goes (on|by))\b", re.I
)
"""Phrases that native writers of documentation don't use."""
MOST_PHRASES, MOST_PHRASES_OF_PAGES = 62, 178
"""Counts when these tests were written. Lower them with the counts."""
CODE_BLOCK = re.compile(r"```.*?```", re.DOTALL)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef


def find_documented() -> Iterator[tuple[Path, Documented]]:
    for path in sorted(SOURCES.rglob("*.py")):
        if "schemas" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, Documented):
                    yield path, node


def test_no_docstring_begins_with_a_relative_word() -> None:
    texts = [(path.name, ast.get_docstring(node) or "") for path, node in find_documented()]
    assert [(name, text[:60]) for name, text in texts if text and text.split()[0].strip(":,") in RELATIVE] == []


def test_no_function_is_named_by_a_participle() -> None:
    names = [node.name for _, node in find_documented() if isinstance(node, ast.FunctionDef) and not is_property(node)]
    participles = [name for name in names if PARTICIPLE.fullmatch(name)]
    assert [name for name in participles if name.lstrip("_") not in NO_PARTICIPLES] == []


def is_property(node: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_foreign_phrases_in_docstrings_become_fewer() -> None:
    texts = [ast.get_docstring(node) or "" for _, node in find_documented()]
    assert sum(len(HEADLESS.findall(text)) for text in texts) <= MOST_PHRASES


def test_foreign_phrases_in_pages_become_fewer() -> None:
    root = SOURCES.parent
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    found = [phrase for page in pages for phrase in HEADLESS.findall(CODE_BLOCK.sub("", page.read_text("utf-8")))]
    assert len(found) <= MOST_PHRASES_OF_PAGES
