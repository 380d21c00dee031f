"""A pipeline as a picture: a Mermaid flowchart (https://mermaid.js.org/syntax/flowchart.html)."""

from __future__ import annotations

from .kinds import INPUTS
from .pipeline import Pipeline, Stage


def mermaid(pipeline: Pipeline) -> str:
    """Stages as boxes, with their tier; a fan-out as a thick arrow, work done ahead as a dotted one."""
    lines = ["flowchart TD"]
    taken = {source.name for stage in pipeline.stages.values() for source in stage.sources}
    lines += [f"  {name}([{name}])" for name in INPUTS if name in taken]
    for stage in pipeline.stages.values():
        lines.append(f'  {stage.name}["{_label(stage)}"]')
    for stage in pipeline.stages.values():
        lines += [f"  {line}" for line in _arrows(pipeline, stage)]
    lines.append(f"  {_home(pipeline, pipeline.answer)} --> answer_out([{pipeline.answer}])")
    return "\n".join(lines)


def _label(stage: Stage) -> str:
    return f"{stage.name}<br/><i>{stage.model}</i>" if stage.model else stage.name


def _arrows(pipeline: Pipeline, stage: Stage) -> list[str]:
    arrows = [f"{_home(pipeline, source.name)} -->|{source}| {stage.name}" for source in stage.takes.values()]
    if stage.each is not None:
        want = f", best {stage.want}" if stage.want else ""
        arrows.append(f"{_home(pipeline, stage.each.name)} ==>|each {stage.each}{want}| {stage.name}")
    if stage.prefetch is not None:
        arrows.append(f"{_home(pipeline, stage.prefetch.source.name)} -.->|ahead| {stage.name}")
    return arrows


def _home(pipeline: Pipeline, name: str) -> str:
    stage = pipeline.giving(name)
    return name if stage is None else stage.name
