"""The shipped pipelines under scripted models and a small made-up web, with every call counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.app import App, Asked, Dates
from research.llm.messages import Completion, Request, ToolCall, Usage
from research.llm.providers import BUILTIN
from research.llm.scripted import ScriptedModel
from research.loading import load
from research.pipeline import Pipeline
from research.records import Hit, Outcome, Page, Question
from research.settings import PIPELINES, Settings
from research.stages import KINDS

BASELINE = "closed-book"  # which searches nothing, so that little of what holds for the others holds for it
NAMES = sorted(path.stem for path in PIPELINES.glob("*.toml") if path.stem != BASELINE)
QUESTION = "How tall is the tower of Ulm?"
DATES = Dates("2025-03-01", "2025-03-01")


@dataclass
class SmallWeb:
    """Three hits for each query; the page with rank 2 is blocked."""

    name: str = "small"
    source: str = "small"
    date: str = "2025-03-01"
    calls: Counter[str] = field(default_factory=Counter)

    async def search(self, query: str, top: int) -> list[Hit]:
        self.calls["search"] += 1
        word = re.sub(r"\W", "", query.lower())
        return [
            Hit(
                url=f"https://{word}.example/{n}", title=f"{query} {n}", snippet=f"{query}: it is {n}61 m tall.", rank=n
            )
            for n in (1, 2, 3)
        ]

    async def fetch(self, url: str) -> Page:
        self.calls["fetch"] += 1
        if url.endswith("/2"):
            return Page(url=url, outcome=Outcome.BLOCKED, detail="403")
        text = f"About {url}.\nThe tower of Ulm is {url[-1]}61 metres tall. It was finished in 1890."
        return Page(url=url, outcome=Outcome.OK, title=f"Page {url[-1]}", site="Towers", text=text, date="2024-05-01")


def reply(request: Request) -> Any:
    """What a good model would say, from what filled the prompt."""
    given = request.given
    if request.purpose == "investigate":
        return investigated(given)
    if request.purpose == "compact":
        return "- searched for the tower; it is 161 metres tall [1]"
    if request.purpose == "plan":
        return {"needs_search": True, "queries": ["ulm tower", "ulm minster height"], "reason": "a figure"}
    if request.purpose == "rerank":
        return {"ranking": [3, 2, 1]}
    if request.purpose == "screen":
        return {"relevant": True}
    if request.purpose == "extract":
        quote = re.search(r"The tower of Ulm is \d+ metres tall\.", given["text"])
        return extracted(request, [quote[0]] if quote else [])
    if request.schema is not None:
        said = {name: f"The tower is {name[-1]}61 metres tall." for name in request.schema["properties"]}
        return {**said, "missing": ""}
    return f"The tower of Ulm is 161 metres tall [1]. Others say so [{len(given['facts'])}]."


def extracted(request: Request, quotes: Sequence[str], claim: str = "Its height.") -> Any:
    """`quotes` in the form that the request asks for."""
    assert request.schema is not None
    names = request.schema["properties"]
    if "facts" in names:
        return {"facts": [{"claim": claim, "quote": quote} for quote in quotes]}
    return dict.fromkeys(names, "") | dict(zip(names, quotes, strict=False))


def investigated(given: Mapping[str, Any]) -> Any:
    """A loop of three turns: two searches at once, the pages ranked 1 to 3 of the first at once, the answer."""
    if not given["searches"]:
        return calls(*(("search", {"query": query}) for query in ("ulm tower", "ulm minster height")))
    first = [source for source in given["sources"] if source["id"] in given["searches"][0]["numbers"]]
    if not any(source["tried"] for source in first):
        return calls(*(("fetch", {"url": source["url"]}) for source in first))
    read = [source["id"] for source in first if "page" in source]
    return f"The tower of Ulm is 161 metres tall [{read[0]}]. Others say so [{read[-1]}]."


def calls(*wishes: tuple[str, Any], text: str = "") -> Completion:
    """A turn that calls tools; arguments that are no dict are sent as they are."""
    made = tuple(
        ToolCall(f"call_{place}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for place, (name, arguments) in enumerate(wishes)
    )
    return Completion(text, "tool_calls", Usage(input=100, output=10), "scripted", made)


@dataclass
class Laboratory:
    """An App on a store of its own, whose models and web count their calls."""

    home: Path
    web: SmallWeb = field(default_factory=SmallWeb)

    def __post_init__(self) -> None:
        self.cheap = ScriptedModel(reply, "scripted:cheap")
        self.capable = ScriptedModel(reply, "scripted:capable")
        models = {"cheap": self.cheap, "capable": self.capable, BUILTIN: self.cheap}
        self.app = App(Settings(self.home), models)

    async def ask(self, pipeline: Pipeline, fresh: Collection[str] = (), **options: Any) -> Asked:
        self.cheap.requests.clear()
        self.capable.requests.clear()
        self.web.calls.clear()
        return await self.app.ask(Question(text=QUESTION), pipeline, self.web, DATES, fresh=fresh, **options)

    @property
    def calls(self) -> Counter[str]:
        """How often each kind of stage called out, in the last run."""
        models = Counter(request.purpose for request in [*self.cheap.requests, *self.capable.requests])
        return models + self.web.calls


def copied(folder: Path, name: str, **replaced: tuple[str, str]) -> Pipeline:
    """A shipped pipeline, read from a copy in which `file_md=(old, new)` has been changed."""
    for file in [PIPELINES / f"{name}.toml", *PIPELINES.glob("prompts/*.md"), *PIPELINES.glob("tools/*.toml")]:
        text = file.read_text(encoding="utf-8")
        old, new = replaced.get(file.name.replace(".", "_").replace("-", "_"), ("", ""))
        assert old in text, f"{file.name} has no {old!r}"
        copy = folder / file.relative_to(PIPELINES)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
    return load(folder / f"{name}.toml", KINDS)
