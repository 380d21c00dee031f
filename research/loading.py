"""Reads a pipeline file (TOML), and finds every mistake in it at once.

Nothing is paid for before this has passed: names, types, prompts and their placeholders,
cycles and parameters are all checked against the kinds of stages (`kinds.py`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from .errors import Mistake, PipelineError
from .kinds import INPUTS, Kind, Params, Policy, Sampling, attribute, element, fits, shown
from .pipeline import TIERS, Pipeline, Prefetch, Source, Stage
from .prompts import Prompt
from .records import Answer

_OWN = ("kind", "takes", "each", "gives", "model", "prompt", "want", "prefetch")


def load(path: Path, kinds: Mapping[str, Kind]) -> Pipeline:
    """Read and check a pipeline file.

    Raises: PipelineError with every mistake found.
    """
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except FileNotFoundError:
        raise PipelineError([Mistake(str(path), "", "", "there is no such file", "`research pipelines` lists them")]) from None
    except (OSError, ValueError) as error:
        raise PipelineError([Mistake(str(path), "", "", f"not readable as TOML: {error}", "Mend that line")]) from None
    return _Reading(path, kinds).pipeline(table, text)


class _Reading:
    """One reading of one file: collects mistakes, and gives stages."""

    def __init__(self, path: Path, kinds: Mapping[str, Kind]) -> None:
        self.path = path
        self.kinds = kinds
        self.mistakes: list[Mistake] = []

    def wrong(self, table: str, key: str, what: str, remedy: str) -> None:
        self.mistakes.append(Mistake(self.path.name, table, key, what, remedy))

    def pipeline(self, table: dict[str, Any], text: str) -> Pipeline:
        self.unknown("", table, ("description", "answer", "stage"))
        tables = table.get("stage")
        if not isinstance(tables, dict) or not tables:
            self.wrong("", "stage", "there are no stages", "Add tables such as [stage.plan]")
            tables = {}
        stages: dict[str, Stage] = {}
        for name, content in tables.items():
            if not isinstance(content, dict):
                self.wrong(f"stage.{name}", "", "a stage is a table", f"Write [stage.{name}]")
            elif (stage := self.stage(name, content)) is not None:
                stages[name] = stage
        whole = len(stages) == len(tables)  # else names that are missing may be the broken stages'
        ordered = self.check_flow(stages, table.get("answer"), whole)
        if self.mistakes:
            raise PipelineError(self.mistakes)
        return Pipeline(self.path.stem, str(table.get("description", "")), table["answer"], ordered, text)

    def stage(self, name: str, table: dict[str, Any]) -> Stage | None:
        where = f"stage.{name}"
        kind = self.kinds.get(table.get("kind", name))
        if kind is None:
            wrong = table.get("kind", name)
            remedy = f"Give kind = one of {', '.join(self.kinds)}{_near(wrong, self.kinds)}"
            self.wrong(where, "kind", f"there is no kind of stage called {wrong!r}", remedy)
            return None
        before = len(self.mistakes)
        asking = Sampling if kind.model else None
        known = (*_OWN, *kind.params.model_fields, *Policy.model_fields, *(asking.model_fields if asking else ()))
        self.unknown(where, table, known)
        gives = table.get("gives")
        if not isinstance(gives, str) or not gives.isidentifier():
            self.wrong(where, "gives", "a stage must name its result", 'Add gives = "a_name"')
        elif gives in INPUTS:
            self.wrong(where, "gives", f"{gives!r} is given to every run", "Choose another name")
        item, each = self.each(where, table.get("each"))
        read = {
            "params": self.fields(where, kind.params, table),
            "policy": self.fields(where, Policy, table),
            "sampling": self.fields(where, Sampling, {"max_tokens": kind.max_tokens, **table}) if asking else None,
        }
        takes = self.takes(where, kind, table.get("takes", []), item)
        prompt = self.prompt(where, kind, table, {*takes, item} - {""})
        model = self.model(where, kind, table.get("model"))
        want, prefetch = self.want(where, table, each), self.prefetch(where, table.get("prefetch"), item)
        if len(self.mistakes) > before:
            return None
        return Stage(
            name, kind, str(gives), takes, item, each, model, prompt, want=want, prefetch=prefetch, **read  # type: ignore[arg-type]
        )  # fmt: skip

    def unknown(self, where: str, table: dict[str, Any], known: Iterable[str]) -> None:
        for key in table:
            if key not in known:
                remedy = f"Known here: {', '.join(known)}{_near(key, known)}"
                self.wrong(where, key, "there is no such key", remedy)

    def each(self, where: str, each: Any) -> tuple[str, Source | None]:
        if each is None:
            return "", None
        if isinstance(each, dict) and len(each) == 1:
            [(item, source)] = each.items()
            if isinstance(source, str):
                return item, Source.parse(source)
        self.wrong(where, "each", "it must name one input and a list", 'Write each = { query = "plan.queries" }')
        return "", None

    def takes(self, where: str, kind: Kind, takes: Any, item: str) -> dict[str, Source]:
        if isinstance(takes, list) and all(isinstance(name, str) for name in takes):
            takes = {name.split(".")[-1]: name for name in takes}
        if not isinstance(takes, dict) or not all(isinstance(source, str) for source in takes.values()):
            self.wrong(where, "takes", "it must list names", 'Write takes = ["question", "hits"]')
            return {}
        have = {*takes, item} - {""}
        for name in kind.takes:
            if name not in have:
                self.wrong(where, "takes", f"{kind.name} needs {name!r}", f"Add {name!r} to takes, or fan out over it with each")
        known = {**kind.takes, **kind.optional}
        for name in have:
            if name not in known and not kind.takes_any:
                remedy = f"It takes {', '.join(known)}{_near(name, known)}"
                self.wrong(where, "takes" if name in takes else "each", f"{kind.name} has no input {name!r}", remedy)
        return {name: Source.parse(source) for name, source in takes.items()}

    def fields(self, where: str, record: type[Params], table: dict[str, Any]) -> Any:
        given = {key: value for key, value in table.items() if key in record.model_fields}
        try:
            return record.model_validate(given, strict=False)
        except ValidationError as error:
            for one in error.errors():
                key = ".".join(str(part) for part in one["loc"])
                self.wrong(where, key, f"{one['msg'][0].lower()}{one['msg'][1:]} (it is {one['input']!r})", "Mend the value")
            return record.model_construct()

    def prompt(self, where: str, kind: Kind, table: dict[str, Any], taken: set[str]) -> Prompt | None:
        name = table.get("prompt")
        if not kind.model:
            if name is not None:
                self.wrong(where, "prompt", f"{kind.name} asks no model", "Remove prompt")
            return None
        if not isinstance(name, str):
            self.wrong(where, "prompt", f"{kind.name} asks a model and needs a prompt", f'Add prompt = "prompts/{kind.name}.md"')
            return None
        folder = self.path.parent.resolve()
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            self.wrong(where, "prompt", f"{name!r} lies outside the pipeline's folder", "Keep prompts beside the file")
            return None
        try:
            prompt = Prompt(name, file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"can't be read ({error})"
            self.wrong(where, "prompt", f"{name!r} {reason}", f"Write {file}, or name another")
            return None
        self.placeholders(where, prompt, kind.placeholders(taken))
        return prompt

    def placeholders(self, where: str, prompt: Prompt, wanted: frozenset[str]) -> None:
        for text in prompt.strangers:
            self.wrong(where, "prompt", f"{prompt.name} holds {text!r}", "A prompt has placeholders {{ name }} and no expressions")
        for name in sorted(prompt.placeholders - wanted):
            remedy = f"It can hold {', '.join(sorted(wanted))}{_near(name, wanted)}"
            self.wrong(where, "prompt", f"{prompt.name} has the placeholder {name!r}, which nobody fills", remedy)
        for name in sorted(wanted - prompt.placeholders):
            self.wrong(where, "prompt", f"{prompt.name} lacks the placeholder {name!r}", f"Add {{{{ {name} }}}} to it, or take less")

    def model(self, where: str, kind: Kind, model: Any) -> str:
        if not kind.model:
            if model is not None:
                self.wrong(where, "model", f"{kind.name} asks no model", "Remove model")
            return ""
        if not isinstance(model, str) or (model not in TIERS and ":" not in model):
            near = _near(model, TIERS) if isinstance(model, str) else ""
            remedy = f'Write model = "cheap", "capable" or "provider:model"{near}'
            self.wrong(where, "model", f"{kind.name} needs a tier or a model" + (f", not {model!r}" if model else ""), remedy)
            return ""
        return model

    def want(self, where: str, table: dict[str, Any], each: Source | None) -> int | None:
        want = table.get("want")
        if want is not None and (not isinstance(want, int) or isinstance(want, bool) or want < 1):
            self.wrong(where, "want", f"it must be a whole number from 1 on, not {want!r}", "Write want = 4")
        elif want is not None and each is None:
            self.wrong(where, "want", "only a fanned-out stage can want some", "Add each, or remove want")
        elif "patience" in table and want is None:
            self.wrong(where, "patience", "patience is for stages that want some", "Add want, or remove patience")
        return want

    def prefetch(self, where: str, table: Any, item: str) -> Prefetch | None:
        if table is None:
            return None
        if isinstance(table, dict) and {*table} == {item, "top"} and isinstance(table[item], str) and type(table["top"]) is int:
            return Prefetch(Source.parse(table[item]), table["top"])
        self.wrong(where, "prefetch", "it must name the fanned-out input and how many", 'Write prefetch = { url = "hits.url", top = 4 }')
        return None

    def check_flow(self, stages: dict[str, Stage], answer: Any, whole: bool) -> dict[str, Stage]:
        """Names, types and order over all stages."""
        given: dict[str, Any] = dict(INPUTS)
        for stage in stages.values():
            if stage.gives in given and stage.gives not in INPUTS:
                self.wrong(f"stage.{stage.name}", "gives", f"another stage gives {stage.gives!r} too", "Choose another name")
            given[stage.gives] = stage.type
        for stage in stages.values():
            self.check_types(stage, given, whole)
        if not isinstance(answer, str) or (whole and answer not in given):
            names = [stage.gives for stage in stages.values()]
            near = _near(answer, names) if isinstance(answer, str) else ""
            self.wrong("", "answer", "it must name the result that is the answer", f'Write answer = "{(names or ["answer"])[-1]}"{near}')
        elif whole and not fits(given[answer], Answer):
            self.wrong("", "answer", f"{answer!r} is a {shown(given[answer])}, not an Answer", "Name a result of synthesize")
        return self.ordered(stages, answer) if whole and not self.mistakes else stages

    def check_types(self, stage: Stage, given: dict[str, Any], whole: bool) -> None:
        where, known = f"stage.{stage.name}", {**stage.kind.takes, **stage.kind.optional}
        for name, source in stage.takes.items():
            kind = self.type_of(where, "takes", source, given, whole)
            if kind is not None and not fits(kind, known.get(name, Any)):
                wanted = shown(known[name])
                self.wrong(where, "takes", f"{source} is a {shown(kind)}; {name!r} must be a {wanted}", "Take another result")
        for key, listed in (("each", stage.each), ("prefetch", stage.prefetch and stage.prefetch.source)):
            if listed is None:
                continue
            kind = self.type_of(where, key, listed, given, whole)
            inner = kind if key == "prefetch" and kind is str else element(kind) if kind is not None else None
            if kind is not None and inner is None:
                self.wrong(where, key, f"{listed} is a {shown(kind)}, no list to fan out over", "Name a list")
            elif inner is not None and not fits(inner, known.get(stage.item, Any)):
                wanted = shown(known[stage.item])
                self.wrong(where, key, f"{listed} holds {shown(inner)}; {stage.item!r} must be {wanted}", "Fan out over another list")

    def type_of(self, where: str, key: str, source: Source, given: dict[str, Any], whole: bool) -> Any | None:
        if source.name not in given:
            if whole:
                remedy = f"There are {', '.join(given)}{_near(source.name, given)}"
                self.wrong(where, key, f"nobody gives {source.name!r}", remedy)
            return None
        kind = attribute(given[source.name], source.path)
        if kind is None:
            record: Any = element(given[source.name]) or given[source.name]
            fields = list(record.model_fields) if isinstance(record, type) and issubclass(record, BaseModel) else []
            remedy = f"It has {', '.join(fields)}{_near(source.path[0], fields)}" if fields else "Take it whole"
            self.wrong(where, key, f"{source}: {shown(record)} has no such attribute", remedy)
        return kind

    def ordered(self, stages: dict[str, Stage], answer: str) -> dict[str, Stage]:
        """The stages that lead to the answer, each after what it takes."""
        by_result = {stage.gives: stage for stage in stages.values()}
        ordered: dict[str, Stage] = {}

        def visit(result: str, path: tuple[str, ...]) -> None:
            stage = by_result.get(result)
            if stage is None or stage.name in ordered:
                return
            if stage.name in path:
                circle = " → ".join((*path[path.index(stage.name) :], stage.name))
                self.wrong(f"stage.{stage.name}", "takes", f"it waits for itself: {circle}", "Break the circle")
                return
            for source in stage.sources:
                visit(source.name, (*path, stage.name))
            ordered[stage.name] = stage

        visit(answer, ())
        if not self.mistakes:
            for name, stage in stages.items():
                if name not in ordered:
                    self.wrong(f"stage.{name}", "gives", f"nobody takes {stage.gives!r}", "Take it somewhere, or remove the stage")
        return ordered


def _near(name: Any, known: Iterable[str]) -> str:
    """A hint at the nearest known name, or nothing."""
    import difflib

    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f". Did you mean {near[0]!r}?" if near else ""
