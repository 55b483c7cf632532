"""A store with the part of S3 that reading needs, over files of this machine, with a delay before each answer.

python bench/slow_store.py DIRECTORY MILLISECONDS    serves DIRECTORY as a bucket; prints the port, and at its end,
                                                     when standard input ends, how many requests came
"""

import asyncio
import sys
from bisect import bisect_right
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 1000


class SlowStore:
    """A bucket of files. requests: the number of answered requests."""

    def __init__(self, root: Path, seconds: float) -> None:
        self._root, self._seconds = root, seconds
        self._sizes = {
            path.relative_to(root).as_posix(): path.stat().st_size for path in root.rglob("*") if path.is_file()
        }
        self._keys = sorted(self._sizes)
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        while (head := await _head(reader)) is not None:
            self.requests += 1
            await asyncio.sleep(self._seconds)
            method, target = head[0].split(" ")[:2]
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            url = urlsplit(target)
            _, _, key = unquote(url.path).lstrip("/").partition("/")
            if "list-type" in url.query:
                body = self._listing({name: values[0] for name, values in parse_qs(url.query, True).items()})
                writer.write(_answer("200 OK", body))
            elif key not in self._sizes:
                writer.write(_answer("404 Not Found", b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>"))
            else:
                self._object(method, key, headers.get("range"), writer)
            await writer.drain()
        writer.close()

    def _object(self, method: str, key: str, asked: str | None, writer: asyncio.StreamWriter) -> None:
        size = self._sizes[key]
        start, end, status = 0, size, "200 OK"
        told = [f'ETag: "{size:x}"', f"Last-Modified: {formatdate(0, usegmt=True)}"]
        if asked is not None:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end, status = int(first), min(int(last or size) + 1, size), "206 Partial Content"
            told.append(f"Content-Range: bytes {start}-{end - 1}/{size}")
        with (self._root / key).open("rb") as file:
            file.seek(start)
            content = b"" if method == "HEAD" else file.read(end - start)
        writer.write(_answer(status, content, told, end - start))

    def _listing(self, asked: dict[str, str]) -> bytes:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter")
        after = asked.get("continuation-token") or asked.get("start-after") or ""
        place = bisect_right(self._keys, max(after, prefix[:-1] if prefix else ""))
        contents: list[str] = []
        folders: list[str] = []
        last = ""
        while place < len(self._keys) and len(contents) + len(folders) < PAGE:
            key = self._keys[place]
            place += 1
            if not key.startswith(prefix):
                if key > prefix:
                    place = len(self._keys)
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.partition(delimiter)[0] + delimiter
                last = folder + chr(0x10FFFF)
                if folder > after:
                    folders.append(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>")
                place = bisect_right(self._keys, last)
                continue
            last = key
            contents.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{self._sizes[key]}</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        is_cut = place < len(self._keys) and self._keys[place].startswith(prefix)
        following = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if is_cut else ""
        head = f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{following}"
        return f"<ListBucketResult>{head}{''.join(contents)}{''.join(folders)}</ListBucketResult>".encode()


async def _head(reader: asyncio.StreamReader) -> list[str] | None:
    """Return the lines of a request's head; None at the end of the connection."""
    try:
        content = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    return content.decode("latin-1").split("\r\n")[:-2]


def _answer(status: str, body: bytes, told: list[str] | None = None, size: int | None = None) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if size is None else size}", *(told or [])]
    return "\r\n".join([*head, "", ""]).encode() + body


async def main(root: str, milliseconds: str) -> None:
    """Serve until standard input ends."""
    store = SlowStore(Path(root), int(milliseconds) / 1000)
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(store.requests, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
