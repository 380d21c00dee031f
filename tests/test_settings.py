"""Settings: which origin wins, what a folder's own file may not say, and that mistakes are told with place and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.errors import UsageError
from research.settings import ENGINES, KEYS, TABLES, Settings, engine_names, user_config
from tests.conftest import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def project(text: str) -> None:
    Path("research.toml").write_text(text, encoding="utf-8")


def user(text: str) -> Path:
    user_config().parent.mkdir(parents=True, exist_ok=True)
    user_config().write_text(text, encoding="utf-8")
    return user_config()


def told(flags: dict[str, object] | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        Settings.read(flags)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_each_origin_beats_the_next(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Settings.read().cheap, Settings.read().origin("cheap")) == ("", "default")
    config = user('cheap = "a:user"\ncapable = "a:user"')
    assert (Settings.read().cheap, Settings.read().origin("cheap")) == ("a:user", str(config))
    project('cheap = "a:project"')
    assert (Settings.read().cheap, Settings.read().origin("cheap")) == ("a:project", "./research.toml")
    monkeypatch.setenv("RESEARCH_CHEAP", "a:environment")
    assert (Settings.read().cheap, Settings.read().origin("cheap")) == ("a:environment", "RESEARCH_CHEAP")
    settings = Settings.read({"cheap": "a:flag", "capable": None})
    assert (settings.cheap, settings.origin("cheap")) == ("a:flag", "flag --cheap")
    assert (settings.capable, settings.origin("capable")) == ("a:user", str(config))


def test_the_folders_follow_the_xdg_specification(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.read().home == home / ".local" / "share" / "research"
    assert user_config() == home / ".config" / "research" / "config.toml"
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    assert Settings.read().store == Path("/data/research/store")
    assert user_config() == Path("/config/research/config.toml")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # "consider the path invalid and ignore it"
    assert Settings.read().home == home / ".local" / "share" / "research"
    monkeypatch.setenv("RESEARCH_HOME", "~/elsewhere")
    assert Settings.read().index_of("docs") == home / "elsewhere" / "index" / "docs.db"


@pytest.mark.parametrize(
    "text",
    [
        '[providers.mine]\nwire = "openai-chat"\nbase_url = "https://evil.example"',
        '[providers.anthropic]\nbase_url = "https://evil.example"',
        '[engines.searxng]\nbase_url = "https://evil.example"',
        'allow_addresses = ["10.0.0.0/8"]',
        '[prices."openai:gpt-6-luna"]\ninput = 0',
        "max_usd = 1000",
        "max_calls = 1000000",
        "deadline = 1e9",
        'home = "."',
    ],
)
def test_a_folders_own_file_says_nothing_about_addresses_money_or_places(folder: Path, text: str) -> None:
    user(text)
    Settings.read()  # the user may
    user_config().unlink()
    project(text)
    error = told()
    assert error.startswith("./research.toml: ")
    assert "a folder can come from anywhere" in error
    assert str(user_config()) in error


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('chaep = "a:b"', ["there is no setting 'chaep'", "Did you mean 'cheap'?"]),
        ("cheap = 3", ["cheap: it must be text in quotes (it is 3)"]),
        ("max_usd = true", ["max_usd: it must be a number from 0 on, written like 0.50 (it is True)"]),
        ("max_usd = nan", ["max_usd: it must be a number"]),
        ("max_usd = -1", ["max_usd: it must be a number"]),
        ("max_calls = 1.5", ["max_calls: it must be a whole number (it is 1.5)"]),
        ('allow_addresses = [1]', ["allow_addresses: it must be a list"]),
        ("cheap =", ["it is no TOML: Invalid value", "Mend that line"]),
        ("cheap = " + "[" * 20_000, ["it is no TOML: it is nested too deeply"]),
        ("providers = 3", ["providers: it must hold tables such as [providers.name]"]),
        ('prices = {a = 1}', ['prices: it must hold tables such as [prices."provider:model"]']),
        ('[providers.mine]\nbase_ulr = "https://a"', ["[providers.mine] base_ulr: there is no such key", "Did you mean 'base_url'?"]),
        ('[providers.mine]\nwire = "openai"', ["[providers.mine] wire: it must be one of openai-chat, openai-responses, anthropic"]),
        ('[providers.mine]\nbase_url = "ftp://a"', ["[providers.mine] base_url: it must be an address like https://host/v1"]),
        ('[engines.searxgn]\nbase_url = "https://a"', ["[engines.searxgn]: there is no such engine", "Did you mean 'searxng'?"]),
        ('[prices."a:b"]\ninput = "cheap"', ["[prices.a:b] input: it must be a number"]),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_its_remedy(folder: Path, text: str, parts: list[str]) -> None:
    path = user(text)
    error = told()
    assert error.startswith(f"{path}: ")
    for part in parts:
        assert part in error


@pytest.mark.parametrize("given", ["-1", "nan", "inf", "1,50", "abc"])
def test_a_cap_that_is_no_number_is_refused_wherever_it_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    assert told({"max_usd": given}).startswith("--max-usd: it must be a number")
    monkeypatch.setenv("RESEARCH_MAX_USD", given)
    assert told().startswith("RESEARCH_MAX_USD: it must be a number")


def test_a_cap_of_nothing_is_a_cap(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESEARCH_MAX_USD", "0")
    monkeypatch.setenv("RESEARCH_ALLOW_ADDRESSES", "127.0.0.0/8, 10.1.0.0/16")
    settings = Settings.read()
    assert settings.max_usd == "0"
    assert settings.allow_addresses == ("127.0.0.0/8", "10.1.0.0/16")


@pytest.mark.parametrize(
    ("given", "kept"), [("0.50", "0.5"), ("NONE", "none"), (0.00001, "0.00001"), (3, "3"), ("1e3", "1000")]
)
def test_caps_are_kept_as_the_budget_reads_them(folder: Path, given: object, kept: str) -> None:
    assert Settings.read({"max_usd": given}).max_usd == kept


def test_a_mistyped_variable_is_an_error_and_a_strangers_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESEARCH_GROUP_SHARE", "/mnt")
    monkeypatch.setenv("RESEARCH_CAPABLE", "")  # as good as not set
    assert Settings.read().capable == ""
    monkeypatch.setenv("RESEARCH_CHAEP", "a:b")
    assert (
        told() == "there is no setting RESEARCH_CHAEP. Did you mean 'RESEARCH_CHEAP'? Rename the variable, or unset it"
    )


@pytest.mark.parametrize(
    "text",
    [
        '[providers.mine]\nkey_env = "sk-canary-1234"',
        '[providers.mine]\nbase_url = "https://user:sk-canary-1234@host/v1"',
        '[providers.mine]\napi_key = "sk-canary-1234"',
        '[engines.brave]\nkey_env = "sk-canary-1234"',
    ],
)
def test_a_key_in_the_wrong_place_is_not_repeated(folder: Path, text: str) -> None:
    user(text)
    assert "canary" not in told()


def test_a_file_that_is_none_is_passed_over(folder: Path) -> None:
    Path("research.toml").mkdir()
    assert Settings.read().cheap == ""


def test_engines_get_their_keys_and_addresses(folder: Path) -> None:
    user(
        '[engines.searxng]\nbase_url = "http://127.0.0.1:8888/"\n[engines.brave]\nkey_env = "MY_BRAVE"\nusd_per_search = 0.005'
    )
    settings = Settings.read()
    assert settings.engine_variables({"MY_BRAVE": "k"}) == {
        "MY_BRAVE": "k", "SEARXNG_URL": "http://127.0.0.1:8888", "BRAVE_API_KEY": "k",
    }  # fmt: skip
    assert settings.engine_variables({"SEARXNG_URL": "https://mine"})["SEARXNG_URL"] == "https://mine"
    assert settings.engines["brave"]["usd_per_search"] == 0.005


def test_the_tables_agree_with_what_they_speak_of() -> None:
    from research.web.engines import ENGINES as THEIRS
    from research.web.engines import engine

    assert tuple(THEIRS) == ENGINES
    for name in ENGINES:
        base, key = engine_names(name)
        assert engine(name, {base: "https://there.example"}).base == "https://there.example", name
        assert "not set" not in engine(name, {base: "https://there.example", key: "k"}).disabled
    assert set(Settings._fields) == {*KEYS, *TABLES, "origins"}


def test_the_document_tells_every_key_and_its_example_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from research.llm.prices import Prices
    from research.llm.providers import PROVIDERS, endpoint

    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    user(document.partition("```ini\n")[2].partition("```")[0])
    settings = Settings.read()
    mine = endpoint(settings.cheap, settings, {"MY_LLM_KEY": "k"})
    assert (mine.base_url, mine.dialect.structured, mine.limits.at_once, mine.key) == (
        "https://llm.example.org/v1",
        "object",
        8,
        "k",
    )
    assert endpoint("openai:x", settings, {"OPENAI_KEY_OF_WORK": "w"}).key == "w"
    assert Prices(settings, {}).search_fee("brave") == 5_000_000
    for key, row in KEYS.items():
        line = next(line for line in document.splitlines() if line.startswith("|") and f"`{key}`" in line)
        assert line.endswith("| yes |" if row.anywhere else "| no |"), key
    for table in TABLES:
        for key in TABLES[table]:
            assert f"\n{key} = " in document, f"{table}: {key}"
    for name, provider in PROVIDERS.items():
        line = next(line for line in document.splitlines() if line.startswith(f"| `{name}` |"))
        for variable in (*provider.key_variables, provider.url_variable):
            assert f"`{variable}`" in line, name
