"""A later check of a carving: images and logs still are what `carve.jsonl` says, byte for byte."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kseg.carve.images import Image, Images
from kseg.errors import FileError, OpenError
from kseg.formats.file_names import FileKind, parse_file_name

_PIECE = 8 << 20
_KINDS = (FileKind.LOG, FileKind.METADATA_SNAPSHOT)


class Disagreement(NamedTuple):
    """A difference between the evidence and a file: the file, and the problem."""

    file: str
    problem: str


class CheckedEvidence(NamedTuple):
    """The result of a check. batches: those that were compared with the images."""

    disagreements: tuple[Disagreement, ...]
    files: int
    batches: int


def check_evidence(path: Path, image_paths: tuple[Path, ...] = ()) -> CheckedEvidence:
    """Compare the evidence with images and logs; the images are at the given paths, or where they were.

    Raises FileError if the file isn't the evidence of a carving, OpenError for an image that can't be opened.
    """
    with ExitStack() as files:
        return _Check(path, image_paths, files).run()


class _Check:
    def __init__(self, path: Path, image_paths: tuple[Path, ...], files: ExitStack) -> None:
        self._path, self._files = path, files
        self._given = list(image_paths)
        self._images: list[Image] = []
        self._found: list[Disagreement] = []
        self._log: BinaryIO | None = None
        self._file_count = self._batch_count = 0
        self._is_wrong: set[str] = set()

    def run(self) -> CheckedEvidence:
        for line in self._lines():
            try:
                if line["type"] == "input":
                    self._check_input(line)
                elif line["type"] == "file":
                    self._check_file(line)
                elif line["type"] == "batch":
                    self._check_batch(line)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                raise FileError("isn't the evidence of `kseg carve`; specify its carve.jsonl", self._path) from error
        if not self._images:
            raise FileError("isn't the evidence of `kseg carve`; specify its carve.jsonl", self._path)
        return CheckedEvidence(tuple(self._found), self._file_count, self._batch_count)

    def _lines(self) -> Iterator[dict[str, Any]]:
        try:
            file = self._files.enter_context(self._path.open(encoding="utf-8"))
            yield from map(json.loads, file)
        except OSError as error:
            raise OpenError(f"can't be opened: {error.strerror}", self._path) from error
        except ValueError as error:
            raise FileError("isn't the evidence of `kseg carve`; specify its carve.jsonl", self._path) from error

    def _check_input(self, line: dict[str, Any]) -> None:
        number = len(self._images)
        path = self._given[number] if number < len(self._given) else Path(line["path"])
        (image,) = self._files.enter_context(Images([path], int(line["from"]), int(line["size"])))
        self._images.append(image)
        if image.size != line["size"]:
            self._disagree(str(path), f"has {image.size} bytes, not {line['size']}")
        elif line["sha256"] is not None:
            digest, buffer = hashlib.sha256(), memoryview(bytearray(_PIECE))
            for position in range(0, image.size, _PIECE):
                digest.update(buffer[: image.read_into(position, buffer)])
            self._compare_hashes(str(path), line["sha256"], digest.hexdigest())

    def _check_file(self, line: dict[str, Any]) -> None:
        name = str(line["file"])
        folder, _, log = name.partition("/")
        if folder in ("", ".", "..") or parse_file_name(log).kind not in _KINDS or "/" in log:
            raise ValueError(name)
        self._file_count += 1
        self._log = None
        try:
            self._log = self._files.enter_context((self._path.parent / folder / log).open("rb"))
        except OSError as error:
            self._disagree(name, f"can't be opened: {error.strerror}")
            return
        digest = hashlib.file_digest(self._log, "sha256")
        self._compare_hashes(name, line["sha256"], digest.hexdigest())

    def _check_batch(self, line: dict[str, Any]) -> None:
        if self._log is None or line["file"] in self._is_wrong:
            return
        raw = bytes.fromhex(line.get("rebuilt", ""))
        for number, start, end in line["ranges"]:
            image = self._images[number]
            if not image.start <= start <= end <= image.start + image.size:
                raise ValueError(line["ranges"])
            buffer = memoryview(bytearray(end - start))
            image.read_into(start - image.start, buffer)
            raw += buffer
        self._log.seek(line["position"])
        self._batch_count += 1
        if self._log.read(len(raw)) != raw or len(raw) != line["size"]:
            self._disagree(line["file"], f"at position {line['position']}: the batch isn't the one in the image")

    def _compare_hashes(self, name: str, wanted: str, found: str) -> None:
        if wanted != found:
            self._disagree(name, f"has SHA-256 {found}, not {wanted}")

    def _disagree(self, name: str, problem: str) -> None:
        """Note the first problem of a file."""
        if name not in self._is_wrong:
            self._is_wrong.add(name)
            self._found.append(Disagreement(name, problem))
