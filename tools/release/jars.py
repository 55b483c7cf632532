"""A release's jars: their classes, the text in these, and the code of their methods."""

import re
import struct
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property
from pathlib import Path

from tools.kafka_classes import KafkaClasses
from tools.read_schemas import Schema, read_schemas

SCALA = "2.13"
PROGRAM = "PrintFacts"
SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Bytes of a constant in a class file after its tag. Source: The Java Virtual Machine Specification, 4.4."""
UTF8, LONG, DOUBLE, STRING = 1, 5, 6, 8
POOL_POSITION = 10
"""The position of the first constant, after the magic, the version and the count."""
MEMBER = re.compile(r"^  \S.*?([\w$<>]+)\(.*;$|^  static \{\};$", re.MULTILINE)
LAMBDA = re.compile(r"lambda\$(\w+)\$\d+")
POOL_NUMBER = re.compile(r"#\d+(, +\d+)?:?")


class Jars:
    """Kafka's own jars of a release, and its other classes where Java needs them."""

    def __init__(self, release: str, work: Path) -> None:
        """Let Maven copy the jars into a new scratch directory."""
        work.mkdir(parents=True)
        self.release = release
        self.has_tools = _is_published("kafka-tools", release)
        artifacts = [f"kafka_{SCALA}", *(["kafka-tools"] if self.has_tools else [])]
        without = () if self.has_tools else ("org.apache.kafka:kafka-tools-api",)
        coordinates = [f"org.apache.kafka:{name}:{release}" for name in artifacts]
        self._kafka = KafkaClasses(coordinates, [PROGRAM], work, without)
        self._folder = work / "jars"

    @cached_property
    def schemas(self) -> list[tuple[str, Schema]]:
        """The message schemas, each with the name of its jar."""
        return list(read_schemas(self._folder, self.release))

    @cached_property
    def classes(self) -> Mapping[str, bytes]:
        """The class files by their full names, with slashes."""
        found = {}
        for jar in sorted(self._folder.glob(f"kafka*-{self.release}.jar")):
            with zipfile.ZipFile(jar) as archive:
                names = [name for name in archive.namelist() if name.endswith(".class")]
                found.update({name.removesuffix(".class"): archive.read(name) for name in names})
        return found

    def named(self, name: str) -> list[str]:
        """Return the full names of classes with a simple name, such as `ConfigResource$Type`."""
        return sorted(full for full in self.classes if full.rpartition("/")[2] == name)

    def facts(self, enums: Iterable[str]) -> list[list[str]]:
        """Return the rows of PrintFacts.java. enums: CLASS#NUMBER, with simple names of classes."""
        places = {each: self.named(each.partition("#")[0]) for each in enums}
        arguments = {
            f"{full[0].replace('/', '.')}#{each.partition('#')[2]}": each for each, full in places.items() if full
        }
        ran = subprocess.run(self._kafka.command(PROGRAM, *arguments), check=True, capture_output=True, text=True)
        rows = [line.split("\t") for line in ran.stdout.splitlines()]
        return [[arguments.get(row[0], row[0]), *row[1:]] for row in rows]

    def members(self, classes: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the code of each method of some classes, given by their full names; see `members_of`."""
        names = [name.replace("/", ".") for name in classes]
        command = ["javap", "-p", "-c", "-cp", ":".join(map(str, self._folder.glob(f"kafka*-{self.release}.jar")))]
        ran = subprocess.run([*command, *names], check=True, capture_output=True, text=True)
        texts = re.split(r"^Compiled from .*\n", ran.stdout, flags=re.MULTILINE)[1:]
        return {name.replace(".", "/"): members_of(text) for name, text in zip(names, texts, strict=True)}


def _is_published(name: str, release: str) -> bool:
    """Return True if Maven finds an artifact of a release."""
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:get",
        f"-Dartifact=org.apache.kafka:{name}:{release}",
        "-Dtransitive=false",
    ]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def members_of(text: str) -> dict[str, str]:
    """Return the code of a class's methods by name, from javap's text: overloads and lambdas belong to their method.

    Numbers that change with other methods are left out.
    """
    starts = [*MEMBER.finditer(text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    found: dict[str, str] = {}
    for match, end in zip(starts, ends, strict=True):
        name = match[1] or "static"
        owner = LAMBDA.fullmatch(name)
        code = LAMBDA.sub(r"lambda$\1", POOL_NUMBER.sub("", text[match.start() : end]))
        found[owner[1] if owner else name] = found.get(owner[1] if owner else name, "") + code
    return found


def strings_of(data: bytes) -> Set[str]:
    """Return the texts in the constants of a class file, those of joined strings too."""
    (count,) = struct.unpack_from(">H", data, POOL_POSITION - 2)
    position, number = POOL_POSITION, 1
    texts: dict[int, str] = {}
    strings = []
    while number < count:
        tag, position = data[position], position + 1
        if tag == UTF8:
            (size,) = struct.unpack_from(">H", data, position)
            texts[number] = data[position + 2 : position + 2 + size].decode("utf-8", "replace")
            position += 2 + size
        else:
            if tag == STRING:
                strings.append(struct.unpack_from(">H", data, position)[0])
            position += SIZES[tag]
        number += 2 if tag in (LONG, DOUBLE) else 1
    return {texts[each] for each in strings}


def cited_classes(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield each class that a docstring names as its source, and the named method, if any.

    Names are simple: `LogSegment.translateOffset` gives (`LogSegment`, `translateOffset`).
    """
    for source in re.findall(r"Source: ((?:.+\n?)+)", docstring):
        for name, member in re.findall(r"\b([A-Z]\w+(?:\.[A-Z]\w+)*)(?:\.([a-z]\w+))?", source):
            yield name.replace(".", "$"), member
