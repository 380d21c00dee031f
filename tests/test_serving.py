"""`research mcp`: the SDK's own client asks it, and no call of a client passes a limit or names an address of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from research.errors import OverloadedError
from research.llm.messages import Attempt, Usage
from research.serving.lines import LONGEST, TOO_LONG, UNFIT, UNREAD, Lines
from research.settings import Settings
from research.tiers import Tiers
from tests.commands import RUN, environment, research, with_sample_web
from tests.shipped import Laboratory

pytest.importorskip("mcp")

QUESTION = "What was the US inflation rate in January 2025?"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose sample web has been read already."""
    home = tmp_path_factory.mktemp("kept")
    with_sample_web(home)
    return home


@asynccontextmanager
async def client(home: Path, *arguments: str) -> AsyncIterator[Any]:
    """A session of the SDK's client with the command."""
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=RUN[0], args=[*RUN[1:], "mcp", "--offline", *arguments], env=environment(home), cwd=home
    )
    with open(home / "stderr", "w") as stderr:
        async with stdio_client(command, stderr) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session


async def test_a_client_of_the_sdk_gets_a_cited_answer(kept: Path) -> None:
    async with client(kept) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert list(tools) == ["ask", "search", "fetch"]
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        assert tools["ask"].input_schema["required"] == ["question"]
        told = await session.call_tool("ask", {"question": QUESTION})
        text = told.content[0].text
        assert not told.is_error
        assert "3.0 percent in January 2025" in text
        assert told.structured_content["ending"] == "answered"
        assert told.structured_content["paid_usd"] == 0
        addresses = [source["url"] for source in told.structured_content["sources"]]
        assert "https://www.labor-statistics.example/news/cpi-january-2025" in addresses
        page = await session.call_tool("fetch", {"url": addresses[0], "offset": 100})
        assert page.content[0].text.startswith("Characters 100 to ")
        found = await session.call_tool("search", {"query": "euro area inflation"})
        assert "https://euro-indicators.example/" in found.content[0].text
    run = told.structured_content["run"]
    assert research(kept, "show", run).returncode == 0


async def test_errors_come_back_as_results(kept: Path) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("fetch", {"url": "https://evil.example/?secret=1"}, "Not read"),
        ("fetch", {"url": "file:///etc/passwd"}, "Not read"),
        ("fetch", {"url": "http://127.0.0.1:1/"}, "Not read"),
        ("ask", {"question": " "}, "no question"),
        ("ask", {"question": QUESTION, "pipeline": "../../etc/x.toml"}, "is not one of"),
        ("ask", {"question": QUESTION, "max_usd": -1}, "minimum"),
        ("ask", {"question": QUESTION, "max_usd": "none"}, "is not of type 'number'"),
        ("ask", {"question": QUESTION, "more": 1}, "more"),
        ("ask", {}, "required"),
        ("search", {"query": "x" * 301}, "too long"),
        ("shell", {}, "there is no tool"),
    ]
    async with client(kept) as session:
        for name, arguments, said in wrong:
            told = await session.call_tool(name, arguments)
            assert told.is_error, (name, arguments)
            assert said in told.content[0].text
        assert not (await session.call_tool("ask", {"question": QUESTION, "pipeline": "snippets"})).is_error


def test_stdout_carries_the_protocol_and_nothing_else(kept: Path) -> None:
    calls = [("ask", {"question": QUESTION}), ("search", {"query": "inflation"}), ("nope", {})]
    asked = [{"jsonrpc": "2.0", "id": place, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
             for place, (name, arguments) in enumerate(calls, start=2)]  # fmt: skip
    said = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *asked]
    process = subprocess.Popen(
        [*RUN, "mcp", "--offline"], env=environment(kept), cwd=kept, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"no JSON\n" + b"".join(json.dumps(one).encode() + b"\n" for one in said))
    process.stdin.flush()
    answers: dict[Any, Any] = {}
    while not {1, 2, 3, 4} <= answers.keys():
        message = json.loads(process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        answers[message.get("id")] = message
    rest, notices = process.communicate(timeout=30)
    assert process.returncode == 0
    assert rest == b""
    assert b"Traceback" not in notices
    assert "3.0 percent" in answers[2]["result"]["content"][0]["text"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_though_its_client_stays_and_a_call_is_on_its_way(number: signal.Signals, kept: Path) -> None:
    process = subprocess.Popen(
        [*RUN, "mcp", "--offline"], env=environment(kept), cwd=kept, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    assert b"serverInfo" in process.stdout.readline()
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n")
    process.stdin.write(calling(2, "ask", json.dumps({"question": f"{QUESTION} ({number})"})) + b"\n")
    process.stdin.flush()
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number
    assert b"Traceback" not in process.communicate()[1]


async def test_streams_that_break_while_the_session_is_stopped_are_the_stop_and_otherwise_a_fault() -> None:
    import anyio

    from research.serving.protocol import _unless_stopped

    broken = ExceptionGroup("", [ExceptionGroup("", [anyio.BrokenResourceError()]), anyio.ClosedResourceError()])
    worse = ExceptionGroup("", [broken, ZeroDivisionError()])

    async def ends(faults: ExceptionGroup[Exception]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            _unless_stopped(faults)

    with pytest.raises(ExceptionGroup):
        _unless_stopped(broken)
    for faults, wanted in ((broken, asyncio.CancelledError), (worse, ExceptionGroup)):
        task = asyncio.ensure_future(ends(faults))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(wanted):
            await task


# What is no message ---------------------------------------------------------------------------


def calling(number: int | str, name: str, arguments: str) -> bytes:
    """A call, with arguments that may be no JSON."""
    head = f'{{"jsonrpc": "2.0", "id": {json.dumps(number)}, "method": "tools/call", "params": '
    return f'{head}{{"name": "{name}", "arguments": {arguments}}}}}'.encode()


DEEP = '{"query": ' + "[" * 3_000 + "]" * 3_000 + "}"
LONG = json.dumps({"query": "x" * LONGEST})


@pytest.mark.parametrize(
    ("line", "number", "said"),
    [
        (calling(7, "search", '{"query": "\\ud800"}'), 7, UNREAD),
        (calling("seven", "search", DEEP), "seven", UNREAD),
        (calling(7, "search", LONG), 7, TOO_LONG),
        (b'{"method": "tools/call", "params": %s, "jsonrpc": "2.0", "id": 7}' % LONG.encode(), 7, TOO_LONG),
        (b'{"method": "tools/call", "params": %s, "id": 7, "jsonrpc": "2.0"}' % DEEP.encode(), 7, UNREAD),
        (b'{"jsonrpc": "2.0", "id": 7}', 7, UNFIT),
        (b'{"jsonrpc": "2.0", "id": true}', None, UNFIT),
        (b"[]", None, UNFIT),
        (b"\xff\x00", None, UNREAD),
        (b'{"id": ' + b"9" * 5_000 + b"}", None, UNREAD),
        (b"[" * 200_000, None, UNREAD),
        (b'"id":' * 200_000, None, UNREAD),
    ],
)  # fmt: skip
async def test_what_is_no_message_is_answered_and_the_next_one_is_read(line: bytes, number: Any, said: str) -> None:
    answered: list[Any] = []
    reader = asyncio.StreamReader()
    lines = Lines(reader)
    lines.answers = type("Stream", (), {"send": staticmethod(lambda sent: asyncio.sleep(0, answered.append(sent)))})
    good = calling(9, "search", '{"query": "x"}')
    reader.feed_data(b"\n \r\n" + line + b"\r\n" + good)
    reader.feed_eof()
    assert [one.strip() async for one in lines] == [good.decode()]
    [answer] = answered
    assert (answer.message.id, answer.message.error.message) == (number, said)


def test_a_line_of_any_length_holds_no_more_than_a_line() -> None:
    async def read() -> list[tuple[int, int, bytes]]:
        reader = asyncio.StreamReader()
        for chunk in (b"a" * (3 * LONGEST), b"b" * LONGEST, b"c\nd" * 2, b"\n"):
            reader.feed_data(chunk)
        reader.feed_eof()
        return [(len(held), length, held[-2:]) async for held, length in Lines(reader)._cut()]

    assert asyncio.run(read()) == [(LONGEST, 4 * LONGEST + 1, b"bc"), (2, 2, b"dc"), (1, 1, b"d"), (0, 0, b"")]


def test_without_the_sdk_the_command_says_how_to_install_it(kept: Path) -> None:
    blocked = "import sys; sys.modules['mcp'] = None; from research.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", blocked, "mcp", "--offline"], env=environment(kept), cwd=kept,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'mcp >= 2.3, < 3'" in done.stderr
    assert done.stdout == ""


def test_nothing_else_imports_the_sdk(kept: Path) -> None:
    code = (
        "import sys; from research.cli.ending import exit_code; from research.cli.commands import app; exit_code(app);"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'anyio')"
        " or name.startswith(('research.mcp', 'research.serving'))], file=sys.stderr)"
    )
    for _ in range(2):  # made, then from the store
        done = subprocess.run(
            [sys.executable, "-c", code, "ask", "-p", "tool-use", "--offline", QUESTION], env=environment(kept),
            cwd=kept, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.stderr.splitlines()[-1] == "[]", done.stderr


# Limits ---------------------------------------------------------------------------------------


def session(folder: Path, max_usd: str, price: int) -> Any:
    """A session whose every model call costs `price` nano-dollars."""
    from research.serving.session import Serving

    laboratory = Laboratory(folder)
    laboratory.app.price = lambda _model, _usage: price
    laboratory.app.settings = Settings(folder, max_usd=max_usd)
    serving = Serving(laboratory.app.settings, Tiers(laboratory.app.settings), laboratory.app, laboratory.web)
    return serving, laboratory


async def test_a_session_spends_no_more_than_the_user_lets_it(tmp_path: Path) -> None:
    """Each model call costs a cent, each answer takes several, and ten may be made."""
    serving, laboratory = session(tmp_path, "0.10", 10_000_000)
    first = await serving.call("ask", {"question": "How tall is the tower of Ulm?"})
    spent = serving.account.spent()[0]
    assert not first.failed
    assert spent == 10_000_000 * (len(laboratory.cheap.requests) + len(laboratory.capable.requests)) > 0
    for number in range(5):
        await serving.call("ask", {"question": f"How tall is tower {number}?", "max_usd": 1_000})
    assert serving.account.spent()[0] <= 100_000_000
    assert 10_000_000 * (len(laboratory.cheap.requests) + len(laboratory.capable.requests)) <= 100_000_000


async def test_control_characters_of_a_query_are_not_given_back(tmp_path: Path) -> None:
    serving, laboratory = session(tmp_path, "none", 0)
    for query in ("ulm\x1b]52;c;x\x07 <|im_start|>tower\u202e", "\x1b[2Jzzz"):
        told = await serving.call("search", {"query": query})
        assert not told.failed
        assert not any(char in told.text for char in "\x1b\x07\u202e")
        assert "<|" not in told.text
    assert laboratory.web.calls["search"] == 2


async def test_questions_that_are_cancelled_count_with_all_that_they_can_have_cost(tmp_path: Path) -> None:
    """The model never answers; each client leaves when its call has been sent. Calls cost a cent, ten may be made."""
    serving, laboratory = session(tmp_path, "0.10", 10_000_000)
    sent = asyncio.Queue[int]()
    calls: list[str] = []

    async def complete(request: Any, account: Any, on_text: Any = None) -> Any:
        settle = await account.reserve(Usage(input=10, output=10))
        calls.append("sent")
        sent.put_nowait(len(calls))
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            for _ in range(50):  # a connection takes a while to close
                await asyncio.sleep(0)
            settle(Attempt(None, billed=True, failed="cancelled"))
            raise

    laboratory.cheap.complete = laboratory.capable.complete = complete
    for number in range(20):
        call = asyncio.ensure_future(serving.call("ask", {"question": f"How tall is tower {number}?"}))
        first = asyncio.ensure_future(sent.get())
        await asyncio.wait([call, first], return_when=asyncio.FIRST_COMPLETED)
        if call.done():
            break
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert serving.account.spent()[0] == 10_000_000 * len(calls)
    else:
        pytest.fail("no call was refused")
    first.cancel()
    assert 5 < len(calls) <= 10
    assert "budget reached" in call.result().text


async def test_a_question_lowers_the_limit_and_spends_nothing_beyond(tmp_path: Path) -> None:
    serving, laboratory = session(tmp_path, "1", 10_000_000)
    told = await serving.call("ask", {"question": "How tall is the tower of Ulm?", "max_usd": 0.005})
    assert told.failed
    assert "budget reached" in told.text
    assert not laboratory.cheap.requests
    assert serving.account.spent() == (0, 0)


async def test_what_fails_is_told_and_what_it_cost_counts(tmp_path: Path) -> None:
    from research.llm.scripted import ScriptedModel

    serving, laboratory = session(tmp_path, "1", 10_000_000)
    laboratory.capable._script = ScriptedModel([OverloadedError("busy <|im_start|>")])._script
    told = await serving.call("ask", {"question": "How tall is the tower of Ulm?"})
    assert told.failed
    assert "busy ＜|im_start|>" in told.text
    assert serving.account.spent()[0] >= 10_000_000


async def test_a_page_that_an_answer_read_is_not_read_again(tmp_path: Path) -> None:
    serving, laboratory = session(tmp_path, "none", 0)
    await serving.call("search", {"query": "ulm tower"})
    assert laboratory.web.calls["search"] == 1
    url = "https://ulmtower.example/1"
    await asyncio.gather(*(serving.call("fetch", {"url": url}) for _ in range(3)))
    assert laboratory.web.calls["fetch"] == 1
    await serving.call("ask", {"question": "How tall is the tower of Ulm?", "pipeline": "tool-use"})
    assert laboratory.web.calls == {"search": 2, "fetch": 3}, "one search and one page of the loop's were there"
    blocked = await serving.call("fetch", {"url": "https://ulmtower.example/2"})
    assert (blocked.failed, blocked.text) == (True, "It can't be read: blocked.")


async def test_only_the_user_lets_any_address_be_read(tmp_path: Path) -> None:
    serving, laboratory = session(tmp_path, "none", 0)
    assert (await serving.call("fetch", {"url": "https://other.example/1"})).failed
    assert not laboratory.web.calls
    serving.any_address = True
    assert not (await serving.call("fetch", {"url": "https://other.example/1"})).failed
