"""What a batch costs besides its calls: `python -m bench.batch memory | start | throughput`.

memory      the most that the command holds for 10,000 rows, divided by that for 100 (reach ≤ 1.2); with
            --scripted that of a process with scripted models and without the command line
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
from collections import Counter
from pathlib import Path
from typing import Any

from research.app import App, load_pipeline
from research.batch import Batch
from research.batches import recipe_of
from research.cli.ending import for_many
from research.limits.budget import Budget, Caps
from research.limits.rates import Rates
from research.llm.client import ProviderModel
from research.llm.messages import Completion, Model
from research.llm.scripted import ScriptedModel
from research.pipeline import Pipeline
from research.questions import Questions
from research.results import Results
from research.rows import Choice, LocalRows, Selection
from research.settings import Settings
from research.width import Gauge
from tests.batches import DATES, Towers, question_file, reply
from tests.providers import Fixed, Provider


class Instant(ScriptedModel):
    def __init__(self) -> None:
        super().__init__(reply)

    async def complete(self, *request: Any, **more: Any) -> Completion:
        self.requests.clear()
        return await super().complete(*request, **more)


class Uncounted(Counter[str]):
    def __setitem__(self, key: str, count: int) -> None:
        """A count for each page would grow with the rows."""


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


def held(rows: int, scripted: bool) -> int:
    """The most memory in kilobytes that a process held for a batch of so many rows."""
    if scripted:
        command = [sys.executable, "-m", "bench.batch", "one", "--rows", str(rows)]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        question_file(home / "questions.csv", rows)
        end = "import sys, atexit; from pathlib import Path; from research.cli import main\n"
        end += "atexit.register(lambda: sys.stdout.write(Path('/proc/self/status').read_text()))\nmain()"
        command = [sys.executable, "-c", end, "batch", str(home / "questions.csv"), "-o", str(home / "out.jsonl")]
        environment = {"RESEARCH_HOME": str(home / "home"), "PYTHONPATH": str(Path.cwd()), "PATH": "/usr/bin:/bin"}
        done = subprocess.run([*command, "--offline"], env=environment, capture_output=True, text=True, check=True)
    return most_held(done.stdout)


def most_held(status: str) -> int:
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def one(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        question_file(Path(folder) / "questions.csv", rows)
        asyncio.run(run(Path(folder), Instant(), load_pipeline("fixed"), Towers(calls=Uncounted())))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(most_held(status))


def memory(rows: int, scripted: bool) -> None:
    few, many = held(100, scripted), held(rows, scripted)
    print(f"100 rows: {few / 1024:.0f} MB, {rows:,} rows: {many / 1024:.0f} MB, ratio {many / few:.2f} (reach ≤ 1.2)")


def start(rows: int) -> None:
    """The whole command; its first call is the first line of a journal."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        question_file(home / "questions.csv", rows)
        base = [sys.executable, "-c", "from research.cli import main; main()"]
        command = [*base, "batch", str(home / "questions.csv"), "-o", str(home / "out.jsonl"), "--offline"]
        environment = {"RESEARCH_HOME": str(home / "home"), "PYTHONPATH": str(Path.cwd()), "PATH": "/usr/bin:/bin"}
        subprocess.run([*command, "--limit", "1"], env=environment, capture_output=True, check=True)
        seconds = []
        for _ in range(5):
            (home / "out.jsonl").unlink()
            began, runs = time.perf_counter(), len(list((home / "home" / "runs").iterdir()))
            process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
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
    parser.add_argument("what", choices=["memory", "start", "throughput", "one"])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=600)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--untold", action="store_true", help="the limit shows in refusals only")
    parser.add_argument("--scripted", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "memory":
        memory(arguments.rows, arguments.scripted)
    elif arguments.what == "throughput":
        print(asyncio.run(paced(arguments.limit, arguments.latency, arguments.minutes, not arguments.untold)))
    else:
        {"start": start, "one": one}[arguments.what](arguments.rows)


if __name__ == "__main__":
    main()
