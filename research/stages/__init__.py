"""The kinds of stages, one module each, in the order in which data passes through them."""

from ..kinds import Kind
from . import extract, fetch, investigate, plan, prompt, quote, recall, rerank, screen, search, synthesize, verify

KINDS: dict[str, Kind] = {
    "plan": plan.KIND,
    "search": search.KIND,
    "rerank": rerank.KIND,
    "screen": screen.KIND,
    "fetch": fetch.KIND,
    "extract": extract.KIND,
    "quote": quote.KIND,
    "synthesize": synthesize.KIND,
    "verify": verify.KIND,
    "investigate": investigate.KIND,
    "recall": recall.KIND,
    "prompt": prompt.KIND,
}
