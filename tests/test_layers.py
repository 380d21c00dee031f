"""Imports point down only, within one layer only where the table says so, and never in a circle."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "research"

# From the top down. A module may import those of lower layers, and of its own group.
LAYERS = [
    {"cli"},
    {"api", "serving", "batch", "compare", "judging", "report", "diff", "advise"},
    {"app", "webs", "tiers", "forecast", "bounds"},
    {"ceilings", "rendering", "why", "drawing", "tally", "stages", "executor"},
    {"loading", "making", "selection", "runs", "flights", "steps", "trying", "questions", "results"},
    {"mcp", "wiring", "artifacts"},
    {"pipeline"},
    {"kinds", "prompts", "journal", "ledger", "llm", "web", "evidence"},
    {"relevance", "transport", "settings", "homes", "limits"},
    {"store", "sentences", "network", "values", "output"},
    {"records", "errors", ""},
]
ALONE = {"executor", "stages", "llm", "web", "evidence"}  # of their layer, they import none else
HEAVY = {
    "genai_prices",
    "httpx",
    "jinja2",
    "rich",
    "trafilatura",
    "lxml",
    "selectolax",
    "pypdfium2",
    "jsonschema",
    "mcp",
    "mcp_types",
    "protego",
}
ONLY = {"httpx": {"transport"}, "typer": {"cli"}, "diskcache": {"store"}, "mcp": {"mcp", "serving"}}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        yield name.removesuffix("__init__").removesuffix("."), ast.parse(path.read_text(encoding="utf-8"))


def imports(name: str, tree: ast.AST, is_package: bool) -> Iterator[str]:
    """What a module imports: ours as `research.…`, others by their name."""
    package = ["research", *name.split(".")] if name else ["research"]
    package = package if is_package else package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            whole = [f"{stem}.{alias.name}" for alias in node.names]
            yield from (full if is_module(full) else stem for full in whole)


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def is_package(name: str) -> bool:
    return (PACKAGE.joinpath(*name.split(".")) / "__init__.py").is_file() if name else True


def layer(group: str) -> int:
    return next(number for number, groups in enumerate(LAYERS) if group in groups)


TREES = dict(modules())


@pytest.mark.parametrize("name", [name for name in TREES if name])  # the face itself imports when it is asked
def test_imports_point_down(name: str) -> None:
    group = name.split(".")[0]
    for imported in set(imports(name, TREES[name], is_package(name))):
        if not imported.startswith("research"):
            continue
        other = imported.removeprefix("research").removeprefix(".").split(".")[0]
        if other == group:
            continue
        assert layer(other) >= layer(group), f"{name} imports {imported}, which lies above it"
        if layer(other) == layer(group):
            assert not {other, group} & ALONE, f"{name} imports {imported}: they are not to know each other"


@pytest.mark.parametrize("name", list(TREES))
def test_heavy_libraries_are_imported_where_they_are_used(name: str) -> None:
    top = ast.Module([node for node in TREES[name].body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    found = {imported.split(".")[0] for imported in imports(name, top, is_package(name))} & HEAVY
    assert not found or name in PARSERS, f"{name} imports {found} before it is known that they are needed"


PARSERS = {"transport", "web.metadata", "web.pdf", "web.outcomes", "web.markup", "web.robots", "web.reading"}


@pytest.mark.parametrize("library", list(ONLY))
def test_some_libraries_stand_behind_one_door(library: str) -> None:
    users = {
        name.split(".")[0]
        for name, tree in TREES.items()
        if any(imported.split(".")[0] == library for imported in imports(name, tree, is_package(name)))
    }
    assert users <= ONLY[library]


def test_there_are_no_circles() -> None:
    graph = {}
    for name, tree in TREES.items():
        top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        found = {
            one.removeprefix("research.") for one in imports(name, top, is_package(name)) if one.startswith("research.")
        }
        graph[name] = found - {name}
    assert list(TopologicalSorter(graph).static_order())


def test_nothing_prints_but_the_command_line() -> None:
    for name, tree in TREES.items():
        calls = [
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert "print" not in calls or name.startswith("cli"), name


def test_modules_and_functions_are_small() -> None:
    sizes = []
    for name, tree in TREES.items():
        path = PACKAGE.joinpath(*name.split(".")) if name else PACKAGE
        file = path / "__init__.py" if is_package(name) else path.with_suffix(".py")
        assert file.read_text(encoding="utf-8").count("\n") <= 300, f"{name} has over 300 lines"
        sizes += [
            node.end_lineno - node.lineno + 1  # type: ignore[operator]
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    assert max(sizes) <= 80
    assert sum(size <= 40 for size in sizes) / len(sizes) >= 0.94
    assert sorted(sizes)[len(sizes) // 2] <= 10


def test_the_standard_library_is_new_enough() -> None:
    assert sys.version_info >= (3, 11)
