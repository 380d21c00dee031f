"""Asks one question many times at once, on a store that others use too: `crash_worker HOME LOG TIMES SECONDS PIPELINE`.

Each call of a model or of the web appends a line to LOG, and takes SECONDS. The answers'
digests are printed, one a line.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from research.app import App
from research.llm.messages import Completion, Request
from research.llm.scripted import ScriptedModel
from research.loading import load
from research.records import Hit, Page, Question
from research.settings import PIPELINES, Settings
from research.stages import KINDS
from research.store import digest
from tests.shipped import DATES, QUESTION, SmallWeb, reply


def logged(log: str, what: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{what}\n".encode())
    os.close(file)


class SlowModel(ScriptedModel):
    def __init__(self, log: str, seconds: float) -> None:
        super().__init__(reply)
        self.log, self.seconds = log, seconds

    async def complete(self, request: Request, *rest: Any, **more: Any) -> Completion:
        logged(self.log, f"{request.purpose} {digest(repr(request.messages))[:8]}")
        await asyncio.sleep(self.seconds)
        return await super().complete(request, *rest, **more)


class SlowWeb(SmallWeb):
    def __init__(self, log: str, seconds: float) -> None:
        super().__init__()
        self.log, self.seconds = log, seconds

    async def search(self, query: str, top: int) -> list[Hit]:
        logged(self.log, f"search {query}")
        await asyncio.sleep(self.seconds)
        return await super().search(query, top)

    async def fetch(self, url: str) -> Page:
        logged(self.log, f"fetch {url}")
        await asyncio.sleep(self.seconds)
        return await super().fetch(url)


async def main(home: str, log: str, times: int, seconds: float, name: str) -> None:
    model, web = SlowModel(log, seconds), SlowWeb(log, seconds)
    app = App(Settings(Path(home)), {"cheap": model, "capable": model})
    pipeline = load(PIPELINES / f"{name}.toml", KINDS)
    asks = (app.ask(Question(text=QUESTION), pipeline, web, DATES) for _ in range(times))
    for asked in await asyncio.gather(*asks):
        sys.stdout.write(f"{digest(asked.answer.model_dump_json())}\n")
    app.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]))
