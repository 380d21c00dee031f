"""A llama.cpp server on loopback, as a process of its own: `python tests/llama_server.py PORT MODEL.gguf [KEY]`.

It ends with its standard input, and so with whoever started it.
"""

from __future__ import annotations

import sys

import xllamacpp  # type: ignore[import-not-found]


def main() -> None:
    port, model, *keys = sys.argv[1:]
    wanted = xllamacpp.CommonParams()
    wanted.model.path = model
    wanted.n_ctx, wanted.n_parallel = 4096, 1
    wanted.cpuparams.n_threads = 2
    wanted.hostnames, wanted.port = ["127.0.0.1"], int(port)
    wanted.api_keys = keys
    server = xllamacpp.Server(wanted)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    main()
