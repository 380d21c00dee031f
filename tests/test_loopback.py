"""What keeps the tests on loopback does so, and tells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import conftest
from tests.conftest import LOOPBACK, ROOT


@pytest.mark.parametrize(
    ("tried", "told"),
    [
        ("socket.create_connection(('192.0.2.1', 80), 0.1)", "socket.connect 192.0.2.1"),
        ("socket.create_connection(('2001:db8::1', 80), 0.1)", "socket.connect 2001:db8::1"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 53))", "socket.sendto 192.0.2.1"),
        ("socket.getaddrinfo('example.org', 80)", "socket.getaddrinfo example.org"),
    ],
)
def test_what_leads_elsewhere_is_refused_and_noted(tmp_path: Path, tried: str, told: str) -> None:
    shutil.copy(ROOT / "tests" / "loopback" / "sitecustomize.py", tmp_path)
    script = f"import socket\ntry:\n    {tried}\nexcept OSError as error:\n    print(error)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert "tests stay on loopback" in done.stdout
    assert (tmp_path / "outside.txt").read_text().startswith(f"{told} by ")


def test_loopback_itself_is_open(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "loopback" / "sitecustomize.py", tmp_path)
    script = "import socket\ns = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname(), 1)"
    subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(tmp_path)}, check=True)
    assert not (tmp_path / "outside.txt").exists()


def test_this_process_is_kept_as_well(home: Path) -> None:
    assert sys.modules["tests.conftest"] is conftest
    assert sum(Path(entry) == LOOPBACK for entry in conftest.PYTHONPATH.split(":")) == 1
    assert conftest.GUARD["OPEN"] == []  # this test is not marked as live
