"""Server-sent events, split on bytes as the HTML standard says (section 9.2.6, "Parsing an event stream").

Lines end at CR LF, LF or CR and nowhere else: U+2028 and its like are legal inside the JSON
that providers send. A character may be cut anywhere by the network.
"""

from __future__ import annotations

from dataclasses import dataclass

from research.errors import MalformedError

LONGEST_EVENT = 16 * 1024 * 1024  # bytes; a whole response travels in one event of some dialects
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """One event. `name` is "message" where the stream names none."""

    data: str
    name: str = "message"
    id: str = ""


class Decoder:
    """Bytes in, events out.

    Comments, unknown fields and events without data yield nothing, as the standard says.
    """

    def __init__(self, longest: int = LONGEST_EVENT) -> None:
        self._longest = longest
        self._line = bytearray()
        self._started = False
        self._after_cr = False
        self._name = ""
        self._id = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes. Raises: MalformedError if one grows too long."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        events: list[Event] = []
        for line in chunk.splitlines(keepends=True):
            self._line += line
            self._bounded()
            if line.endswith((b"\n", b"\r")):
                self._after_cr = line.endswith(b"\r")
                self._end_line(events)
        return events

    def finish(self) -> list[Event]:
        """What stands complete but for its blank line when the stream has ended; half a line is dropped."""
        events: list[Event] = []
        self._dispatch(events)
        return events

    def _bounded(self) -> None:
        if len(self._line) + self._size > self._longest:
            raise MalformedError(
                f"an event of the stream is longer than {self._longest:,} bytes. Try another provider."
            )

    def _end_line(self, events: list[Event]) -> None:
        line = bytes(self._line).rstrip(b"\r\n")
        self._line.clear()
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._size += len(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            data = b"\n".join(self._data).decode("utf-8", "replace")
            events.append(Event(data, self._name or "message", self._id))
        self._data.clear()
        self._size = 0
        self._name = ""
