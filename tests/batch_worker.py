"""Runs a batch of towers that a test kills: `batch_worker FOLDER COUNT SECONDS`.

Each call of a model appends a line to FOLDER/log as it begins and one as it ends: what, which, when.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import tests.batches
from research.llm.messages import Completion, Request
from research.llm.scripted import ScriptedModel
from research.store import digest
from tests.batches import Lab, reply


class Logging(ScriptedModel):
    def __init__(self, lab: Lab) -> None:
        super().__init__(reply, "scripted:model")
        self.seconds = lab.seconds
        self.log = os.open(lab.folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def complete(self, request: Request, *rest: Any, **more: Any) -> Completion:
        key = f"{request.purpose}-{digest(json.dumps(request.given, default=str, sort_keys=True))[:12]}"
        os.write(self.log, f"begin {key} {time.monotonic():.4f}\n".encode())
        await asyncio.sleep(self.seconds)
        completion = await super().complete(request, *rest, **more)
        self.requests.clear()
        os.write(self.log, f"end {key} {time.monotonic():.4f}\n".encode())
        return completion


if __name__ == "__main__":
    tests.batches.Counting = Logging  # type: ignore[misc, assignment]
    lab = Lab(Path(sys.argv[1]), int(sys.argv[2]), seconds=float(sys.argv[3]))
    asyncio.run(lab.run())
