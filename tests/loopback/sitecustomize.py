"""Keeps a Python process on loopback, and writes down what it tried elsewhere.

`tests/conftest.py` copies this file into a folder of its own and puts that on PYTHONPATH, so that each
process that a test starts has it as well. What is tried is refused, and noted in `outside.txt` beside it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from pathlib import Path

LOG = Path(__file__).with_name("outside.txt")
OPEN: list[str] = []  # names of tests in this process that may go elsewhere
_DIALLED = ("socket.connect", "socket.sendto", "socket.sendmsg")


def loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def names_no_server(host: str) -> bool:
    """Whether looking it up asks nobody: an address, or this machine."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host in ("", "localhost", socket.gethostname())
    return True


def refused(what: str) -> OSError:
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(f"{what} by {os.environ.get('PYTEST_CURRENT_TEST') or sys.argv}\n")
    return socket.gaierror(socket.EAI_NONAME, f"{what}: tests stay on loopback")


def only_loopback(event: str, arguments: tuple[object, ...]) -> None:
    if OPEN:
        return
    if event in _DIALLED and isinstance(arguments[1], tuple) and not loopback(str(arguments[1][0])):
        raise refused(f"{event} {arguments[1][0]}")
    if event == "socket.getaddrinfo":
        host = arguments[0].decode("latin-1") if isinstance(arguments[0], bytes) else str(arguments[0] or "")
        if not names_no_server(host):
            raise refused(f"{event} {host}")


sys.addaudithook(only_loopback)
