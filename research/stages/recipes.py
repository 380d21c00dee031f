"""What shapes a stage's output besides its inputs, as its keys tell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..llm.providers import BUILTIN, BUILTIN_REVISION
from .job import repairs

if TYPE_CHECKING:
    from ..mcp.server import Server
    from ..pipeline import Stage
    from ..steps import Step
    from ..web.base import Web


def recipe(
    stage: Stage, model: str, web: Web, sample: int, servers: Mapping[str, Server], parts: Mapping[str, Step]
) -> dict[str, str]:
    """`model` is the name of the one that it asks, if it asks any; `servers` and `parts` are its own."""
    kind = stage.kind
    made = {"kind": f"{kind.name} {kind.version}"}
    if type(stage.params).model_fields:
        made["params"] = stage.params.model_dump_json()
    if kind.model:
        assert stage.sampling is not None
        made |= {"model": model, "sampling": stage.sampling.model_dump_json(), "sample": str(sample)}
        made |= {"revision": BUILTIN_REVISION} if model == BUILTIN else {}
    files = {"prompt": stage.prompt} if stage.prompt is not None else {}
    files |= {**stage.prompts, **{f"tool {name}": file for name, file in stage.tools.items()}}
    made |= {name: file.digest for name, file in files.items()}
    if kind.model:
        made["repair"] = repairs()
    if kind.web in ("search", "fetch"):
        made["source"] = web.source
    if kind.web == "search":
        made["engines"] = web.name
    if kind.servers:
        made |= {f"tools of {name}": server.digest for name, server in servers.items()}
    for name, part in parts.items():
        made |= {f"{name} {key}": told for key, told in part.recipe.items() if made.get(key) != told}
    return made
