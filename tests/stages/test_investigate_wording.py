"""What a model is told of its tools stands in files, and each mistake in one is found before anything is paid for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from research.errors import PipelineError
from research.loading import load
from research.settings import PIPELINES
from research.stages import KINDS
from research.stages.investigate import wording


def shipped(name: str) -> str:
    return (PIPELINES / "tools" / f"{name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(wording.ARGUMENTS))
def test_the_shipped_files_are_sound(name: str) -> None:
    read = wording.read(name, shipped(name))
    assert set(read.forms) == set(wording.FORMS[name])


def test_a_tools_parameters_are_closed_and_described() -> None:
    parameters = wording.read("read", shipped("read")).parameters()
    assert parameters["required"] == ["handle", "offset"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["offset"]["type"] == "integer"
    assert all(one["description"] for one in parameters["properties"].values())


def test_values_are_filled_in_once_and_literally() -> None:
    said = wording.read("search", shipped("search")).say("nothing", query="{{ most }} {0} %s $HOME\n---\n{{7*7}}")
    assert "Results" not in said
    assert "{{ most }} {0} %s $HOME\n---\n{{7*7}}" in said


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("search", "description =", "descriptoin =", "there is no such key: descriptoin"),
        ("search", "{{ query }}\n\n", "", "the form found must have the placeholders query results, and no others"),
        ("search", "{{ results }}", "{{ results|safe }}", "the form found"),
        ("search", 'query = "Few', 'words = "Few', r"\[arguments\] must have just query"),
        ("fetch", "stranger = ", "strangers = ", r"\[forms\] must have just whole, passages"),
        ("loop", "unknown = ", "unknown = 7 #", r"\[forms\]"),
        ("search", "[forms]", "[forms", "TOML|Expected|table"),
    ],
)
def test_mistakes_in_a_tools_file(name: str, old: str, new: str, reason: str) -> None:
    text = shipped(name)
    assert old in text
    with pytest.raises(ValueError, match=reason):
        wording.read(name, text.replace(old, new, 1))


def loaded(folder: Path, old: str = "", new: str = "") -> None:
    for part in ("prompts", "tools"):
        if not (folder / part).exists():
            shutil.copytree(PIPELINES / part, folder / part)
    text = (PIPELINES / "tool-use.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "it.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    load(folder / "it.toml", KINDS)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('tools = ["search", "fetch"]', "", "investigate needs tools"),
        ('tools = ["search", "fetch"]', "tools = []", "investigate needs tools"),
        ('["search", "fetch"]', '["search", "browse"]', "'tools/browse.toml' is missing"),
        ('["search", "fetch"]', '["../search"]', "there is no tool|outside|is missing"),
        ('compact = "prompts/tool-use-compact.md"', "", "a further prompt is needed"),
        ('compact = "prompts/tool-use-compact.md"', 'compact = "prompts/plan.md"', "lacks the placeholder 'turns'"),
        ('actions = "prompts', 'action = "prompts', "Did you mean 'actions'"),
        ("steps = 12", 'tools_as = "xml"', "tools_as"),
    ],
)
def test_mistakes_in_a_pipeline_file(tmp_path: Path, old: str, new: str, reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        loaded(tmp_path, old, new)


def test_a_mistake_in_a_tools_file_is_one_of_the_pipelines(tmp_path: Path) -> None:
    loaded(tmp_path)
    file = tmp_path / "tools" / "loop.toml"
    file.write_text(file.read_text().replace("{{ reason }}", "", 1))
    with pytest.raises(
        PipelineError, match=r"it\.toml: \[stage\.investigate\] tools: tools/loop\.toml: the form invalid"
    ):
        loaded(tmp_path)
