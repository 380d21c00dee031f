"""Becomes another program that dies with its parent: `python -I -S tied.py VARIABLES PROGRAM ARGUMENT…` (Linux).

Whoever is killed can't end what it has started; the kernel can (prctl(2), PR_SET_PDEATHSIG).
The program gets the named variables and no others: Python itself may have set some. It is
run as a script and imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    names, program, *arguments = sys.argv[1:]
    environment = {name: os.environ[name] for name in names.split(",") if name in os.environ}
    os.execve(program, [program, *arguments], environment)
