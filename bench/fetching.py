"""Whether fetching keeps two cores busy, and the event loop free: `python -m bench.fetching [--pages N] [--runs N]`.

Fetches real pages from ten hosts on loopback, twenty at once, and reads each in a parser process: with one parser,
then with two, in turn. Prints the medians of throughput and of the parsers' share of two cores, without the processor
time of the server, which runs in a process of its own; and the longest step of the event loop in processor time, for
pages of up to 1 MB and for larger ones.

These need a machine of their own. What holds on a busy one too: how much of the time the parsers had work (they ran,
or waited for a core and not for a page), and what follows from that and from the processor time of both sides.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.data import data
from research.web.fetch import Fetcher
from research.web.guard import Policy
from research.web.reader import Reader

HOSTS = [f"127.0.0.{number}" for number in range(2, 12)]
AT_ONCE = 20
CORES = 2
MB = 1_000_000
SIZES = {"up to 1 MB": (MB // 4, MB // 2, MB - 2_000), "larger": (2 * MB, 3_900_000, 20 * MB)}


def pages(folder: Path) -> list[bytes]:
    """Real pages, in order of name."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".html", ".htm", ".gz"))
    bodies = []
    for file in files:
        body = file.read_bytes()
        if file.suffix == ".gz":
            import gzip

            body = gzip.decompress(body)
        bodies.append(body)
    return bodies


def grown(size: int) -> bytes:
    """A page of about that many bytes, nearly all of it text."""
    paragraph = (
        b"<p>" + b"The index rose by 3.0 percent over the year, as it had in other places before. " * 12 + b"</p>\n"
    )
    return b"<html><title>Long</title><article>" + paragraph * (size // len(paragraph)) + b"</article></html>"


# The server, in its own process


async def serve(bodies: list[bytes]) -> None:
    """Page n at /n, on every host; /size/n is a page of n bytes. Prints its port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
                body, status = b"", b"404 Not Found"
                if path != "/robots.txt":
                    number = int(path.rpartition("/")[2])
                    body, status = grown(number) if "size" in path else bodies[number % len(bodies)], b"200 OK"
                head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    first = await asyncio.start_server(answer, HOSTS[0], 0)
    port = first.sockets[0].getsockname()[1]
    others = [await asyncio.start_server(answer, host, port) for host in HOSTS[1:]]
    print(port, flush=True)
    await asyncio.gather(*(server.serve_forever() for server in [first, *others]))


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """Its port and its process's number."""
    process = subprocess.Popen([sys.executable, "-m", "bench.fetching", "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.kill()
        process.wait()


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def supplied_seconds(pid: int) -> float:
    """How long it has run, or been ready to."""
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    return (int(ran) + int(waited)) / 1e9


# What is measured


@dataclass(frozen=True)
class Run:
    """Seconds: on the clock; of the processor by parsers, by this process, and by the server; of all parsers together
    with a page to read."""

    wall: float
    parsers: float
    own: float
    server: float
    supplied: float

    @property
    def net(self) -> float:
        """The wall time had the server run elsewhere: with both cores busy, its work is half in the way."""
        return self.wall - self.server / CORES

    @property
    def undisturbed(self) -> float:
        """The parsers' share of two cores that nobody else uses."""
        return min(1.0, self.supplied / (CORES * self.wall)) * self.parsers / (self.parsers + self.own)


async def timed(urls: list[str], workers: int, server_pid: int) -> Run:
    """A run, once the parsers are loaded."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(url: str) -> None:
        async with slots:
            await fetcher.fetch(url)

    async with Reader(workers) as reader, Fetcher(reader, policy=Policy.of(["127.0.0.0/8"])) as fetcher:
        await asyncio.gather(*(one(url) for url in urls[: 2 * workers]))
        parsers = [parser.pid for parser in reader._idle]
        assert len(parsers) == workers
        own, ready = time.process_time(), sum(map(supplied_seconds, parsers))
        before = {pid: processor_seconds(pid) for pid in [*parsers, server_pid]}
        began = time.monotonic()
        await asyncio.gather(*map(one, urls))
        wall = time.monotonic() - began
        spent = {pid: processor_seconds(pid) - then for pid, then in before.items()}
        supplied = sum(map(supplied_seconds, parsers)) - ready
        return Run(wall, sum(spent[pid] for pid in parsers), time.process_time() - own, spent[server_pid], supplied)


@contextmanager
def longest_step() -> Iterator[list[float]]:
    """The processor seconds of each step of the event loop: what a busy machine adds is not counted."""
    steps: list[float] = []
    plain = asyncio.events.Handle._run

    def run(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        plain(handle)
        steps.append(time.thread_time() - began)

    asyncio.events.Handle._run = run  # type: ignore[method-assign]
    try:
        yield steps
    finally:
        asyncio.events.Handle._run = plain  # type: ignore[method-assign]


async def blocked(urls: list[str]) -> float:
    """The longest step of the event loop while these are read, after a first round that loads what is needed."""
    async with Reader(2) as reader, Fetcher(reader, policy=Policy.of(["127.0.0.0/8"])) as fetcher:
        await fetcher.fetch(urls[0])
        with longest_step() as steps:
            await asyncio.gather(*map(fetcher.fetch, urls))
        return max(steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(pages(data("html-article-benchmark"))))
        return
    with server() as (port, pid):
        urls = [f"http://{HOSTS[number % len(HOSTS)]}:{port}/{number}" for number in range(arguments.pages)]
        runs: dict[int, list[Run]] = {1: [], 2: []}
        for _ in range(arguments.runs):
            for workers, done in runs.items():
                done.append(asyncio.run(timed(urls, workers, pid)))
                run = done[-1]
                print(
                    f"  {workers} parser{'s' * (workers > 1)}: {run.wall:6.2f} s, of the processor: parsers "
                    f"{run.parsers:6.2f}, own {run.own:5.2f}, server {run.server:5.2f}; parsers with a page "
                    f"{run.supplied / (workers * run.wall):4.0%} of the time",
                    file=sys.stderr,
                )
        ratio = statistics.median(one.wall / two.net for one, two in zip(runs[1], runs[2], strict=True))
        share = statistics.median(run.parsers / (CORES * run.net) for run in runs[2])
        alone = statistics.median(run.undisturbed for run in runs[2])
        print(f"throughput, two parsers ÷ one   {ratio:5.2f}  (reach ≥ 1.7)")
        print(f"parsers' time ÷ (2 × wall)      {share:5.2f}  (reach ≥ 0.88)")
        print(f"the same on cores of its own    {alone:5.2f}  (load now {os.getloadavg()[0]:.1f} on {os.cpu_count()})")
        for name, sizes in SIZES.items():
            long = [f"http://{HOSTS[number % len(HOSTS)]}:{port}/size/{size}" for number, size in enumerate(sizes * 4)]
            reach = "(reach ≤ 10)" if name == "up to 1 MB" else "(in chunks)"
            print(f"longest step, pages {name:<11} {asyncio.run(blocked(long)) * 1000:5.1f} ms  {reach}")
    print(f"resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, parsers not counted")


if __name__ == "__main__":
    main()
