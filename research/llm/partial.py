"""What can be read of a JSON object while it is still coming in."""

from __future__ import annotations

import json
import re

_STRING = r'"(?:[^"\\]|\\.)*+"'
_OBJECT = re.compile(r"\{(?=\s*\")")
_PAIR = re.compile(rf"\s*({_STRING})\s*:\s*({_STRING})\s*(?:,|(?=\Z|\}}))", re.DOTALL)
_THINKING = re.compile(r"<(think|thinking)>.*?(</\1>|\Z)", re.DOTALL)  # no blanks before: looking for them is quadratic


def strings(text: str) -> dict[str, str]:
    """The strings by name, as far as they are whole, with which the first JSON object in `text` begins.

    What stands before it (thinking aloud, a fence, prose) is passed over. Reading ends, without
    an error, at what is not whole, is no string, or is no JSON.

    >>> strings('```json\\n{"one": "It rains.", "two": "It sn')
    {'one': 'It rains.'}
    """
    text = _THINKING.sub("", text, count=1)
    found: dict[str, str] = {}
    begin = _OBJECT.search(text)
    pair = _PAIR.match(text, begin.end()) if begin else None
    while pair is not None:
        try:
            name, value = json.loads(pair[1], strict=False), json.loads(pair[2], strict=False)
        except ValueError:
            break
        found[name] = value
        pair = _PAIR.match(text, pair.end())
    return found
