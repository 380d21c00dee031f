"""Settings, each with its origin: flag > environment (`RESEARCH_…`) > ./research.toml > user config > default.

./research.toml may come along with a folder from elsewhere. So it can say how questions are answered, but
not where keys and requests are sent, what may be spent, or where files are kept.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from .errors import UsageError
from .values import (
    Read,
    address,
    cap,
    checked,
    code,
    count,
    flag,
    folder,
    near,
    number,
    one_of,
    ranges,
    text,
    texts,
    toml,
    variable,
    variables,
    whole_cap,
    words,
)

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "shipped"  # in a wheel; in a checkout they lie beside the package

PIPELINES = _SHIPPED / "pipelines" if _SHIPPED.is_dir() else _PACKAGE.parent / "pipelines"
SAMPLE_WEB = _SHIPPED / "web" if _SHIPPED.is_dir() else _PACKAGE.parent / "fixtures" / "web"
PROJECT = "research.toml"
FLAG = "flag --"


class Key(NamedTuple):
    """A setting: how it is read, what it is for, and whether ./research.toml may hold it."""

    read: Read
    help: str
    anywhere: bool = False


KEYS: Mapping[str, Key] = {
    "home": Key(folder, "the folder of store, runs and indexes"),
    "cheap": Key(text, "the model of the cheap tier, PROVIDER:MODEL", anywhere=True),
    "capable": Key(text, "the model of the capable tier, PROVIDER:MODEL", anywhere=True),
    "pipeline": Key(text, "the pipeline that is used unless -p names one", anywhere=True),
    "search": Key(text, "what is searched unless --search or --offline says so", anywhere=True),
    "region": Key(code, "the country that search results are to be for: us, de", anywhere=True),
    "language": Key(code, "the language that search results are to be in: en, de", anywhere=True),
    "recency": Key(one_of("day", "week", "month", "year"), "how old search results may be", anywhere=True),
    "max_usd": Key(cap, 'the most that a command may spend, in dollars, or "none"'),
    "max_calls": Key(whole_cap, "the most model calls of a command"),
    "deadline": Key(cap, "seconds that a question may take"),
    "allow_addresses": Key(ranges, "address ranges that pages may be read from although they are not public"),
}
_LIMITS: Mapping[str, Read] = {"requests_per_minute": number, "tokens_per_minute": number, "at_once": count}
TABLES: Mapping[str, Mapping[str, Read]] = {
    "providers": {
        "wire": one_of("openai-chat", "openai-responses", "anthropic"), "base_url": address, "key_env": variable,
        "cheap": text, "capable": text, "local": flag, "limit": one_of("max_tokens", "max_completion_tokens"),
        "structured": one_of("schema", "object", "tool", "prompt"), "temperature": flag,
        "reasoning": one_of("none", "effort", "budget", "adaptive"), **_LIMITS,
    },
    "engines": {"base_url": address, "key_env": variable, "usd_per_search": number},
    "prices": {"input": number, "output": number, "cache_read": number, "cache_write": number},
    "mcp": {"command": words, "allow": texts, "env": variables, "timeout": number},
}  # fmt: skip
SERVER = r"[A-Za-z][A-Za-z0-9-]{0,19}"  # a server's name; its tools are called NAME_tool
ENGINES = ("duckduckgo", "mojeek", "wikipedia", "searxng", "brave", "tavily", "serper")  # as web.engines has them
KEYED = ("brave", "tavily", "serper")  # engines that want a key, and a fee for each search


class Settings(NamedTuple):
    """What the user has set. `home` holds store/, runs/ and index/; "" stands for what is not set.

    `origins` tells for each key (of a table: "providers.mine.base_url") which flag, variable or file set it.
    """

    home: Path
    cheap: str = ""
    capable: str = ""
    pipeline: str = "fixed"
    search: str = ""
    region: str = ""
    language: str = ""
    recency: str = ""
    max_usd: str = ""  # the caps are digits, or "none", as limits.Caps reads them
    max_calls: str = ""
    deadline: str = ""
    allow_addresses: tuple[str, ...] = ()
    providers: Mapping[str, Mapping[str, Any]] = {}
    engines: Mapping[str, Mapping[str, Any]] = {}
    prices: Mapping[str, Mapping[str, float]] = {}
    mcp: Mapping[str, Mapping[str, Any]] = {}  # servers of tools
    origins: Mapping[str, str] = {}

    @classmethod
    def read(cls, flags: Mapping[str, Any] | None = None) -> Self:
        """From the two files, the environment, and `flags` (None stands for a flag that was not given).

        Raises: UsageError for an unknown key or a wrong value; it names the place and the remedy.
        """
        reading = _Reading()
        for key, value in _defaults().items():
            reading.take(key, value, "default")
        reading.file(user_config(), str(user_config()))
        reading.file(Path(PROJECT), f"./{PROJECT}", theirs=True)
        reading.environment(os.environ)
        for key, value in (flags or {}).items():
            if value is not None:
                reading.take(key, reading.value(key, value, f"--{key.replace('_', '-')}"), f"{FLAG}{key}")
        return cls(**reading.values, origins=reading.origins)

    def origin(self, key: str) -> str:
        return self.origins.get(key, "default")

    @property
    def store(self) -> Path:
        return self.home / "store"

    @property
    def runs(self) -> Path:
        return self.home / "runs"

    def index_of(self, name: str) -> Path:
        return self.home / "index" / f"{name}.db"

    def engine_variables(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Keys and addresses of the search engines, under the names in which `web.engines` looks for them."""
        given = os.environ if environment is None else environment
        known = {name: value.strip() for name, value in given.items() if value.strip()}
        for name, table in self.engines.items():
            base, key = engine_names(name)
            if "base_url" in table:
                known.setdefault(base, table["base_url"])
            if table.get("key_env") in known:
                known.setdefault(key, known[table["key_env"]])
        return known


def engine_names(engine: str) -> tuple[str, str]:
    """The variables of an engine's address and of its key."""
    stem = engine.upper()
    return "SEARXNG_URL" if engine == "searxng" else f"{stem}_BASE_URL", f"{stem}_API_KEY"


def user_config() -> Path:
    """`research/config.toml` in the user's configuration folder (XDG base directory specification)."""
    return _base("XDG_CONFIG_HOME", "~/.config") / "research" / "config.toml"


def _base(variable: str, otherwise: str) -> Path:
    given = os.environ.get(variable, "")
    return Path(given if given.startswith("/") else otherwise).expanduser()  # a relative one is ignored, says the spec


def _defaults() -> dict[str, Any]:
    return {"home": _base("XDG_DATA_HOME", "~/.local/share") / "research"}


class _Reading:
    """Settings as they are gathered, the weakest origin first."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[str, str] = {}

    def take(self, key: str, value: Any, origin: str) -> None:
        self.values[key] = value
        self.origins[key] = origin

    def value(self, key: str, value: Any, place: str) -> Any:
        return checked(KEYS[key].read, value, place)

    def environment(self, environment: Mapping[str, str]) -> None:
        names = {f"RESEARCH_{key.upper()}": key for key in KEYS}
        for name, given in environment.items():
            if not name.startswith("RESEARCH_") or not given:
                continue
            if name in names:
                self.take(names[name], self.value(names[name], given, name), name)
            elif hint := near(name, names, alike=0.85):  # further off, it may be a stranger's
                raise UsageError(f"there is no setting {name}{hint} Rename the variable, or unset it")

    def file(self, file: Path, path: str, theirs: bool = False) -> None:
        """`theirs`: it may have come along with a folder. `path` is what messages call it."""
        try:
            data = file.read_bytes() if file.is_file() else b""
        except OSError as error:
            raise UsageError(f"{path}: it can't be read ({error.strerror}); mend its permissions") from None
        if not data:
            return
        try:
            table = toml(data.decode("utf-8"))
        except ValueError as error:
            raise UsageError(f"{path}: it is no TOML: {error}. Mend that line") from None
        for key, value in table.items():
            if key not in KEYS and key not in TABLES:
                known = (*KEYS, *TABLES)
                raise UsageError(f"{path}: there is no setting {key!r}. Known are {', '.join(known)}{near(key, known)}")
            if theirs and not (key in KEYS and KEYS[key].anywhere):
                raise UsageError(_guarded(path, key))
            if key in KEYS:
                self.take(key, self.value(key, value, f"{path}: {key}"), path)
            else:
                self.table(path, key, value)

    def table(self, path: str, key: str, value: Any) -> None:
        """[providers.NAME], [engines.NAME], [prices."PROVIDER:MODEL"], [mcp.NAME]"""
        example = '[prices."provider:model"]' if key == "prices" else f"[{key}.name]"
        if not isinstance(value, dict) or not all(isinstance(inner, dict) for inner in value.values()):
            raise UsageError(f"{path}: {key}: it must hold tables such as {example}")
        for name, inner in value.items():
            if key == "engines" and name not in ENGINES:
                remedy = f". Known are {', '.join(ENGINES)}{near(name, ENGINES)}"
                raise UsageError(f"{path}: [engines.{name}]: there is no such engine{remedy}")
            if key == "mcp" and not re.fullmatch(SERVER, name):
                raise UsageError(f"{path}: [mcp.{name}]: name a server by at most 20 letters, digits and dashes")
            known, tables = TABLES[key], self.values.setdefault(key, {})
            for part, given in inner.items():
                place = f"{path}: [{key}.{name}] {part}"
                if part not in known:
                    raise UsageError(f"{place}: there is no such key. Known are {', '.join(known)}{near(part, known)}")
                tables.setdefault(name, {})[part] = checked(known[part], given, place)
                self.origins[f"{key}.{name}.{part}"] = path


def _guarded(path: str, key: str) -> str:
    return (
        f"{path}: {key!r} is not read from a folder's file, since a folder can come from anywhere: it decides where "
        f"keys and requests are sent, what may be spent or run, or where files are kept. Move it to {user_config()}"
    )
