"""The place that gets lineage events: a file of JSON lines, or a collector over HTTP."""

import json
import os
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from kseg.errors import UsageError, reason, without_secrets
from kseg.output.progress import Talk
from kseg.store.remote_files import check_destination
from kseg.system.placed_path import StrPath

PATIENCE = 5.0
"""Seconds that a collector has for each answer."""
_SCHEMES = ("http://", "https://")


class Collector:
    """A receiver of events. After an event that it can't take, it gets no more: an export doesn't depend on it.

    place: a file outside of the sources, or the URL of a collector, as in OPENLINEAGE_URL. For URLs, the variables
    OPENLINEAGE_ENDPOINT and OPENLINEAGE_API_KEY count.
    """

    def __init__(self, place: str, sources: Iterable[StrPath], talk: Talk) -> None:
        if "://" in place and not place.startswith(_SCHEMES):
            raise UsageError(
                "OpenLineage's collectors speak HTTP; specify a URL with http:// or https://, or a file", place
            )
        if "://" not in place:
            check_destination(str(Path(place).absolute()), [os.fspath(each) for each in sources])
        self._place, self._talk = place, talk
        self._has_failed = False

    def send(self, event: dict[str, Any]) -> None:
        """Send an event, unless an earlier one couldn't be sent."""
        if self._has_failed:
            return
        content = json.dumps(event).encode()
        try:
            if self._place.startswith(_SCHEMES):
                self._post(content)
            else:
                with Path(self._place).open("ab", buffering=0) as file:
                    file.write(content + b"\n")
        except (OSError, HTTPException, ValueError) as error:
            self._has_failed = True
            self._talk.warn(
                f"{without_secrets(self._place)}: lineage events can't be sent: {_why(error)}; check --openlineage, or"
                " the variables OPENLINEAGE_…"
            )

    def _post(self, content: bytes) -> None:
        endpoint = os.environ.get("OPENLINEAGE_ENDPOINT") or "api/v1/lineage"
        url = self._place.rstrip("/")
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENLINEAGE_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        whole = url if url.endswith(endpoint) else f"{url}/{endpoint}"
        with urlopen(Request(whole, content, headers), timeout=PATIENCE):  # noqa: S310  checked above
            pass


def _why(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"the collector answered {error.code} {error.reason}"
    cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, OSError) else error
    return reason(OSError(cause.strerror) if isinstance(cause, OSError) and cause.strerror else cause)


def wanted_place(given: str | None) -> str | None:
    """Return the place of events: the option's, or the one of OPENLINEAGE_URL; None if OPENLINEAGE_DISABLED is true."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    return given or os.environ.get("OPENLINEAGE_URL") or None
