"""`research runs`, `show` and `why`: what was run, what came of each stage, and why it was made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..records import Answer
    from ..runs import Run, Runs

RunId = Annotated[str, typer.Argument(help="A run's id, as `research runs` lists them.", metavar="RUN")]


def runs(limit: Annotated[int, typer.Option("-n", "--limit", help="How many, newest first.", min=1)] = 20) -> None:
    """List the runs, newest first."""
    from itertools import islice

    from ..output import clean
    from .columns import hung, room

    there, width = _runs(), room()
    for run in islice(there.newest_first(), limit):
        head, question = (clean(text) for text in _row(run))
        apart = width is not None and len(f"{head}{question}") > width
        print(hung(" ".join(head.split()), width) if apart else head, end="\n    " if apart else "")
        print(hung(question, width and width - 4, 4))
    if next(there.newest_first(), None) is None:
        print("There are no runs yet; `research ask` makes one.", file=sys.stderr)


def _row(run: Run) -> tuple[str, str]:
    """Id, pipeline, ending, what it paid, its web; its question. Of one that is damaged, what is wrong."""
    from ..errors import StoreError
    from ..ledger import dollars, paid
    from ..output import on_one_line

    try:
        manifest, lines = run.manifest(), run.journal()
    except StoreError as error:
        return f"{run.id}  damaged  ", on_one_line(str(error))
    last = lines[-1] if lines and lines[-1]["event"] == "ended" else {}
    ending = last.get("ending") or ("failed" if "error" in last else "unfinished")
    spent = paid(lines)
    cost = dollars(spent.usd, spent.unknown)
    web, question = on_one_line(str(manifest.get("web", "")))[:30], on_one_line(manifest["question"])[:80]
    return f"{run.id}  {manifest['pipeline']:<10}  {ending:<24}  {cost:>8}  {web:<30}  ", question


def show(
    run: RunId = "last",
    stage: Annotated[str | None, typer.Option(help="Print what this stage made.", metavar="NAME")] = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Print each sentence with its quotes in their surroundings.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print a run's answer, what it rests on, or any of its intermediate artifacts; of a loop, its steps too."""
    from ..errors import UsageError
    from .steps import steps

    runs = _runs()
    opened = runs.open(run)
    if stage is not None:
        _show_stage(opened, stage, json)
        return
    answer = opened.answer()
    taken = [] if evidence else steps(opened, runs)
    if taken:
        _show_steps(taken, _whole(opened, answer) if json else {}, json)
        if json:
            return
    if answer is None:
        raise UsageError(f"run {opened.id} came to no answer; `research why {opened.id}` tells how far it got")
    if json:
        from ..output import as_json

        print(as_json(_whole(opened, answer)))
        return
    if evidence:
        from .evidence import show as show_evidence

        show_evidence(answer)
        return
    from ..rendering import plain
    from .columns import columns

    sys.stdout.write(plain(answer, columns()))


def _whole(run: Run, answer: Answer | None) -> dict[str, Any]:
    """A run as `ask --json` prints it; of one that came to no answer, nothing."""
    from ..app import Asked, as_json

    return {} if answer is None else as_json(Asked(run, answer, run.journal()))


def _show_steps(taken: list[dict[str, Any]], answer: dict[str, Any], json: bool) -> None:
    """How a loop went; as JSON the whole of it, beside the answer."""
    from ..output import as_json
    from ..settings import Settings
    from ..store import Store
    from . import steps
    from .columns import printed

    taken = steps.redacted(taken)
    if not json:
        printed([*steps.told(taken), ""], 6)
        return
    store = Store(Settings.read().store)
    try:
        print(as_json({**answer, "steps": steps.redacted(steps.whole(taken, store))}))
    finally:
        store.close()


def _show_stage(run: Run, stage: str, json: bool) -> None:
    from ..errors import UsageError
    from ..output import clean, escaped_json
    from ..settings import Settings
    from ..store import Store

    written = [line for line in run.journal() if line.get("stage") == stage and line.get("item") is not None]
    dropped = {line["item"] for line in written if line["event"] == "dropped"}
    used = [line for line in written if line["event"] in ("made", "reused") and line["item"] not in dropped]
    lines = sorted(used, key=lambda line: int(line["item"]))
    if not lines:
        raise UsageError(f"run {run.id} has nothing of a stage {stage!r}; `research why {run.id}` lists its stages")
    store = Store(Settings.read().store)
    try:
        values = {line["item"]: store.value(line["ref"]) for line in lines}
    finally:
        store.close()
    if not any(values.values()):
        raise UsageError(
            f"what {stage} made in run {run.id} is gone from the store; `research show {run.id}` still has the answer, "
            f"and `research why {run.id}` the account"
        )
    texts = {item: "null" if value is None else value.decode() for item, value in values.items()}
    if json:
        print(escaped_json(f"[{', '.join(texts.values())}]" if len(texts) > 1 else next(iter(texts.values()))))
        return
    for rank, text in texts.items():
        told = "gone from the store" if values[rank] is None else _indented(text)
        print(f"── {stage} {rank + 1}\n{clean(told)}")


def _indented(text: str) -> str:
    import json

    return json.dumps(json.loads(text), ensure_ascii=False, indent=1)


def why(run: RunId = "last") -> None:
    """Tell for each stage whether it was reused or made, and which part of its key changed."""
    from ..why import reasons

    everything = _runs()
    opened = everything.open(run)
    before = everything.before(opened)
    print(f"run {opened.id}, " + (f"against {before.id}" if before else "the first of this question and pipeline"))
    for line in reasons(opened, before):
        print(line)


def _runs() -> Runs:
    from ..runs import Runs
    from ..settings import Settings

    return Runs(Settings.read().runs)
