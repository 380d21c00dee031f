"""What every test gets: no network beyond loopback, user folders of its own, and the shared data."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """`data("qa-freshqa-wiki")` is that set's folder; the test is skipped where it is absent."""

    def folder(name: str) -> Path:
        path = DATA / name
        if not path.is_dir():
            pytest.skip(f"the shared data set {name} is not on this machine")
        return path

    return folder


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: no configuration, cache or key of the user's reaches a test, and none is touched."""
    folder = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("RESEARCH_", "XDG_")) or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def _only_loopback(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    if not isinstance(address, tuple):
        return  # a Unix socket
    try:
        loopback = ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    except ValueError:
        loopback = address[0] == "localhost"
    if not loopback:
        raise OSError(f"a test tried to reach {address[0]}: tests stay on loopback")


sys.addaudithook(_only_loopback)
socket.setdefaulttimeout(30)
