"""A headless Chromium over its debugging pipe (https://chromedevtools.github.io/devtools-protocol/), without a socket."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "about:blank",
)  # fmt: skip


@dataclass
class Seen:
    """What a page did: addresses it asked for, what the console said, dialogs."""

    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


def moved(file: int) -> int:
    """The same open file under a number that the browser does not want for its own ends of the pipe."""
    made = fcntl.fcntl(file, fcntl.F_DUPFD, 10)
    os.close(file)
    return made


class Chromium:
    """One browser with one page, and a profile of its own that goes with it."""

    def __init__(self, patience: float = 60.0) -> None:
        self.patience = patience
        self.seen = Seen()
        self._number = 0
        self._buffer = b""

    def __enter__(self) -> Chromium:
        assert PROGRAM is not None
        self._profile = tempfile.mkdtemp(prefix="chromium-")
        (theirs, self._to), (self._from, back) = os.pipe(), os.pipe()
        theirs, back = moved(theirs), moved(back)

        def connect() -> None:
            os.dup2(theirs, 3)
            os.dup2(back, 4)

        command = [PROGRAM, *QUIET, f"--user-data-dir={self._profile}"]
        self._process = subprocess.Popen(
            command, preexec_fn=connect, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(back)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.wait(10)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """Raises: RuntimeError for an error of the browser's, TimeoutError if it does not answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if not method.startswith("Target.") and hasattr(self, "_session"):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]

    def _receive(self) -> dict[str, Any]:
        until = time.monotonic() + self.patience
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise RuntimeError(f"the browser has gone, with exit code {self._process.wait(10)}")
            self._buffer += piece
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, told = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.seen.requests.append(told["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.seen.console.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded":
            self.seen.console.append(told["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.seen.console.append(json.dumps(told["exceptionDetails"]))
        elif method == "Page.javascriptDialogOpening":
            self.seen.dialogs.append(told["message"])

    def open(self, file: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Opens a file, in a window of that size."""
        self.seen = Seen()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.resolve().as_uri())
        while self.evaluate("document.readyState") != "complete":
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, file: Path, top: int = 0, height: int | None = None) -> None:
        """A picture of a part of the page, as it looks now."""
        wide = self.evaluate("document.documentElement.clientWidth")
        tall = height or self.evaluate("document.documentElement.scrollHeight") - top
        clip = {"x": 0, "y": top, "width": wide, "height": tall, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))
