"""Reads a pipeline file (TOML), and finds every mistake in it at once.

Nothing is paid for before this has passed: names, types, prompts and their placeholders,
cycles and parameters are all checked against the kinds of stages (`kinds.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .errors import Mistake, PipelineError
from .kinds import INPUTS, Kind, Params, Policy, Sampling
from .pipeline import TIERS, Pipeline, Prefetch, Source, Stage
from .prompts import Prompt
from .values import near, toml
from .wiring import Wiring

_OWN = ("kind", "takes", "each", "gives", "model", "prompt", "want", "prefetch")


def load(path: Path, kinds: Mapping[str, Kind]) -> Pipeline:
    """Read and check a pipeline file.

    Raises: PipelineError with every mistake found.
    """
    try:
        text = path.read_text(encoding="utf-8")
        table = toml(text)
    except FileNotFoundError:
        raise PipelineError(
            [Mistake(str(path), "", "", "there is no such file", "`research pipelines` lists them")]
        ) from None
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
        ordered = Wiring(stages, table.get("answer"), whole, self.wrong).checked()
        if self.mistakes:
            raise PipelineError(self.mistakes)
        return Pipeline(self.path.stem, str(table.get("description", "")), table["answer"], ordered, text)

    def stage(self, name: str, table: dict[str, Any]) -> Stage | None:
        where = f"stage.{name}"
        kind = self.kinds.get(table.get("kind", name))
        if kind is None:
            wrong = table.get("kind", name)
            remedy = f"Give kind = one of {', '.join(self.kinds)}{near(wrong, self.kinds)}"
            self.wrong(where, "kind", f"there is no kind of stage called {wrong!r}", remedy)
            return None
        before = len(self.mistakes)
        asking = Sampling if kind.model else None
        further = (*kind.prompts, *(("tools",) if kind.tool else ()), *(asking.model_fields if asking else ()))
        known = (*_OWN, *further, *kind.params.model_fields, *Policy.model_fields)
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
        sound = len(self.mistakes)
        takes = self.takes(where, kind, table.get("takes", []), item)
        prompt = self.prompt(where, kind, table, {*takes, item} - {""} if len(self.mistakes) == sound else None)
        model = self.model(where, kind, table.get("model"))
        prompts = {key: self.further(where, key, table.get(key), wanted) for key, wanted in kind.prompts.items()}
        tools, servers = self.tools(where, kind, table.get("tools"))
        want, prefetch = self.want(where, table, each), self.prefetch(where, table.get("prefetch"), item)
        if len(self.mistakes) > before:
            return None
        return Stage(
            name, kind, str(gives), takes, item, each, model, prompt, want=want, prefetch=prefetch,
            prompts={key: prompt for key, prompt in prompts.items() if prompt}, tools=tools, servers=servers,
            **read,
        )  # fmt: skip

    def unknown(self, where: str, table: dict[str, Any], known: Iterable[str]) -> None:
        for key in table:
            if key not in known:
                remedy = f"Known here: {', '.join(known)}{near(key, known)}"
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
        have, known = {*takes, item} - {""}, {**kind.takes, **kind.optional}
        strangers = () if kind.takes_any else [name for name in have if name not in known]
        for name in kind.takes:
            if name not in have and not any(near(stranger, [name]) for stranger in strangers):
                remedy = f"Add {name!r} to takes, or fan out over it with each"
                self.wrong(where, "takes", f"{kind.name} needs {name!r}", remedy)
        for name in strangers:
            remedy = f"It takes {', '.join(known)}{near(name, known)}"
            self.wrong(where, "takes" if name in takes else "each", f"{kind.name} has no input {name!r}", remedy)
        return {name: Source.parse(source) for name, source in takes.items()}

    def fields(self, where: str, record: type[Params], table: dict[str, Any]) -> Any:
        given = {key: value for key, value in table.items() if key in record.model_fields}
        try:
            return record.model_validate(given, strict=False)
        except ValidationError as error:
            for one in error.errors():
                key = ".".join(str(part) for part in one["loc"])
                self.wrong(
                    where, key, f"{one['msg'][0].lower()}{one['msg'][1:]} (it is {one['input']!r})", "Mend the value"
                )
            return record.model_construct()

    def prompt(self, where: str, kind: Kind, table: dict[str, Any], taken: set[str] | None) -> Prompt | None:
        """The stage's prompt; its placeholders are held against what is `taken`, unless there is a mistake in that."""
        name = table.get("prompt")
        if not kind.model:
            if name is not None:
                self.wrong(where, "prompt", f"{kind.name} asks no model", "Remove prompt")
            return None
        if not isinstance(name, str):
            self.wrong(
                where,
                "prompt",
                f"{kind.name} asks a model and needs a prompt",
                f'Add prompt = "prompts/{kind.name}.md"',
            )
            return None
        prompt = self.file(where, "prompt", name)
        if prompt is not None and taken is not None:
            self.placeholders(where, "prompt", prompt, kind.placeholders(taken))
        return prompt

    def further(self, where: str, key: str, name: Any, wanted: frozenset[str]) -> Prompt | None:
        """A prompt besides the stage's own."""
        if not isinstance(name, str):
            self.wrong(where, key, "a further prompt is needed", f'Add {key} = "prompts/{key}.md"')
            return None
        prompt = self.file(where, key, name)
        if prompt is not None:
            self.placeholders(where, key, prompt, wanted)
        return prompt

    def tools(self, where: str, kind: Kind, names: Any) -> tuple[dict[str, Prompt], tuple[str, ...]]:
        """The files of the tools, `tools/NAME.toml` beside the pipeline's, each read and checked; and the servers."""
        if kind.tool is None:
            return {}, ()
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            self.wrong(where, "tools", f"{kind.name} needs tools", 'Write tools = ["search", "fetch"]')
            return {}, ()
        prefix = f"{kind.servers}:" if kind.servers else "\0"
        servers = tuple(dict.fromkeys(name.removeprefix(prefix) for name in names if name.startswith(prefix)))
        own = [name for name in names if not name.startswith(prefix)] + ([kind.servers] if servers else [])
        files = {name: self.file(where, "tools", f"tools/{name}.toml") for name in (*own, *kind.always)}
        for name, file in files.items():
            try:
                kind.tool(name, "" if file is None else file.text)
            except ValueError as error:
                if file is not None:
                    self.wrong(where, "tools", f"{file.name}: {error}", "Mend that file, or name another tool")
        return {name: file for name, file in files.items() if file is not None}, servers

    def file(self, where: str, key: str, name: str) -> Prompt | None:
        folder = self.path.parent.resolve()
        file = (folder / name).resolve()
        if not file.is_relative_to(folder):
            self.wrong(where, key, f"{name!r} lies outside the pipeline's folder", "Keep prompts beside the file")
            return None
        try:
            return Prompt(name, file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            reason = "is missing" if isinstance(error, FileNotFoundError) else f"can't be read ({error})"
            self.wrong(where, key, f"{name!r} {reason}", f"Write {file}, or name another")
            return None

    def placeholders(self, where: str, key: str, prompt: Prompt, wanted: frozenset[str]) -> None:
        for text in prompt.strangers:
            self.wrong(
                where,
                key,
                f"{prompt.name} holds {text!r}",
                "A prompt has placeholders {{ name }} and no expressions",
            )
        for name in sorted(prompt.placeholders - wanted):
            remedy = f"It can hold {', '.join(sorted(wanted))}{near(name, wanted)}"
            self.wrong(where, key, f"{prompt.name} has the placeholder {name!r}, which nobody fills", remedy)
        for name in sorted(wanted - prompt.placeholders):
            self.wrong(
                where,
                key,
                f"{prompt.name} lacks the placeholder {name!r}",
                f"Add {{{{ {name} }}}} to it, or take less",
            )

    def model(self, where: str, kind: Kind, model: Any) -> str:
        if not kind.model:
            if model is not None:
                self.wrong(where, "model", f"{kind.name} asks no model", "Remove model")
            return ""
        if not isinstance(model, str) or (model not in TIERS and ":" not in model):
            hint = near(model, TIERS) if isinstance(model, str) else ""
            remedy = f'Write model = "cheap", "capable" or "provider:model"{hint}'
            self.wrong(
                where, "model", f"{kind.name} needs a tier or a model" + (f", not {model!r}" if model else ""), remedy
            )
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
        if (
            isinstance(table, dict)
            and {*table} == {item, "top"}
            and isinstance(table[item], str)
            and type(table["top"]) is int
        ):
            return Prefetch(Source.parse(table[item]), table["top"])
        self.wrong(
            where,
            "prefetch",
            "it must name the fanned-out input and how many",
            'Write prefetch = { url = "hits.url", top = 4 }',
        )
        return None
