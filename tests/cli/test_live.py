"""Live questions from the command line to a cited answer, through a replica of engines and sites on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from research.journal import read
from tests import faults
from tests.commands import QUESTION, RUN, environment
from tests.replica import Found, Replica, page, results

OUTCOMES = re.compile(r"^10 found, \d read \(1 PDF\), 1 gone, 2 blocked, 1 too large, \d cited\.$", re.MULTILINE)
ASK = ("ask", "--search", "duckduckgo,wikipedia", "--as-of", "2025-03-01")


def journal(home: Path) -> list[dict[str, object]]:
    return list(read(max((home / "runs").iterdir()) / "journal.jsonl"))


async def test_from_question_to_cited_answer_past_everything_that_goes_wrong(tmp_path: Path) -> None:
    async with Replica() as web:
        done = await web.research(tmp_path, *ASK, QUESTION)
        assert done.returncode == 0, done.stderr
        assert "3.0 percent" in done.stdout
        assert f"http://{web.place}/cpi" in done.stdout
        assert f"fixed over the live web by duckduckgo@{web.place},wikipedia@{web.place}" in done.stderr
        assert OUTCOMES.search(done.stderr)
        assert {"/gone", "/cpi", "/closed", "/loop", "/bomb", "/table.pdf"} <= {*web.paths()}
        assert len(web.paths()) == len({*web.paths()}) <= 10  # each once, and none beyond the ten that were asked for
        for server in web.servers.values():
            assert server.peak <= 3  # two pages, and an engine
            server.requests.clear()
        dropped = {str(line["reason"]).partition(":")[0] for line in journal(tmp_path) if line["event"] == "dropped"}
        assert dropped == {"gone", "blocked", "too large"}
        warm = await web.research(tmp_path, *ASK, QUESTION)
        assert warm.stdout == done.stdout
        assert OUTCOMES.search(done.stderr)[0] in warm.stderr  # type: ignore[index]
        assert [path for server in web.servers.values() for path in server.paths()] == []


async def test_a_captcha_on_the_first_engine_falls_through_to_the_second_and_says_so(tmp_path: Path) -> None:
    async with Replica(captcha=True) as web:
        done = await web.research(tmp_path, *ASK, QUESTION)
        assert done.returncode == 0, done.stderr
        assert f"http://{web.place}/wiki/Inflation_in_the_United_States" in done.stdout
        told = f"kipped duckduckgo@{web.place}: captcha: it asks for a captcha; wait an hour, or choose another engine"
        assert done.stderr.count(f"s{told}") == 1  # when it happens,
        assert done.stderr.count(f"S{told}") == 1  # and under the answer,
        warm = await web.research(tmp_path, *ASK, QUESTION)
        assert warm.stderr.count(f"S{told}") == 1  # also when that is given again
        calls = [
            call for line in journal(tmp_path) if line["event"] == "reused" for call in line["receipt"].get("calls", [])
        ]  # type: ignore[attr-defined]
        assert {call["name"] for call in calls if call["what"] == "search"} == {f"wikipedia@{web.place}"}


async def test_a_straggler_is_left_behind_and_told(tmp_path: Path) -> None:
    late = Found(
        "/never", "US inflation rate, January 2025, compared with a year ago", "It was 3.0 percent.", faults.hang()
    )
    file = shipped(tmp_path, patience=1)
    async with Replica([late, *results()[1:4]]) as web:
        done = await web.research(tmp_path, *ASK, "-p", str(file), QUESTION)
        assert done.returncode == 0, done.stderr
        assert "fetch: dropped: timed out: not there after 1 s, when others were" in done.stderr
        assert "4 found, 1 read, 2 blocked, 1 timed out, " in done.stderr.replace(
            "1 timed out, 2 blocked", "2 blocked, 1 timed out"
        )


async def test_all_engines_refuse(tmp_path: Path) -> None:
    async with Replica(captcha=True) as web:
        done = await web.research(tmp_path, "ask", "--search", "duckduckgo", QUESTION)
        assert (done.returncode, done.stdout) == (6, "")
        assert f"error: no search engine answered. duckduckgo@{web.place}: captcha" in done.stderr


async def test_nothing_is_found_so_nothing_is_written(tmp_path: Path) -> None:
    async with Replica([]) as web:
        done = await web.research(tmp_path, "ask", "--search", "duckduckgo", QUESTION)
        assert done.returncode == 4
        assert done.stdout.startswith("Not answered: no evidence was found.")
        events = [line["stage"] for line in journal(tmp_path) if line["event"] == "made"]
        assert set(events) == {"plan", "search", "rerank", "synthesize"}
        assert web.paths() == []


async def test_one_page_under_many_spellings_is_fetched_once(tmp_path: Path) -> None:
    sound = results()[1]
    spelled = ["/cpi#part", "/cpi?utm_source=x&gclid=1", "/x/../cpi", "/cpi?a=1", "/cpi?a=2"]
    found = [sound, *(replace(sound, path=path, title=f"{sound.title} ({path})") for path in spelled)]
    async with Replica(found) as web:
        done = await web.research(tmp_path, *ASK, QUESTION)
        assert done.returncode == 0, done.stderr
        assert sorted(path for path in web.engines.paths() if path.startswith("/cpi")) == [
            "/cpi",
            "/cpi?a=1",
            "/cpi?a=2",
        ]


async def test_internal_addresses_stay_closed_unless_the_user_opens_them(tmp_path: Path) -> None:
    async with Replica(results()[1:2]) as web:
        shut = await web.research(tmp_path, *ASK, QUESTION, RESEARCH_ALLOW_ADDRESSES="10.0.0.0/8")
        assert shut.returncode == 4
        assert "1 found, 0 read, 1 refused address, 0 cited." in shut.stderr
        assert web.paths() == []
        (tmp_path / "research.toml").write_text('allow_addresses = ["127.0.0.0/8"]\n')
        theirs = await web.research(tmp_path, *ASK, QUESTION)
        assert theirs.returncode == 2
        assert "./research.toml: 'allow_addresses' is not read from a folder's file" in theirs.stderr
        (tmp_path / "research.toml").unlink()
        opened = await web.research(
            tmp_path, *ASK, "--allow-addresses", "127.0.0.0/8", QUESTION, RESEARCH_ALLOW_ADDRESSES="10.0.0.0/8"
        )
        assert opened.returncode == 0, opened.stderr  # the refusal of before is not taken from the store
        folder = tmp_path / "config" / "research"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text('allow_addresses = ["127.0.0.2/32"]\n')
        config = await web.research(
            tmp_path, *ASK, QUESTION, RESEARCH_ALLOW_ADDRESSES="", XDG_CONFIG_HOME=str(folder.parent)
        )
        assert config.returncode == 0, config.stderr


@pytest.mark.parametrize("ranges", ["everywhere", "127.0.0.1/8", "300.0.0.0/8"])
async def test_what_is_no_range_is_told(tmp_path: Path, ranges: str) -> None:
    async with Replica([]) as web:
        done = await web.research(tmp_path, *ASK, "--allow-addresses", ranges, QUESTION)
        assert done.returncode == 2
        assert "--allow-addresses: it must be a list of ranges like 127.0.0.0/8" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--search", "duckduckgo,altavista"], "there is no search engine 'altavista'. Known are duckduckgo, mojeek"),
        (["--search", "duckduckgo", "--offline"], "--offline and --search name different webs; give one of them"),
        (["--world", "w.jsonl", "--offline"], "--world and --offline name different webs; give one of them"),
        (["--world", "none.jsonl"], "none.jsonl can't be read"),
        (["--language", "english"], "--language: it must be two letters"),
        (["--recency", "decade"], "--recency: it must be one of day, week, month, year"),
        (["--search", " , "], "no search engine was named"),
    ],
)
async def test_mistakes_in_naming_a_web(tmp_path: Path, arguments: list[str], told: str) -> None:
    async with Replica([]) as web:
        done = await web.research(tmp_path, "ask", *arguments, QUESTION)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr


async def test_wishes_reach_the_engine_and_the_key_and_no_year_is_added(tmp_path: Path) -> None:
    async with Replica() as web:
        more = ("--region", "us", "--language", "en", "--recency", "year")
        done = await web.research(tmp_path, *ASK, *more, QUESTION)
        assert done.returncode == 0, done.stderr
        assert f"wikipedia@{web.place} (us en year), as of" in done.stderr
        asked = [path for path in web.engines.paths() if path.startswith("/html/")]
        assert asked
        for path in asked:
            assert path.endswith("&kl=us-en&df=y")
            assert not re.search(r"20\d\d", path)
        other = await web.research(tmp_path, *ASK, "--region", "gb", "--language", "en", QUESTION)
        assert other.returncode == 0
        assert any("kl=uk-en" in path for path in web.engines.paths())


async def test_a_past_day_of_the_live_web_is_answered_from_the_store_only(tmp_path: Path) -> None:
    async with Replica(results()[1:2]) as web:
        past = await web.research(tmp_path, *ASK, "--web-date", "2025-03-01", QUESTION)
        assert past.returncode == 6
        assert "search: not recorded, and only what is recorded may be used" in past.stderr
        assert [path for server in web.servers.values() for path in server.paths()] == []


async def test_a_recorded_world_answers_again_and_names_what_it_lacks(tmp_path: Path) -> None:
    world = tmp_path / "world.jsonl"
    async with Replica() as web:
        live = await web.research(tmp_path, *ASK, "--record", str(world), QUESTION)
        assert live.returncode == 0, live.stderr
        again = await web.research(tmp_path, *ASK, "--record", str(world), QUESTION)
        assert again.returncode == 2
        assert "exists" in again.stderr
        for server in web.servers.values():
            server.requests.clear()
        fresh = tmp_path / "elsewhere"
        fresh.mkdir()
        told = await web.research(fresh, "ask", "--world", str(world), "--as-of", "2025-03-01", QUESTION)
        assert told.returncode == 0, told.stderr
        assert told.stdout == live.stdout
        assert OUTCOMES.search(told.stderr)
        for pipeline in ("top-n", "snippets", "small"):
            other = await web.research(fresh, "ask", "-p", pipeline, "--world", str(world), QUESTION)
            assert other.returncode == 0, other.stderr
        lacking = await web.research(fresh, "ask", "--world", str(world), "How many people live in Seoul?")
        assert (lacking.returncode, lacking.stdout) == (6, "")
        assert re.search(
            r"error: the world .*world\.jsonl has no search for '.*Seoul.*'; record it anew", lacking.stderr
        )
        assert [path for server in web.servers.values() for path in server.paths()] == []


async def test_a_page_that_cannot_be_read_may_count_as_its_snippet(tmp_path: Path) -> None:
    text = shipped(tmp_path).read_text()
    quote = '[stage.quote]\ntakes = { hits = "ranked", pages = "pages", facts = "read" }\ngives = "facts"\nkeep = 2\n'
    text = text.replace('gives = "facts"', 'gives = "read"') + quote
    (tmp_path / "with-snippets.toml").write_text(text)
    rate = "US inflation rate, January 2025, compared with a year ago"
    closed = Found(
        "/closed", f"{rate}: figures", "The US inflation rate was 3.0 percent in January 2025.", faults.reply(b"", 403)
    )
    read = Found("/brief", f"{rate}: in brief", "In brief.", page("money-brief-inflation-today.html"))
    async with Replica([closed, read]) as web:
        done = await web.research(tmp_path, *ASK, "-p", "with-snippets.toml", "--json", QUESTION)
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        grades = {c["fact"]["url"]: c["fact"]["grade"] for c in answer["citations"]}
        assert grades[f"http://{web.place}/closed"] == "snippet"
        assert grades[f"http://{web.place}/brief"] == "exact"
        assert "2 found, 1 read, 1 blocked, 2 cited (1 by its snippet only)." in done.stderr
        assert answer["outcomes"]["lost"] == {"blocked": 1}
        shown = await web.research(tmp_path, "show", "last")
        assert "(snippet)" in shown.stdout
        without = await web.research(tmp_path, *ASK, "--json", QUESTION)
        assert f"http://{web.place}/closed" not in {c["fact"]["url"] for c in json.loads(without.stdout)["citations"]}


async def test_a_local_index_stands_beside_the_engines(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ulm.md").write_text("# Ulm\n\nThe tower of the minster of Ulm is 161.5 metres high.\n")
    async with Replica(captcha=True) as web:
        built = await web.research(tmp_path, "index", "build", "notes", "--name", "notes")
        assert built.returncode == 0, built.stderr
        done = await web.research(
            tmp_path, "ask", "--search", "duckduckgo,local:notes", "How high is the tower of Ulm?"
        )
        assert done.returncode == 0, done.stderr
        assert "161.5 metres" in done.stdout
        assert f"live web by duckduckgo@{web.place},local:notes" in done.stderr
        assert "captcha" in done.stderr


async def test_a_page_fetched_again_that_has_not_changed_leaves_what_was_made_of_it(tmp_path: Path) -> None:
    sound = page("labor-statistics-cpi-january-2025.html", ETag='"v1"')

    async def act(writer: asyncio.StreamWriter, request: faults.Received) -> None:
        await (faults.reply(b"", 304) if request.header("if-none-match") == '"v1"' else sound)(writer, request)

    found = replace(results()[1], act=act)
    async with Replica([found]) as web:
        assert (await web.research(tmp_path, *ASK, QUESTION)).returncode == 0
        again = await web.research(tmp_path, *ASK, "--fresh", "fetch", QUESTION)
        assert again.returncode == 0, again.stderr
        assert [request.header("if-none-match") for request in web.engines.requests if request.path == "/cpi"] == [
            None,
            '"v1"',
        ]
        events = [(line["stage"], line["event"]) for line in journal(tmp_path) if line["event"] in ("made", "reused")]
        assert ("fetch", "made") in events
        assert ("extract", "reused") in events
        assert ("synthesize", "reused") in events


async def test_a_repeated_live_question_loads_no_http_and_no_parser(tmp_path: Path) -> None:
    heavy = ("httpx", "httpcore", "selectolax", "protego", "trafilatura", "lxml", "jinja2", "research.web.engines")
    script = f"""
import sys
sys.addaudithook(lambda event, _: event in ("subprocess.Popen", "socket.connect") and print(event, file=sys.stderr))
from research.cli import main
try:
    main()
finally:
    print("loaded:", [name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""
    cheap = ("--cheap", "builtin", "--capable", "builtin")  # else a look for a local model server is one connection
    async with Replica() as web:
        cold = await web.scripted(script, tmp_path, *ASK, *cheap, QUESTION)
        assert cold.returncode == 0, cold.stderr
        assert "subprocess.Popen\n" in cold.stderr
        assert "'httpx'" in cold.stderr
        warm = await web.scripted(script, tmp_path, *ASK, *cheap, QUESTION)
        assert warm.stdout == cold.stdout
        assert "loaded: []\n" in warm.stderr
        assert "Popen" not in warm.stderr
        assert "socket.connect" not in warm.stderr


async def test_stopping_is_clean_and_leaves_no_parser(tmp_path: Path) -> None:
    never = replace(results()[1], path="/never", act=faults.hang())
    async with Replica([never, results()[1]]) as web:
        process = await asyncio.create_subprocess_exec(
            *RUN, *ASK, QUESTION,
            env=environment(tmp_path, **web.settings()), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(30):
            while "/never" not in web.paths() or "/cpi" not in web.paths():
                await asyncio.sleep(0.02)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            process.send_signal(signal.SIGINT)
            _, told = await process.communicate()
        assert process.returncode == 130
        assert b"the same command takes it up again" in told
        assert b"Warning" not in told
        assert children
        assert not any(Path(f"/proc/{child}").exists() for child in children)


def shipped(folder: Path, patience: int = 20) -> Path:
    """The fixed pipeline, copied into `folder`, with that patience."""
    from research.settings import PIPELINES

    shutil.copytree(PIPELINES / "prompts", folder / "prompts")
    file = folder / "patient.toml"
    file.write_text(re.sub(r"patience = \d+", f"patience = {patience}", (PIPELINES / "fixed.toml").read_text()))
    return file
