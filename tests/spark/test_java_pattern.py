"""Patterns in Java's syntax: the same names match in kseg and in Java."""

import subprocess
from pathlib import Path
from random import Random
from shutil import which

import pytest

from kseg.errors import UsageError
from kseg.spark.java_pattern import compile_pattern

NAMES = [
    "zstd",
    "append-zstd",
    "meta.9",
    "Orders",
    "ORDERS_v2",
    "a",
    "A1",
    "order-events",
    "x.y.z",
    "b_B-1.2",
    "aab",
    "bbA9",
    "a-b",
    "Zz",
    "1",
    "aa11bb",
    "orders.orders",
]
_ATOMS = r"""
    a b A z 1 - _ . \. o rders st \d \w \s \D \W \S \h \p{Alpha} \p{Lower} \P{Upper} \p{L} \pL \p{Lu} \p{Nd} \p{Punct}
    \p{javaLowerCase} \p{IsAlphabetic} \p{IsLatin} \Qa.b\E \Q[\E \x61 \u0041 \x{7a} \0141 \b \B \A \z \Z ^ $ [a-z]
    [^a-z] [a-z&&[^b]] [a-c[x-z]] [^a-c[x-z]] [\w&&[^\d]] []a] [a-] [-a] [a\-z] [\p{Alpha}0] [a&&] [&&a] [a&b]
    [a-z&&b-y&&[^c]] [\Qa-z\E] [a-[b]] [.] \1 \2 \11 \k<n> ] } { & #
"""
ATOMS = tuple(_ATOMS.split())
QUANTIFIERS = ("", "", "", "*", "+", "?", "*?", "+?", "*+", "?+", "{2}", "{1,}", "{1,2}?", "{1,2}+", "{,2}")
GROUPS = ("(", "(?:", "(?i:", "(?-i:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?<n>", "(?s:", "(?im-s:")
FLAGS = ("(?i)", "(?-i)", "(?s)", "(?m)", "(?u)", "(?U)")
FIND = """
import java.nio.file.*; import java.util.regex.*;
public class Find { public static void main(String[] paths) throws Exception {
  for (String text : Files.readAllLines(Path.of(paths[0]))) {
    StringBuilder found = new StringBuilder();
    try {
      Pattern pattern = Pattern.compile(text);
      for (String name : Files.readAllLines(Path.of(paths[1]))) found.append(pattern.matcher(name).find() ? 1 : 0);
    } catch (PatternSyntaxException error) { found = new StringBuilder("invalid"); }
    System.out.println(found);
} } }
"""


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("zst", "zstd append-zstd"),
        (r"^\p{Alpha}{4}$", "zstd"),
        (r"^\p{javaLowerCase}{4}$", "zstd"),
        (r"^\Qx.y\E", "x.y.z"),
        ("^(?i)ORDERS_V2$", "ORDERS_v2"),
        ("^[a-z&&[^a]]{4}$", "zstd"),
        ("^zs++t*+d?+$", "zstd"),
        (r"(a)\1", "aab aa11bb"),
        (r"^(?<n>o)rders\.\k<n>", "orders.orders"),
    ],
)
def test_names_that_match(pattern: str, found: str) -> None:
    compiled = compile_pattern(pattern)
    assert [name for name in NAMES if compiled.search(name)] == found.split()


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("zstd[", "subscribePattern: `[` before position 5 is invalid or not supported; leave it out"),
        ("(?x)a", "subscribePattern: `the flag x` "),
        (r"\p{IsGreek}", r"subscribePattern: `\p{IsGreek}` before position 11 is invalid or not supported"),
        (r"\X", r"subscribePattern: `\X` before position 2 is invalid or not supported"),
        ("a**", "subscribePattern 'a**' isn't a valid pattern: multiple repeat at position 2"),
        ("(a", "subscribePattern: `(` before position 2 is invalid or not supported"),
        ("(?<=a+)b", "subscribePattern '(?<=a+)b' isn't a valid pattern: look-behind requires fixed-width pattern"),
    ],
)
def test_other_patterns_are_refused_in_a_line(pattern: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_pattern(pattern)
    assert str(caught.value).startswith(line)


def random_pattern(random: Random, depth: int) -> str:
    parts = []
    for _ in range(random.randint(1, 4)):
        kind = random.random()
        if depth and kind < 0.35:
            inner = random_pattern(random, depth - 1)
            parts.append(f"{random.choice(GROUPS)}{inner}){random.choice(QUANTIFIERS)}")
        elif kind < 0.45:
            parts.append(random.choice(FLAGS))
        elif kind < 0.55:
            parts.append("|")
        else:
            parts.append(random.choice(ATOMS) + random.choice(QUANTIFIERS))
    return "".join(parts)


@pytest.mark.spark
@pytest.mark.skipif(which("javac") is None, reason="needs a JDK")
def test_random_patterns_find_the_names_that_java_finds(tmp_path: Path) -> None:
    random = Random(1)
    patterns = [random_pattern(random, 3) for _ in range(3000)]
    (tmp_path / "patterns").write_text("\n".join(patterns) + "\n")
    (tmp_path / "names").write_text("\n".join(NAMES) + "\n")
    (tmp_path / "Find.java").write_text(FIND)
    command = ["java", "-Xss16m", *(str(tmp_path / name) for name in ("Find.java", "patterns", "names"))]
    by_java = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    same = 0
    for pattern, expected in zip(patterns, by_java, strict=True):
        try:
            compiled = compile_pattern(pattern)
        except UsageError:
            continue
        assert "".join("1" if compiled.search(name) else "0" for name in NAMES) == expected, pattern
        same += 1
    assert same > len(patterns) / 3
    print(f"{same} of {len(patterns)} patterns find the same names as in Java, {by_java.count('invalid')} are invalid")  # noqa: T201
