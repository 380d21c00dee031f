"""What a batch costs besides its calls: `python -m bench.batch memory | start | throughput`.

memory      the most that the command holds for 10,000 rows, divided by that for 100 (reach ≤ 1.2), with the
            built-in model; with --paid a provider on loopback, by which every row is answered
start       seconds from the command to its first call with 10,000 rows (reach ≤ 1)
throughput  calls that a provider on loopback let through, divided by its limit (reach ≥ 0.95)

The first two ask the built-in model and the sample web. For the third, the
fixed pipeline asks a provider that allows --limit requests a minute and takes --latency
seconds for each, for about --minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from research.app import App, load_pipeline
from research.batch import Batch, Choice, Gauge, LocalRows, Selection, recipe_of
from research.cli.ending import for_many
from research.limits.budget import Budget, Caps
from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.messages import Model
from research.pipeline import Pipeline
from research.questions import Questions
from research.results import Results
from research.settings import Settings
from tests.batches import DATES, Towers, question_file
from tests.providers import Fixed, Provider


class Forgetful(Provider):
    """Keeps no request: they would grow with the rows."""

    async def complete(self, *request: Any) -> None:
        self.requests.clear()
        self.times.clear()
        await super().complete(*request)


async def run(folder: Path, model: Model, pipeline: Pipeline, web: Any) -> Batch:
    """The batch of the question file in `folder`."""
    gauge, results = Gauge(), Results(folder / "results.jsonl")
    counted = gauge.model(model)
    app = App(Settings(folder / "home"), {"cheap": counted, "capable": counted})
    recipe = recipe_of(app, pipeline, web, DATES).digest
    questions = Questions(folder / "questions.csv")
    questions.check()
    rows = LocalRows(Selection(questions, Choice(), results.past, recipe), results)
    rows.survey()
    budget = Budget(Caps(), folder / "budget.db")

    def ask(row: Any, listen: Any) -> Any:
        return app.ask(row.question, pipeline, web, DATES, budget=budget, listeners=(listen,))

    batch = Batch(rows, ask, {"recipe": recipe}, gauge)
    for_many()
    await batch.run()
    budget.close()
    app.close()
    results.close()
    return batch


async def held(rows: int, paid: bool) -> int:
    """The most memory in kilobytes that the command held for a batch of so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        question_file(home / "questions.csv", rows)
        if not paid:
            return await commanded(home)
        async with Forgetful(quoted) as provider:
            keys = {"OPENAI_API_KEY": provider.key, "OPENAI_BASE_URL": provider.url("/v1")}
            models = ["--cheap", "openai:model-1", "--capable", "openai:model-1", "--max-usd", "none", "--yes"]
            return await commanded(home, *models, **keys)


RUN = "from research.cli import main; main()"


def environment(home: Path) -> dict[str, str]:
    return {"RESEARCH_HOME": str(home / "home"), "PYTHONPATH": str(Path.cwd()), "PATH": "/usr/bin:/bin"}


async def commanded(home: Path, *flags: str, **more: str) -> int:
    """What `research batch` held at the most; its output tells how it ended."""
    end = "import sys, atexit; from pathlib import Path\n"
    end += "atexit.register(lambda: sys.stdout.write(Path('/proc/self/status').read_text()))\n" + RUN
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", end, "batch", str(home / "questions.csv"), "-o", str(home / "out.jsonl"), "--offline",
        *flags, env=environment(home) | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, told = (stream.decode() for stream in await process.communicate())
    if process.returncode:
        raise SystemExit(f"it ended with {process.returncode}: {told[-1000:]}")
    print("\n".join(told.strip().splitlines()[-4:]), file=sys.stderr)
    return next(int(line.split()[1]) for line in out.splitlines() if line.startswith("VmHWM"))


def memory(rows: int, paid: bool) -> None:
    few, many = asyncio.run(held(100, paid)), asyncio.run(held(rows, paid))
    print(f"100 rows: {few / 1024:.0f} MB, {rows:,} rows: {many / 1024:.0f} MB, ratio {many / few:.2f} (reach ≤ 1.2)")


def start(rows: int) -> None:
    """The whole command; its first call is the first line of a journal."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        question_file(home / "questions.csv", rows)
        base = [sys.executable, "-c", RUN]
        command = [*base, "batch", str(home / "questions.csv"), "-o", str(home / "out.jsonl"), "--offline"]
        subprocess.run([*command, "--limit", "1"], env=environment(home), capture_output=True, check=True)
        seconds = []
        for _ in range(5):
            (home / "out.jsonl").unlink()
            began, runs = time.perf_counter(), len(list((home / "home" / "runs").iterdir()))
            process = subprocess.Popen(command, env=environment(home), stderr=subprocess.DEVNULL)
            while len(list((home / "home" / "runs").iterdir())) == runs:
                time.sleep(0.002)
            seconds.append(time.perf_counter() - began)
            process.kill()
            process.wait()
    print(f"{rows:,} rows start within {sorted(seconds)[len(seconds) // 2]:.2f} s (reach ≤ 1)")


def said(body: dict[str, Any]) -> str:
    """What a good model would say of towers, told by the schema that it is to fit."""
    text = json.dumps(body)
    number = re.findall(r"tower[ -](\d+)", text)[-1]
    if '"queries"' in text and '"needs_search"' in text:
        return json.dumps({"needs_search": True, "queries": [f"height of tower {number}"], "reason": "a figure"})
    if '"ranking"' in text:
        return json.dumps({"ranking": [1, 2]})
    quote = re.search(r"Tower \d+ is \d+ metres tall\.", text)
    if '"facts"' in text and quote is not None:
        return json.dumps({"facts": [{"claim": "Its height.", "quote": quote[0]}]})
    return "It is tall [1]."


def quoted(body: dict[str, Any]) -> str:
    """What a model says that finds an answer in any page."""
    text = json.dumps(body, ensure_ascii=False)
    if '"facts"' not in text:
        return said(body).replace("height of tower", "US inflation rate")
    sentence = re.search(r"[A-Z][^.\\\"]{40,200}\.", text[text.rindex("<data-", 0, text.rindex("</data-")) :])
    return json.dumps({"facts": [{"claim": "It says so.", "quote": sentence[0] if sentence else ""}]})


async def paced(limit: int, latency: float, minutes: float, told: bool) -> str:
    rows = max(1, round(limit * minutes / 5))  # of five calls each
    fixed = Fixed(limit, told=told, wait=True)
    with tempfile.TemporaryDirectory() as folder:
        question_file(Path(folder) / "questions.csv", rows)
        async with Provider(said, fixed, latency) as provider:
            model = ProviderModel(provider.endpoint("openai-chat"), Rates())
            began = time.monotonic()
            batch = await run(Path(folder), model, load_pipeline("fixed"), Towers())
            wall = time.monotonic() - began
            await model.aclose()
    calls, refused = len(fixed.times), len(fixed.refused)
    bound = calls / limit * 60
    return (
        f"{rows} rows, {calls} calls in {wall:.1f} s at {limit} a minute: {bound / wall:.3f} of the limit "
        f"(reach ≥ 0.95), {refused / max(1, calls + refused):.1%} refused, endings {dict(batch.tally.endings)}, "
        f"errors {dict(batch.tally.errors)}, at most {batch.width.allowed} rows at once at the end"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["memory", "start", "throughput"])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--untold", action="store_true", help="the limit shows in refusals only")
    parser.add_argument("--paid", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "memory":
        memory(arguments.rows, arguments.paid)
    elif arguments.what == "throughput":
        print(asyncio.run(paced(arguments.limit, arguments.latency, arguments.minutes, not arguments.untold)))
    else:
        start(arguments.rows)


if __name__ == "__main__":
    main()
