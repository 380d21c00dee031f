"""What every test gets: no network beyond loopback, user folders of its own, and the shared data."""

from __future__ import annotations

import atexit
import os
import runpy
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ENVIRONMENT = dict(os.environ)  # the user's own, for tests that ask real providers
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
def _outside(request: pytest.FixtureRequest) -> Iterator[None]:
    """The way beyond loopback, for tests that are marked `live` and for no others."""
    if request.node.get_closest_marker("live") is None:
        yield
        return
    GUARD["OPEN"].append(request.node.name)
    yield
    GUARD["OPEN"].clear()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: no configuration, cache or key of the user's reaches a test, and none is touched."""
    folder = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("RESEARCH_", "XDG_")) or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """At the end of all tests, whatever was tried beyond loopback, here or in a process that a test started."""
    yield
    log = LOOPBACK / "outside.txt"
    assert not log.exists(), f"tests stay on loopback, and these did not:\n{log.read_text()}"


# Before any test: this process is kept on loopback, and so is each that has the folder on its PYTHONPATH.
LOOPBACK = Path(tempfile.mkdtemp(prefix="research-tests-"))
shutil.copy(ROOT / "tests" / "loopback" / "sitecustomize.py", LOOPBACK)
atexit.register(shutil.rmtree, LOOPBACK, ignore_errors=True)
GUARD = runpy.run_path(str(LOOPBACK / "sitecustomize.py"))
PYTHONPATH = os.pathsep.join([str(LOOPBACK), str(ROOT)])
os.environ["PYTHONPATH"] = PYTHONPATH
socket.setdefaulttimeout(30)
