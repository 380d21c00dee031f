"""What the documents say is run: commands with their output, help texts, pipeline files."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from research.loading import load
from research.questions import Row
from research.records import Answer, Ending, Question
from research.results import answered, failed
from research.settings import ENGINES, KEYED, PIPELINES, engine_names
from research.stages import KINDS
from tests.commands import FORKS
from tests.conftest import PYTHONPATH, ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    found = [
        (document.name, *match.groups()) for document in DOCUMENTS for match in BLOCK.finditer(document.read_text())
    ]
    return [(f"{name}:{block.splitlines()[0]}", block) for name, tongue, block in found if tongue == language]


def research(arguments: list[str], home: Path) -> str:
    """What the command prints, with 88 columns."""
    given = {
        **os.environ,
        "RESEARCH_HOME": str(home),
        "PYTHONPATH": PYTHONPATH,
        "COLUMNS": "88",
        "TERMINAL_WIDTH": "88",
    }
    _, out, _ = FORKS.run(arguments, given, home, together=True)
    return out.decode().replace(str(home), "/home/you")


def alike(text: str) -> str:
    """Without what differs from run to run: ids, durations, and in which order things were made."""
    text = re.sub(r"\d{8}-\d{6}\.\d{3}-[a-z2-7]{4}", "RUN", text)
    text = re.sub(r" *\d+\.\d\d s", " 0.00 s", text)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(line for line in lines if not re.match(r"  \w+: made in|Reading the sample web", line))


NOTE = "# Ulm minster\n\nThe tower of Ulm minster is 161.5 metres high, and the tallest church tower in the world.\n"


def session(folder: Path) -> Path:
    """A folder as the documents take it to be."""
    (folder / "notes").mkdir()
    (folder / "notes" / "ulm.md").write_text(NOTE)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all blocks, which are read in order as one session."""
    return session(tmp_path_factory.mktemp("docs"))


@pytest.mark.parametrize(("place", "block"), blocks("console"), ids=[place for place, _ in blocks("console")])
def test_a_command_prints_what_the_document_says(place: str, block: str, home: Path) -> None:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program.endswith("research"), f"{place}: {command}"
        assert alike(research(arguments, home)) == alike(output)


@pytest.mark.parametrize(("place", "block"), blocks("toml"), ids=[place for place, _ in blocks("toml")])
def test_a_pipeline_in_a_document_is_sound(place: str, block: str, tmp_path: Path) -> None:
    shutil.copytree(PIPELINES / "prompts", tmp_path / "prompts")
    (tmp_path / "it.toml").write_text(block, encoding="utf-8")
    assert load(tmp_path / "it.toml", KINDS).stages


@pytest.mark.parametrize(("place", "block"), blocks("python"), ids=[place for place, _ in blocks("python")])
def test_python_in_a_document_runs(place: str, block: str, home: Path) -> None:
    environment = {**os.environ, "RESEARCH_HOME": str(home), "PYTHONPATH": PYTHONPATH}
    done = subprocess.run([sys.executable, "-c", block], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = [line.partition("  # ")[2] for line in block.splitlines() if line.startswith("print(")]
    assert done.stdout.splitlines() == expected


def test_every_kind_and_key_is_documented() -> None:
    text = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8").partition("## Kinds")[2]
    for kind in KINDS.values():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{kind.name}` |"))
        for name in [*kind.takes, *kind.optional, *kind.params.model_fields]:
            assert f"`{name}`" in row, f"{kind.name}: {name}"


def test_every_engine_is_documented() -> None:
    rows = [line for line in (ROOT / "docs" / "web.md").read_text(encoding="utf-8").splitlines() if line[:3] == "| `"]
    assert [row.split("`")[1] for row in rows] == [*ENGINES, "local:NAME"]
    for name, row in zip(ENGINES, rows, strict=False):
        address, key = engine_names(name)
        assert [cell.strip() for cell in row.split("|")][2:4] == [
            f"`{key}`" if name in KEYED else "",
            f"`{address}`",
        ], name


def test_every_field_of_a_batchs_record_is_documented() -> None:
    text = (ROOT / "docs" / "batch.md").read_text(encoding="utf-8")
    table = text.partition("| field | what |")[2].partition("\n\n")[0]
    told = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split(" | ")[0])}
    row = Row(1, 2, "q1", Question(text="How tall is it?"))
    made = dict.fromkeys(("pipeline", "recipe", "as_of", "web_date"), "")
    done = answered(row, Answer(text="", ending=Ending.NOT), [], made)
    assert {*done, *failed(row, ValueError(), [], made)} == told


def test_what_extending_names_is_there() -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    named = [found for found in re.findall(r"`([\w./-]+\.\w+)(?::(\w+))?`", text) if "/" in found[0]]
    assert len(named) > 40
    for path, name in named:
        file = ROOT / path.replace("/NAME.", "/")
        if "/NAME." in path:
            assert file.parent.is_dir(), path
        else:
            assert file.is_file(), path
            assert not name or name in defined(file), f"{path} has no {name}"


def defined(file: Path) -> set[str]:
    """What stands at the top of a module."""
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    targets = [node.target for node in nodes if isinstance(node, ast.AnnAssign)]
    targets += [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return names | {
        node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }


def commands(words: list[str]) -> list[list[str]]:
    """All commands and groups, as `--help` lists them."""
    _, out, _ = FORKS.run([*words, "--help"], {**os.environ, "PYTHONPATH": PYTHONPATH}, ROOT)
    text = out.decode()
    listed = re.search(r"^Commands:\n(.*)", text, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^  (\w+)", listed[1], re.MULTILINE) if listed else []
    return [words, *(found for name in names for found in commands([*words, name]))]


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for words in commands([]):
        assert f"$ {' '.join(['research', *words])} --help\n" in text


def updated(text: str, home: Path) -> str:
    """A document with the output of its commands as it is now; as it was where that is alike."""

    def block(match: re.Match[str]) -> str:
        if match[1] != "console":
            return match[0]
        lines = [line for line in match[2].splitlines() if line.startswith("$ ")]
        shown = [f"{line}\n{research(shlex.split(line)[2:], home)}" for line in lines]
        now = "".join(shown)
        return match[0] if alike(now) == alike(match[2]) else f"```console\n{now}```"

    return BLOCK.sub(block, text)


if __name__ == "__main__":  # python -m tests.test_docs: brings the documents up to date
    import tempfile

    helps = "\n\n".join(f"```console\n$ {' '.join(['research', *words])} --help\n```" for words in commands([]))
    (ROOT / "docs" / "commands.md").write_text(f"# Commands\n\n{helps}\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        place = session(Path(folder))
        for document in DOCUMENTS:
            document.write_text(updated(document.read_text(encoding="utf-8"), place), encoding="utf-8")
