"""The loop as the built-in model plays it: search, read the best few, search again if nothing fits, answer.

It reads where the investigation stands (`Request.given`), not the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..messages import ToolCall
from .extraction import extract
from .gate import judge, read_fact
from .planning import plan
from .question import read
from .ranking import rerank
from .synthesis import by_source, synthesize

AT_ONCE = 3  # pages that are read in one turn
MOST_PAGES = 6  # pages that are read, as many as the fixed pipeline reads
MOST_TRIED = 9  # pages that are tried
RESERVED = 1  # replies that are kept for the answer

Given = Mapping[str, Any]
Wish = tuple[str, dict[str, Any]]  # a tool and its arguments


def investigate(given: Given) -> tuple[str, tuple[ToolCall, ...]]:
    """A thought with calls, or the answer."""
    wishes = [] if given["last"] or given["left"] <= RESERVED else _wishes(given)
    if "keys" in given:
        return json.dumps(by_source(given["question"], _facts(given), given["keys"]), ensure_ascii=False), ()
    if given["structured"]:
        return _action(wishes), ()
    if not wishes:
        return _answer(given), ()
    place = len(given["searches"]) + sum(1 for source in given["sources"] if source["tried"])
    calls = tuple(
        ToolCall(f"call_{place}_{number}", name, json.dumps(arguments, ensure_ascii=False))
        for number, (name, arguments) in enumerate(wishes)
    )
    return "", calls


def _action(wishes: Sequence[Wish]) -> str:
    """One action at a time; what was wished besides comes up again in the next turn."""
    if not wishes:
        return json.dumps({"action": "answer", "input": ""})
    name, arguments = wishes[0]
    return json.dumps({"action": name, "input": next(iter(arguments.values()))}, ensure_ascii=False)


def _wishes(given: Given) -> list[Wish]:
    """What to do next; nothing where it is time to answer."""
    queries = plan(given["question"])["queries"]
    assert isinstance(queries, list)
    asked = {search["query"] for search in given["searches"]}
    left = [query for query in queries if query not in asked]
    if not asked:
        return [("search", {"query": query}) for query in queries[:2]]
    read_already = [source for source in given["sources"] if "page" in source]
    tried = [source for source in given["sources"] if source["tried"]]
    if len(read_already) >= AT_ONCE and _is_answered(given):
        return []
    room = min(AT_ONCE, MOST_PAGES - len(read_already), MOST_TRIED - len(tried))
    best = [("fetch", {"url": url}) for url in _untried(given)[: max(room, 0)]]
    if left and (not best or len(tried) >= AT_ONCE):
        return [("search", {"query": left[0]})]
    return best


def _untried(given: Given) -> list[str]:
    """The addresses of results that were not tried, the most promising first."""
    hits = [source for source in given["sources"] if not source["tried"] and "title" in source]
    ranking = rerank(given["question"], hits)["ranking"] if hits else []
    assert isinstance(ranking, list)
    by_id = {hit["id"]: hit["url"] for hit in hits}
    return [by_id[number] for number in ranking]


def _facts(given: Given) -> list[dict[str, Any]]:
    """The facts of all pages that were read, numbered through."""
    asked = read(given["question"])
    facts: list[dict[str, Any]] = []
    for source in given["sources"]:
        if "page" in source:
            page = source["page"]
            for fact in extract(asked, page["title"] or "", page["text"]):
                about = {"site": page["site"], "date": page["date"], "title": page["title"]}
                facts.append({"id": len(facts) + 1, "source": source["id"], **fact, **about})
    return facts


def _is_answered(given: Given) -> bool:
    facts = _facts(given)
    verdict = judge(read(given["question"]), [read_fact(fact) for fact in facts])
    return bool(facts) and not verdict.reason and not verdict.missing


def _answer(given: Given) -> str:
    """The answer with the numbers of sources in place of those of facts."""
    facts = _facts(given)
    source = {str(fact["id"]): fact["source"] for fact in facts}
    text = synthesize(given["question"], facts)
    return re.sub(r"\[(\d+)\](?=\.)", lambda match: f"[{source.get(match[1], match[1])}]", text)


def compact(given: Given) -> str:
    """What was searched and read, in one line each."""
    lines = [f"Searched for: {search['query']}" for search in given["searches"]]
    lines += [f"Read [{source['id']}]: {source['page']['title']}" for source in given["sources"] if "page" in source]
    return "\n".join(lines)
