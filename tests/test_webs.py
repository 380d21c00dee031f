"""Which web is meant, what it is called in keys, and that it opens nothing before it is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from research.app import App, Dates, load_pipeline
from research.artifacts import encode
from research.errors import UsageError
from research.llm.scripted import ScriptedModel
from research.records import Hit, Outcome, Page, Question
from research.settings import ENGINES, KEYED, Settings, engine_names
from research.store import Store, digest
from research.web.base import Hits, is_live
from research.web.engines import engine
from research.web.index import LocalWeb
from research.web.live import Asking, LiveWeb
from research.web.revisits import Validators
from research.webs import KEYLESS, Kept, build, opened


def settings(home: Path, **how: Any) -> Settings:
    return Settings.read({"home": str(home), **how})


@pytest.fixture
async def notes(tmp_path: Path) -> Settings:
    """A home with the indexes `notes` and `more`."""
    for name in ("notes", "more"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "ulm.md").write_text(f"# Ulm, {name}\n\nThe tower of the minster of Ulm is 161.5 metres high.\n")
        (tmp_path / "home" / "index").mkdir(parents=True, exist_ok=True)
        await build(settings(tmp_path / "home").index_of(name), folder)
    return settings(tmp_path / "home")


async def test_unless_told_otherwise_engines_without_a_key(tmp_path: Path) -> None:
    async with opened(settings(tmp_path), Store(None)) as web:
        assert isinstance(web, LiveWeb)
        assert (web.name, web.source, web.date) == (KEYLESS, "live", None)
        assert web._opened is None
    for name in KEYLESS.split(","):
        assert engine(name, {}).disabled == ""


async def test_names_keys_and_addresses_of_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENGINES:
        base, key = engine_names(name)
        variables = {base: "https://user:word@own.test:8443/search", key: "canary"}
        asking = Asking([name], variables)
        assert asking.name == f"{name}@own.test:8443"  # where it is asked is a part of the key; its password is not
        assert "canary" not in asking.name + asking.source
        assert engine(name, variables).base == "https://user:word@own.test:8443/search"
        if name in KEYED:
            assert engine(name, {}).disabled
            assert not engine(name, variables).disabled


async def test_an_index_alone_is_no_live_web_and_among_engines_it_is_a_part_of_it(notes: Settings) -> None:
    async with opened(settings(notes.home, search="local:notes"), Store(None)) as alone:
        assert isinstance(alone, LocalWeb)
        own = alone.source
    async with opened(settings(notes.home, search="local:notes,local:more"), Store(None)) as both:
        assert not is_live(both.source)
        assert own in both.source
        [hit] = await both.search("tower of Ulm", 5)
        page = await both.fetch(hit.url)
        assert (page.outcome, "161.5" in page.text) == (Outcome.OK, True)
        assert (await both.fetch("https://example.org/")).outcome is Outcome.GONE  # nothing is dialled
        assert isinstance(both, LiveWeb)
        assert both._opened is not None
        assert both._opened.reader is not None
        assert both._opened.reader._idle == []  # no parser was started
    async with opened(settings(notes.home, search="local:notes,wikipedia"), Store(None)) as mixed:
        assert (mixed.name, mixed.source) == ("local:notes,wikipedia", f"live {own}")
        hits = await mixed.search("tower of Ulm", 5)
        assert isinstance(hits, Hits)
        assert (hits.engine, hits.skipped) == ("local:notes", ())
        assert (await mixed.fetch(hits[0].url)).outcome is Outcome.OK


@pytest.mark.parametrize("how", [{"offline": True, "world": Path("w")}, {"world": Path("w"), "search": "brave"}])
async def test_one_web_at_a_time(tmp_path: Path, how: dict[str, Any]) -> None:
    search = {"search": how.pop("search")} if "search" in how else {}
    with pytest.raises(UsageError, match="name different webs"):
        async with opened(settings(tmp_path, **search), Store(None), **how):
            pass


async def test_a_search_in_the_config_stands_back_behind_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_SEARCH", "brave")
    async with opened(settings(tmp_path), Store(None), offline=True) as web:
        assert web.name == "sample web"


async def test_kept_pages_share_the_bytes_of_their_artifact(tmp_path: Path) -> None:
    store, page = Store(tmp_path), Page(url="https://a.test/", outcome=Outcome.OK, text="Words.")
    kept = Kept(store, "live")
    assert kept.earlier(page.url) is None
    kept.keep(page.url, Validators('"v1"', ""), page)
    assert kept.earlier(page.url) == (Validators('"v1"', ""), page)
    assert store.value(digest(encode(page, Page))) is not None
    assert Kept(store, "live 127.0.0.0/8").earlier(page.url) is None
    store.close()


class Engines:
    """Two engines, of which the first is skipped; the second costs."""

    name, source, date = "duckduckgo,brave", "live", None

    async def search(self, query: str, top: int) -> list[Hit]:
        return Hits([Hit(url="https://a.test/", title="T", rank=1)], "brave", ["duckduckgo: captcha: wait"])

    async def fetch(self, url: str) -> Page:
        return Page(url=url, outcome=Outcome.BLOCKED)


async def test_who_answered_and_what_it_took_is_in_the_receipt(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: {"needs_search": True, "queries": ["q"], "reason": ""})
    fees = {"brave": 5_000_000}
    app = App(Settings(tmp_path), {"cheap": model, "capable": model}, fee=lambda name: fees.get(name, 0))
    today = Dates.resolve()
    result = await app.ask(Question(text="Why?"), load_pipeline("top-n"), Engines(), today)
    app.close()
    [receipt] = [line["receipt"] for line in result.lines if line["event"] == "made" and line["stage"] == "search"]
    assert receipt["calls"] == [{"what": "search", "name": "brave", "usd": 5_000_000}]
    assert receipt["notes"] == ["skipped duckduckgo: captcha: wait"]
    [page] = [line["receipt"] for line in result.lines if line["event"] == "made" and line["stage"] == "fetch"]
    assert page["outcome"] == "blocked"
