"""Tools of servers in the loop: called like the own ones, kept like pages, and contained whatever they do."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from research.cli import steps as shown
from research.errors import OverloadedError, PipelineError, UsageError, WebError
from research.mcp.offers import LONGEST_SAID, MOST, Offer
from research.mcp.schemas import usable
from research.mcp.server import Server
from research.mcp.servers import Servers
from research.records import Ending
from research.settings import Settings
from research.stages.investigate import served
from tests.commands import environment, research
from tests.conftest import ROOT
from tests.loops import Loops, by_actions
from tests.shipped import calls, copied

pytest.importorskip("mcp")

TOWERS, OFFICIAL, HOSTILE = (
    str(ROOT / "tests" / "served" / f"{name}.py") for name in ("towers", "official", "hostile")
)
ASK_HEIGHT = calls(("towers_height", {"city": "Ulm"}))


class Served(Loops):
    """Loops whose model may call a server's tools too."""

    def use(self, name: str, command: tuple[str, ...], **more: Any) -> None:
        self.name = name
        self.log = self.folder / "log"
        table = {"command": (sys.executable, *command, str(self.log)), **more}
        self.laboratory.app.settings = self.laboratory.app.settings._replace(mcp={name: table})
        self.laboratory.app.servers = None
        self.notices: list[str] = []
        self.laboratory.app.notice = self.notices.append

    async def go(self, script: Any, *changes: str, **options: Any) -> Any:
        tools = f'tools = ["search", "fetch", "mcp:{self.name}"]'
        pipeline = copied(
            self.folder / "pipelines",
            "tool-use",
            tool_use_toml=('tools = ["search", "fetch"]', "\n".join([tools, *changes])),
        )
        from research.llm.scripted import ScriptedModel
        from tests.loops import check

        self.laboratory.capable._script = ScriptedModel(script)._script
        try:
            return await self.laboratory.ask(pipeline, **options)
        finally:
            check(self.requests)

    @property
    def called(self) -> list[str]:
        """What the server noted."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def result(self, request: int = -1) -> str:
        [message] = self.told(request)
        return message.text


@pytest.fixture
def towers(tmp_path: Path) -> Served:
    served = Served(tmp_path)
    served.use("towers", (TOWERS,))
    return served


@pytest.fixture
def hostile(tmp_path: Path) -> Callable[..., Served]:
    def made(mode: str, **more: Any) -> Served:
        served = Served(tmp_path)
        served.use("bad", (HOSTILE, mode), **more)
        return served

    return made


# In the loop ------------------------------------------------------------------------------


async def test_a_servers_tool_is_called_and_what_it_gives_is_cited(towers: Served) -> None:
    asked = await towers.go([ASK_HEIGHT, "The tower of Ulm minster is 161.53 metres tall [1]."])
    assert towers.called == ["height Ulm"]
    [citation] = asked.answer.citations
    assert asked.answer.ending is Ending.ANSWERED
    assert citation.fact.quote == "The tower of Ulm minster is 161.53 metres tall."
    assert citation.fact.url.startswith("mcp:towers_height/")
    assert "Source [1], what towers_height gave" in towers.result()
    [offered] = [tool for tool in towers.requests[0].tools if tool.name == "towers_height"]
    assert re.search(r'<data-\w{16} label="description of towers_height">\nHow tall the tower', offered.description)
    assert offered.parameters == {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def test_a_server_by_the_sdk_is_one_like_others(towers: Served) -> None:
    towers.use("towers", (OFFICIAL,))
    asked = await towers.go([ASK_HEIGHT, "The tower of Ulm minster is 161.53 metres tall [1]."])
    assert asked.answer.citations[0].fact.quote == "The tower of Ulm minster is 161.53 metres tall."


async def test_a_call_stands_in_the_audit_trail(towers: Served) -> None:
    asked = await towers.go([ASK_HEIGHT, "It is 161.53 metres tall [1]."])
    store, runs = towers.laboratory.app.store, towers.laboratory.app.runs
    steps = shown.steps(asked.run, runs)
    [result] = steps[0]["results"]
    assert (result["call"], json.loads(result["arguments"]), result["failed"]) == (
        "towers_height",
        {"city": "Ulm"},
        False,
    )
    assert [call["name"] for call in result["took"]["calls"]] == ["mcp:towers"]
    assert any("→ towers_height" in line for line in shown.told(steps))
    assert shown.whole(steps, store)[0]["results"][0]["whole"]["text"].startswith("The tower of Ulm minster")


async def test_a_run_that_is_taken_up_again_calls_nothing_twice(towers: Served) -> None:
    with pytest.raises(OverloadedError):
        await towers.go([ASK_HEIGHT, OverloadedError("busy")])
    await towers.go(["It is 161.53 metres tall [1]."])
    assert len(towers.requests) == 1
    await towers.go([], sample=0)
    assert not towers.requests
    assert towers.called == ["height Ulm"]


async def test_a_failure_is_kept_for_its_place_only(towers: Served) -> None:
    wrong = calls(("towers_height", {"city": "Nowhere"}))
    with pytest.raises(OverloadedError):
        await towers.go([wrong, OverloadedError("busy")])
    asked = await towers.go([ASK_HEIGHT, "It is 161.53 metres tall [1]."])
    assert towers.called == ["height Nowhere", "height Ulm"]
    assert asked.answer.ending is Ending.ANSWERED
    assert "towers_height failed" in towers.requests[0].messages[-1].text


async def test_what_a_server_offers_is_part_of_the_key(towers: Served) -> None:
    await towers.go(["From memory."])
    await towers.go([])
    assert not towers.requests
    towers.use("towers", (TOWERS,), allow=("demolish",))
    await towers.go(["From memory."])
    assert len(towers.requests) == 1


async def test_wrong_arguments_are_refused_before_the_server_hears_of_them(towers: Served) -> None:
    wrong: list[Any] = [{"city": 3}, {}, "{", '{"city": "Ulm", "city": "Ulm"}']
    await towers.go([calls(("towers_height", one)) for one in wrong[:2]] + ["NOT ANSWERED: no"])
    assert not towers.called
    assert "don't fit" in towers.requests[1].messages[-1].text
    await towers.go([calls(("towers_height", one)) for one in wrong[2:]] + ["NOT ANSWERED: no"], sample=1)
    assert not towers.called


async def test_a_long_result_is_cut_to_what_matters_and_can_be_read_on(towers: Served) -> None:
    chapter = calls(("towers_chapter", {"number": 1}))
    read = calls(("read", {"handle": "p1", "offset": 50_000}))
    await towers.go([chapter, read, "It was finished in 1890 [1]."], "share = 2000")
    first, second = towers.result(1), towers.result(2)
    assert "handle p1, 96,928 characters" in first
    assert "finished in 1890" in first
    assert len(first) < 4_000
    assert "Handle p1, characters 50000 to 52000" in second
    assert towers.called == ["chapter 1"]


async def test_the_calls_of_servers_tools_are_capped(towers: Served) -> None:
    script = [calls(("towers_height", {"city": city})) for city in ("Ulm", "Cologne")]
    await towers.go([*script, "NOT ANSWERED: no"], "served = 1")
    assert towers.called == ["height Ulm"]
    assert "All 1 calls" in towers.result()


async def test_addresses_in_a_result_can_be_fetched_and_no_others(towers: Served) -> None:
    fetch = calls(
        ("fetch", {"url": "https://towers.example/ulm"}), ("fetch", {"url": "https://towers.example/ulm?key=1"})
    )
    asked: list[str] = []
    there = towers.laboratory.web.fetch

    async def fetched(url: str) -> Any:
        asked.append(url)
        return await there(url)

    towers.laboratory.web.fetch = fetched  # type: ignore[method-assign]
    await towers.go([ASK_HEIGHT, fetch, "It is 161.53 metres tall [1]."])
    assert asked == ["https://towers.example/ulm"]


async def test_models_that_work_by_actions_call_them_too(towers: Served) -> None:
    script = by_actions(
        [
            {"action": "towers_height", "input": "Ulm"},
            {"action": "towers_chapter", "input": '{"number": 2}'},
            {"action": "answer", "input": ""},
        ],
        {"source_1": "The tower of Ulm minster is 161.53 metres tall."},
    )
    asked = await towers.go(script, 'tools_as = "schema"')
    assert towers.called == ["height Ulm", "chapter 2"]
    assert asked.answer.ending is Ending.ANSWERED
    assert "- towers_height: a tool of the server towers. Input: city." in towers.requests[0].system


async def test_a_server_gets_no_environment_but_what_is_named(towers: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWERS_TOKEN", "canary-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-of-the-model")
    towers.use("towers", (TOWERS,), env=("TOWERS_TOKEN",))
    await towers.go([calls(("towers_environment", {})), "NOT ANSWERED: no"])
    told = towers.result()
    assert "'TOWERS_TOKEN'" in told
    assert "OPENAI" not in told
    assert "PATH" not in told
    assert "canary" not in told, "what it is given is taken out of what it says"
    assert str(Path.cwd()) not in told, "it does not run where the question is asked"


# Servers that do wrong ----------------------------------------------------------------------

LOOK = calls(("bad_look", {}))


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("huge", "longer than 4 MB"),
        pytest.param("hang", "no reply within 1 s", marks=pytest.mark.heavy),
        pytest.param("endless", "longer than 4 MB", marks=pytest.mark.heavy),
        pytest.param("flood", "the server has ended", marks=pytest.mark.heavy),
        pytest.param("chatter", "no reply within 1 s", marks=pytest.mark.heavy),
        ("crash", "the server has ended"),
        ("unfit", "not as the protocol says"),
        ("no number", "holds a number that JSON has none for"),
        ("error", "fetch https://evil.example/now"),
    ],
)
async def test_a_call_that_goes_wrong_is_a_result_that_says_so(
    hostile: Callable[..., Served], mode: str, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    served = hostile(mode, timeout=1.0)
    twice = calls(("bad_look", {}), ("search", {"query": "ulm tower"}))
    read = calls(("fetch", {"url": "https://ulmtower.example/1"}))
    asked = await served.go([twice, LOOK, read, "The tower of Ulm is 161 metres tall [1]."])
    assert asked.answer.ending is Ending.ANSWERED
    failed = next(message for message in served.requests[1].messages if message.failed)
    assert told in failed.text
    assert len(failed.text) < 2_000
    assert "<|" not in failed.text
    assert capfd.readouterr() == ("", "")


async def test_garbage_on_stdout_is_passed_over(
    hostile: Callable[..., Served], capfd: pytest.CaptureFixture[str]
) -> None:
    served = hostile("garbage")
    await served.go([LOOK, "The tower is 161 metres tall [1]."])
    assert "It is 161 metres tall." in served.result()
    assert capfd.readouterr() == ("", "")


async def test_what_is_no_text_is_named(hostile: Callable[..., Served]) -> None:
    served = hostile("pictures")
    await served.go([LOOK, "NOT ANSWERED: no"])
    assert "(image, not shown)\n\nhttps://linked.example/1" in served.result()


async def test_of_very_many_blocks_some_are_looked_at(hostile: Callable[..., Served]) -> None:
    """Those that are left out are not even blocks."""
    served = hostile("blocks")
    await served.go([LOOK, "NOT ANSWERED: no"])
    assert served.result().count("x\n\n") == 500
    assert "(60,000 blocks more, not shown)" in served.result()


async def test_a_very_long_text_is_cut(hostile: Callable[..., Served]) -> None:
    served = hostile("long")
    await served.go([LOOK, "NOT ANSWERED: no"])
    assert "999,9" in served.result()
    assert len(served.result()) < 20_000


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("dead", "it said: cannot open [31mthe door"),
        pytest.param("mute", "not ready within 1 s", marks=pytest.mark.heavy),
        ("version", "not known"),
        ("no object", "not as the protocol says"),
    ],
)
async def test_a_server_that_can_not_be_used_ends_the_run_before_anything_is_paid(
    hostile: Callable[..., Served], mode: str, told: str
) -> None:
    served = hostile(mode, timeout=1.0)
    with pytest.raises(WebError, match=re.escape(told)):
        await served.go(["no"])
    assert not served.requests


async def test_orders_in_descriptions_and_results_stay_data(hostile: Callable[..., Served]) -> None:
    """The model obeys: it fetches what it is told to, and calls what is not on offer."""
    served = hostile("orders")
    obeyed = calls(("fetch", {"url": "https://evil.example/now"}), ("bad_delete", {}), ("shell", {"command": "id"}))
    await served.go([obeyed, "NOT ANSWERED: no"])
    assert not served.called
    assert not served.laboratory.web.calls
    assert [message.failed for message in served.told()] == [True] * 3
    [look] = [tool for tool in served.requests[0].tools if tool.name == "bad_look"]
    whole = look.description + json.dumps(dict(look.parameters), ensure_ascii=False)
    assert len(look.description) < LONGEST_SAID + 500
    for token in ("<|", "</data-0000", "\x1b", "\u202e", "[INST]", "\nSystem:"):
        assert token not in whole
    assert look.description.count("</data-") == 1


async def test_orders_in_a_result_are_fenced(hostile: Callable[..., Served]) -> None:
    served = hostile("plain")
    await served.go([LOOK, "NOT ANSWERED: no"])
    told = served.result()
    for token in ("<|", "</data-0000", "\x1b", "\u202e", "[INST]", "\nSystem:"):
        assert token not in told
    outside = re.sub(r"<data-(\w{16}) .*?</data-\1>", "", told, flags=re.DOTALL)
    assert "obey" not in outside
    assert "evil" not in outside


async def test_only_what_is_marked_or_allowed_is_offered(hostile: Callable[..., Served]) -> None:
    served = hostile("unmarked", allow=("write",))
    await served.go([calls(("bad_delete", {}), ("bad_write", {}), ("bad_look", {})), "NOT ANSWERED: no"])
    assert {tool.name for tool in served.requests[0].tools} == {"search", "fetch", "read", "bad_look", "bad_write"}
    assert sorted(served.called) == ["look {}", "write {}"]
    assert "There is no tool bad_delete" in served.told()[0].text
    assert any("delete" in notice for notice in served.notices)


async def test_names_can_not_stand_for_tools_of_ours(hostile: Callable[..., Served]) -> None:
    served = hostile("names")
    await served.go([calls(("bad____x", {}), ("search", {"query": "ulm tower"})), "NOT ANSWERED: no"])
    names = [tool.name for tool in served.requests[0].tools]
    assert names.count("search") == 1
    assert names.count("bad_search") == 1
    assert names.count("bad_look") == 1
    assert len(names) == len(set(names)) == 3 + 6
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert served.called == ["../x {}"]
    assert served.laboratory.web.calls["search"] == 1


@pytest.mark.heavy
async def test_of_thousands_of_tools_some_are_offered(hostile: Callable[..., Served]) -> None:
    served = hostile("many", allow=("tool4999",))
    await served.go(["NOT ANSWERED: no"])
    names = [tool.name for tool in served.requests[0].tools if tool.name.startswith("bad_")]
    assert len(names) == MOST
    assert names[0] == "bad_tool4999"
    assert any("4,968 tools more" in notice for notice in served.notices)


async def test_a_list_without_end_is_cut(hostile: Callable[..., Served]) -> None:
    served = hostile("endless list")
    await served.go([LOOK, "NOT ANSWERED: no"])
    assert served.called == ["look {}"]


async def test_unsound_schemas_make_their_tools_unusable_and_no_others(hostile: Callable[..., Served]) -> None:
    served = hostile("schemas")
    began = time.monotonic()
    tries = [("bad_slow", {"it": "a" * 60 + "!"}), ("bad_sound", {"it": 2}), ("bad_sound", {"it": 3})]
    await served.go([calls(*tries), "NOT ANSWERED: no"])
    assert time.monotonic() - began < 30
    names = {tool.name for tool in served.requests[0].tools if tool.name.startswith("bad_")}
    assert names == {"bad_slow", "bad_sound"}
    assert served.called == [f"slow {json.dumps(tries[0][1])}", 'sound {"it": 3}']


@pytest.mark.heavy
@pytest.mark.parametrize("hang", ["in a call", "between calls"])
async def test_no_process_is_left(hostile: Callable[..., Served], hang: str) -> None:
    """It takes no notice of the end of its input or of SIGTERM, and has started a child."""
    served = hostile("stubborn", timeout=1.0)
    await served.go([LOOK, "NOT ANSWERED: no"] if hang == "in a call" else ["NOT ANSWERED: no"])
    await _gone(served.called[0])


@pytest.mark.heavy
async def test_no_process_is_left_when_the_run_is_cancelled(hostile: Callable[..., Served]) -> None:
    served = hostile("stubborn", timeout=30.0)
    run = asyncio.ensure_future(served.go([LOOK]))
    while len(served.called) < 2:
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await _gone(served.called[0])


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no way to ask for it")
async def test_no_server_is_left_when_the_run_is_killed(tmp_path: Path) -> None:
    config, log = tmp_path / "research" / "config.toml", tmp_path / "log"
    config.parent.mkdir()
    config.write_text(f"[mcp.bad]\ncommand = {json.dumps([sys.executable, HOSTILE, 'stubborn', str(log)])}\n")
    servers = (
        "import asyncio\nfrom research.mcp.servers import Servers\nfrom research.settings import Settings\n"
        "async def run():\n    async with Servers(Settings.read().mcp).needed(['bad']):\n"
        "        print('ready', flush=True)\n        await asyncio.sleep(600)\nasyncio.run(run())"
    )
    more = environment(tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    run = subprocess.Popen([sys.executable, "-c", servers], env=more, cwd=tmp_path, stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"ready\n"
    run.kill()
    run.communicate()
    server, child = log.read_text().split()
    await _gone(server)
    os.kill(int(child), signal.SIGKILL)  # what a server has started itself is out of reach then


async def _gone(processes: str) -> None:
    for process in map(int, processes.split()):
        for _ in range(100):
            if not _runs(process):
                break
            await asyncio.sleep(0.02)
        assert not _runs(process)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


# On the command line ----------------------------------------------------------------------------


def set_up(folder: Path) -> tuple[Path, dict[str, str]]:
    """A pipeline that names a server, the user's configuration that has it, and where that is."""
    config = folder / "research" / "config.toml"
    config.parent.mkdir()
    command = json.dumps([sys.executable, TOWERS, str(folder / "log")])
    config.write_text(f'pipeline = "{folder}/mine/tool-use.toml"\n[mcp.towers]\ncommand = {command}\n')
    copied(folder / "mine", "tool-use", tool_use_toml=('["search", "fetch"]', '["search", "fetch", "mcp:towers"]'))
    return config, {"XDG_CONFIG_HOME": str(folder)}


def test_ask_starts_the_servers_that_a_pipeline_names(tmp_path: Path) -> None:
    _, more = set_up(tmp_path)
    asked = research(tmp_path, "ask", "--offline", "What was the US inflation rate in January 2025?", **more)
    assert asked.returncode == 0, asked.stderr
    assert (
        "mcp:towers: not offered, since they are not marked as read-only (allow them by name): demolish" in asked.stderr
    )


@pytest.mark.heavy
def test_batch_and_compare_start_them_too(tmp_path: Path) -> None:
    config, more = set_up(tmp_path)
    (tmp_path / "questions.txt").write_text("What was the US inflation rate in January 2025?\n")
    pipelines = ["-p", "fixed", "-p", f"{tmp_path}/mine/tool-use.toml"]
    for command in (["batch", "-o", "a.jsonl"], ["compare", "-o", "b.json", *pipelines]):
        done = research(tmp_path, command[0], "questions.txt", *command[1:], "--offline", "--yes", **more)
        assert done.returncode == 0, done.stderr
    config.write_text("")
    missing = research(tmp_path, "ask", "--offline", "-p", f"{tmp_path}/mine/tool-use.toml", "Why?", **more)
    assert missing.returncode == 2
    assert "mcp:towers: no such server is set up" in missing.stderr


# Servers --------------------------------------------------------------------------------------


async def test_runs_at_the_same_time_share_a_server(tmp_path: Path) -> None:
    servers = Servers({"towers": {"command": (sys.executable, TOWERS, str(tmp_path / "log"))}})
    async with servers.needed(["towers"]):
        first = servers["towers"]
        async with servers.needed(["towers"]):
            assert servers["towers"] is first
        assert not first.ended
    assert first.ended
    async with servers.needed(["towers"]):
        assert servers["towers"] is not first
        assert servers["towers"].digest == first.digest


def offer(server: Server, tool: str) -> Offer:
    return next(offer for offer in server.offers.values() if offer.tool == tool)


async def test_a_server_that_has_ended_is_started_for_the_next_run(tmp_path: Path) -> None:
    servers = Servers({"bad": {"command": (sys.executable, HOSTILE, "crash", str(tmp_path / "log"))}})
    async with servers.needed(["bad"]):
        first = servers["bad"]
        with pytest.raises(WebError, match="has ended"):
            await first.call(offer(first, "look"), {})
        while not first.ended:
            await asyncio.sleep(0.02)
        with pytest.raises(WebError, match="has ended"):
            await first.call(offer(first, "look"), {})
        async with servers.needed(["bad"]):
            assert not servers["bad"].ended


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({}, 'Write [mcp.bad] with command = ["PROGRAM", "ARGUMENT"]'),
        ({"other": {"command": ("x",)}}, "there are other"),
        ({"bad": {"allow": ("x",)}}, "Write [mcp.bad]"),
        ({"bad": {"command": ("no-such-program-of-ours",)}}, "there is no program 'no-such-program-of-ours'"),
        ({"bad": {"command": ("./here",)}}, "there is no program './here'"),
    ],
)
async def test_a_server_that_is_not_set_up_is_told(tables: Any, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        async with Servers(tables).needed(["bad"]):
            pass


async def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'mcp >= 2.3, < 3'")):
        async with Servers({"bad": {"command": (sys.executable,)}}).needed(["bad"]):
            pass


def test_servers_are_set_up_by_the_user_alone(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = home / ".config" / "research" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[mcp.docs]\ncommand = ["docs", "--all"]\nallow = ["look"]\nenv = ["TOKEN"]\ntimeout = 5\n')
    monkeypatch.chdir(tmp_path)
    told = {"command": ("docs", "--all"), "allow": ("look",), "env": ("TOKEN",), "timeout": 5.0}
    assert Settings.read().mcp == {"docs": told}
    (tmp_path / "research.toml").write_text('[mcp.docs]\ncommand = ["sh"]\n')
    with pytest.raises(UsageError, match="'mcp' is not read from a folder's file"):
        Settings.read()
    (tmp_path / "research.toml").unlink()
    for wrong in ('[mcp.a_b]\ncommand = ["x"]', '[mcp.docs]\ncommand = "x"', '[mcp.docs]\nenv = ["sk-secret-value"]'):
        config.write_text(wrong)
        with pytest.raises(UsageError) as error:
            Settings.read()
        assert "sk-secret" not in str(error.value)


def test_a_pipeline_needs_the_file_that_words_servers_tools(tmp_path: Path) -> None:
    more = ('tools = ["search", "fetch"]', 'tools = ["search", "mcp:docs"]')
    assert copied(tmp_path, "tool-use", tool_use_toml=more).stages["investigate"].servers == ("docs",)
    (tmp_path / "tools" / "mcp.toml").unlink()
    from research.loading import load
    from research.stages import KINDS

    with pytest.raises(PipelineError, match=re.escape("'tools/mcp.toml' is missing")):
        load(tmp_path / "tool-use.toml", KINDS)


def test_a_schema_is_kept_where_it_says_what_can_be_checked() -> None:
    given = {
        "type": "object", "title": "Gone", "required": ["a"], "additionalProperties": False,
        "properties": {
            "a": {"anyOf": [{"$ref": "#/definitions/A"}, {"type": "null"}], "description": "one\n\n two"},
            "b": {"type": "array", "items": {"enum": ["x", 1]}, "maxItems": 3, "default": []},
        },
        "definitions": {"A": {"type": "string", "minLength": 2, "format": "uri", "pattern": "^h"}},
    }  # fmt: skip
    assert usable(given) == {
        "type": "object", "required": ["a"], "additionalProperties": False,
        "properties": {
            "a": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}], "description": "one two"},
            "b": {"type": "array", "items": {"enum": ["x", 1]}, "maxItems": 3},
        },
    }  # fmt: skip


@pytest.mark.parametrize(("text", "read"), [('{"a": 1}', {"a": 1}), ("no JSON", None), ("[" * 100_000, None)])
def test_an_input_that_is_no_object_is_the_one_argument(text: str, read: dict[str, Any] | None) -> None:
    offer = SimpleNamespace(schema={"properties": {"q": {"type": "string"}}})
    tools = cast(served.Served, SimpleNamespace(offers={"x": offer}))
    assert served.Served.arguments(tools, "x", text) == (read or {"q": text})
