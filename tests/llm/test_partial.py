"""JSON that is still coming in."""

from __future__ import annotations

import json

import pytest
from pydantic import RootModel

from research.errors import MalformedError
from research.llm.partial import strings
from research.llm.structured import parse

WHOLE = {"source_1": 'It "rained", a {lot}.\nSo: ü', "source_2": "", "missing": "the depth \\ of it"}


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("before", ["", "```json\n", "\ufeffHere you {are}: ", '<think>{"source_1": "no"}</think>\n'])
def test_at_every_character_what_is_whole_and_nothing_else(before: str, ascii_only: bool) -> None:
    text = before + json.dumps(WHOLE, ensure_ascii=ascii_only, indent=1) + "\n```"
    seen: list[dict[str, str]] = []
    for end in range(len(text) + 1):
        found = strings(text[:end])
        assert found.items() <= WHOLE.items()
        if not seen or found != seen[-1]:
            seen.append(found)
    assert [len(found) for found in seen] == [0, 1, 2, 3]


@pytest.mark.parametrize("hostile", [" ", "\n", "<think>", "<think> ", "{ ", '{"', "<", " <"])
def test_a_long_text_of_anything_takes_no_long_time(hostile: str) -> None:
    """Quadratic ones took more than a minute each; the suite would show it."""
    text = hostile * (200_000 // len(hostile))
    assert strings(text) == {}
    assert strings(" " * 200_000 + '<think>{"a": "b"}</think>{"c": "d"}') == {"c": "d"}
    with pytest.raises(MalformedError):
        parse(text, RootModel[dict[str, int]])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("No JSON {at} all.", {}),
        ("<think>It may be {\"a\": \"b\"}", {}),
        ('{"a": "b", "c": 3, "d": "e"}', {"a": "b"}),
        ('{"a": ["b"], "c": "d"}', {}),
        ('{"a": "b" "c": "d"}', {}),
        ('{"a": "b", "c": "\\x", "d": "e"}', {"a": "b"}),
        ("{'a': 'b'}", {}),
        ('{"a": "b\nc"', {"a": "b\nc"}),
    ],
)  # fmt: skip
def test_what_is_no_string_or_no_json_ends_it(text: str, found: dict[str, str]) -> None:
    assert strings(text) == found
