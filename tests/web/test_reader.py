"""The pool of parser processes: answers, limits, replacement, and what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from research.errors import WebError
from research.records import Outcome
from research.web.reader import Reader
from research.web.reading import read_page

PAGE = b"<html><body><article><p>" + b"The council settled the harbour budget on Tuesday, after four hours. " * 8
# One row of many cells: minutes of trafilatura, far within the size limits.
ENDLESS = b"<html><body><table><tr>" + b"<td>word" * 39_000
URL = "https://a.example/a"


def parsers() -> list[int]:
    """The process ids of this process's parsers, the dead that nobody waited for included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == os.getpid() and fields[3] == stat.parent.name:  # each leads a session of its own
            found.append(int(stat.parent.name))
    return found


def used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def busy(pid: int) -> None:
    """Wait until the process has done some more work: it is at a page."""
    before = used(pid)
    while used(pid) < before + 0.1:
        await asyncio.sleep(0.01)


async def test_it_reads_what_reading_reads() -> None:
    bodies = [PAGE, b"", b"\x89PNG\r\n\x1a\n", "žluť".encode("utf-16"), b'{"a": [1]}', b"<p>\xff\xfe\xfd" * 50]
    async with Reader() as reader:
        for body in bodies:
            assert await reader.read(body, url=URL) == read_page(body, url=URL)
        missing = await reader.read(PAGE, url=URL, content_type="text/html", status=404)
    assert missing.outcome is Outcome.GONE


async def test_every_process_reads_alike() -> None:
    """Nothing depends on the hash seed, which differs from process to process."""
    async with Reader() as one, Reader() as other:
        assert await one.read(PAGE, url=URL) == await other.read(PAGE, url=URL)


async def test_pages_at_once_share_the_workers_and_large_ones_travel() -> None:
    large = b"word " * 1_200_000
    async with Reader(workers=2) as reader:
        pages = await asyncio.gather(*(reader.read(body, url=URL) for body in (PAGE, large, PAGE, PAGE, large)))
        assert len(parsers()) == 2
    assert [page.outcome for page in pages] == [Outcome.OK] * 5
    assert [page.cut for page in pages] == [False, True, False, False, True]


async def test_nothing_is_left_when_it_is_closed() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    async with Reader(workers=2) as reader:
        await asyncio.gather(reader.read(PAGE, url=URL), reader.read(PAGE, url=URL))
    assert parsers() == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_one_loop_after_another_and_no_close() -> None:
    """Warnings are errors here: neither loop nor reader may leave anything to warn of."""
    reader = Reader()
    for _ in range(2):
        assert asyncio.run(reader.read(PAGE, url=URL)).outcome is Outcome.OK
    assert len(parsers()) == 1
    del reader
    gc.collect()
    assert parsers() == []


async def test_a_page_that_takes_too_much_processor_time_is_empty_and_the_next_is_read_soon() -> None:
    async with Reader(timeout=60, processor=1.0) as reader:
        page = await reader.read(ENDLESS, url=URL)
        start = time.monotonic()
        following = await reader.read(PAGE, url=URL)
        assert time.monotonic() - start < 10  # 2 s on a machine with nothing else to do
    assert (page.outcome, page.text) == (Outcome.EMPTY, "")
    assert "processor time" in page.detail
    assert following.outcome is Outcome.OK


async def test_a_parser_that_stands_still_is_replaced_and_says_nothing_about_the_page() -> None:
    async with Reader(timeout=3) as reader:
        await reader.read(PAGE, url=URL)
        (pid,) = parsers()
        reading = asyncio.create_task(reader.read(ENDLESS, url=URL))
        await busy(pid)
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(WebError, match="had the time"):
            await reading
    assert parsers() == []


async def test_a_parser_that_crashes_is_given_a_second_chance_and_then_the_page_is_empty() -> None:
    async with Reader(timeout=60) as reader:
        await reader.read(PAGE, url=URL)
        reading = asyncio.create_task(reader.read(ENDLESS, url=URL))
        for _ in range(2):
            await asyncio.sleep(0.05)
            alive = [pid for pid in parsers() if Path(f"/proc/{pid}/statm").read_text().split()[0] != "0"]
            await busy(alive[-1])
            await asyncio.sleep(1.0)
            for pid in alive:
                os.kill(pid, signal.SIGSEGV)
            await asyncio.sleep(0.3)
        page = await reading
        assert page.outcome is Outcome.EMPTY
        assert "crashed" in page.detail
        assert (await reader.read(PAGE, url=URL)).outcome is Outcome.OK


async def test_a_page_that_eats_the_memory_is_empty() -> None:
    async with Reader(memory=120 << 20) as reader:
        page = await reader.read(b"<html><body>" + b"<p>Some words.</p>" * 220_000, url=URL)
        assert page.outcome is Outcome.EMPTY
        assert (await reader.read(PAGE, url=URL)).outcome is Outcome.OK


async def test_a_cancelled_reading_leaves_no_half_read_answer() -> None:
    async with Reader() as reader:
        await reader.read(PAGE, url=URL)
        for pause in (0.0, 0.02, 0.2):
            reading = asyncio.create_task(reader.read(ENDLESS + b"x" * 2_000_000, url=URL))
            await asyncio.sleep(pause)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert await reader.read(PAGE, url=URL) == read_page(PAGE, url=URL)
    assert parsers() == []


async def test_the_parser_holds_no_secret_and_no_file_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAY_API_KEY", "canary")
    with open(os.devnull, "rb") as ours:
        os.set_inheritable(ours.fileno(), True)
        async with Reader() as reader:
            await reader.read(PAGE, url=URL)
            (pid,) = parsers()
            assert b"canary" not in Path(f"/proc/{pid}/environ").read_bytes()
            open_files = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    assert len([name for name in open_files if not name.startswith("/dev/null")]) <= 1  # the socket
    assert [name.partition(":")[0] for name in open_files if not name.startswith("/dev/")] == ["socket"]


SCRIPT = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
from research.web.reader import Reader

async def main():
    reader = Reader()
    page = await reader.read(b"<p>Some text that can be read.</p>", url="https://a.example/")
    print(json.dumps([page.text, reader._idle[0].pid]), flush=True)
    if sys.argv[2] == "stay":
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("ending", ["leave", "stay"])
def test_from_another_folder_and_dying_with_its_parent(ending: str, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent.parent
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(root), ending]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout
        assert parent.stderr
        text, pid = json.loads(parent.stdout.readline())
        if ending == "stay":
            parent.kill()
        assert parent.wait(20) == (-signal.SIGKILL if ending == "stay" else 0)
        assert parent.stderr.read() == b""
    assert text == "Some text that can be read."
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline, "the parser outlived its parent"
        time.sleep(0.02)


async def test_the_loop_is_not_held_up_by_a_large_page() -> None:
    longest, stop = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not stop.is_set():
            start = time.thread_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.thread_time() - start)

    async with Reader() as reader:
        await reader.read(PAGE, url=URL)
        watching = asyncio.create_task(watch())
        await reader.read(b"word " * 800_000, url=URL)
        stop.set()
        await watching
    assert longest < 0.1  # processor time of this thread between two turns: a bound for grave mistakes only
