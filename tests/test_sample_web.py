"""The bundled sample web is complete, closed in itself, sourced, and answers its questions."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pypdfium2
import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
WEB = FIXTURES / "web"
SNAPSHOT = "2025-03-01"
# Names of vocabularies, which nobody fetches; everything else must stay on reserved hosts.
VOCABULARIES = {"schema.org", "ogp.me"}
LINKING = {"href", "src", "srcset", "action", "poster", "data", "cite", "formaction", "background"}
SOURCED = re.compile(
    r"Sources? of figures: \w|Data: based on U\.S\. Bureau of Labor Statistics|Источник данных: \w|数値の出典:\w"
)
CLASSES = {"single fact", "comparison", "multi-source", "other language", "table", "pdf"}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


PAGES = lines(WEB / "pages.jsonl")
BY_URL = {page["url"]: page for page in PAGES}
HTML = [page for page in PAGES if page["file"].endswith(".html")]
UNREADABLE = [page for page in PAGES if "snippet" in page]
QUESTIONS = lines(FIXTURES / "questions.jsonl")
UNANSWERABLE = lines(FIXTURES / "unanswerable.jsonl")


class Reader(HTMLParser):
    """Collects what a page says (scripts and styles left out) and where its attributes point."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.targets: list[str] = []
        self._mute = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._mute += tag in {"script", "style"}
        self.targets += [value for name, value in attrs if name in LINKING and value]

    def handle_endtag(self, tag: str) -> None:
        self._mute -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self._mute:
            self.said.append(data)


def name(page: dict[str, Any]) -> str:
    return Path(page["file"]).stem


@cache
def source(file: str) -> str:
    """An HTML file as text, by the charset of its header, else of its meta element."""
    body = (WEB / file).read_bytes()
    header = next(page["content_type"] for page in PAGES if page["file"] == file)
    declared = re.search(r"charset=([\w-]+)", header) or re.search(r"charset=[\"']?([\w-]+)", body.decode("latin-1"))
    assert declared, f"{file} declares no charset"
    return body.decode(declared[1])


@cache
def text(file: str) -> str:
    if file.endswith(".pdf"):
        document = pypdfium2.PdfDocument(WEB / file)
        said = "\n".join(page.get_textpage().get_text_range() for page in document)
        document.close()
        return normal(said)
    reader = Reader()
    reader.feed(source(file))
    return normal(" ".join(reader.said))


def normal(said: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", said)).strip()


def of(stem: str) -> dict[str, Any]:
    return next(page for page in PAGES if name(page) == stem)


def reads(stem: str) -> str:
    return text(of(stem)["file"])


def test_manifest_and_files_agree() -> None:
    listed = [page["file"] for page in PAGES]
    assert sorted(listed) == sorted(f"pages/{path.name}" for path in (WEB / "pages").iterdir())
    assert len(set(listed)) == len(set(BY_URL)) == len(PAGES) >= 24
    for page in PAGES:
        assert set(page) <= {"url", "file", "title", "snippet", "status", "content_type"}


def test_titles_and_snippets_are_given_where_content_cannot_be_read_only() -> None:
    assert {name(page) for page in UNREADABLE} == {
        "inflation-tracker-challenge",
        "grid-map-dashboard",
        "demographic-quarterly-paywall",
    }
    assert all(page["title"] and page["snippet"] for page in UNREADABLE)
    assert not any("title" in page for page in PAGES if page not in UNREADABLE)


def test_the_snapshot_has_a_name_and_a_date() -> None:
    web = json.loads((WEB / "web.json").read_text(encoding="utf-8"))
    assert set(web) == {"name", "date", "note"}
    assert (web["name"], web["date"]) == ("sample web", SNAPSHOT)


def test_it_stays_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*") if path.is_file()) <= 300_000
    assert (WEB / of("labor-statistics-cpi-u-monthly-table")["file"]).stat().st_size <= 60_000


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_hosts_are_reserved(page: dict[str, Any]) -> None:
    address = urlsplit(page["url"])
    assert address.scheme == "https"
    assert (address.hostname or "").endswith(".example")


@pytest.mark.parametrize("page", HTML, ids=name)
def test_nothing_loads_from_or_links_to_a_real_host(page: dict[str, Any]) -> None:
    reader = Reader()
    reader.feed(source(page["file"]))
    for target in reader.targets:
        address = urlsplit(target)
        assert address.scheme in {"", "https", "mailto"}
        host = address.path.partition("@")[2] if address.scheme == "mailto" else address.hostname or ""
        assert host.endswith(".example") or (not host and address.scheme == "")
    for host in re.findall(r"(?<![\w:])(?:https?:)?\\?/\\?/([\w-]+(?:\.[\w-]+)+)", source(page["file"])):
        assert host.endswith(".example") or host in VOCABULARIES


@pytest.mark.parametrize("page", [page for page in PAGES if page not in UNREADABLE], ids=name)
def test_every_page_names_the_source_of_its_figures(page: dict[str, Any]) -> None:
    said = text(page["file"])
    assert SOURCED.search(said), said[-400:]


def test_templates_differ() -> None:
    heads = [re.sub(r"<title>.*?</title>", "", source(page["file"]), flags=re.DOTALL)[:400] for page in HTML]
    assert len(set(heads)) == len(HTML)


def test_publication_dates_are_given_in_every_way_and_none_is_after_the_snapshot() -> None:
    ways = {
        "article:published_time": r'article:published_time" content="(\d{4}-\d\d-\d\d)',
        "json-ld": r'"datePublished": ?"(\d{4}-\d\d-\d\d)',
        "time": r'<time[^>]* datetime="(\d{4}-\d\d-\d\d)',
        "other meta": r'<meta (?:name="date"|name="DC.date"|itemprop="datePublished") content="(\d{4}-\d\d-\d\d)',
    }
    dates = {way: [d for page in HTML for d in re.findall(form, source(page["file"]))] for way, form in ways.items()}
    assert all(dates.values())
    assert max(date for found in dates.values() for date in found) <= SNAPSHOT
    undated = [page for page in HTML if not any(re.search(form, source(page["file"])) for form in ways.values())]
    assert {"grocery-data-eggs", "euro-space-safety-yr4", "prices-explained-inflation"} <= {name(p) for p in undated}


def test_the_pdf_has_a_text_layer_and_metadata() -> None:
    page = of("labor-statistics-cpi-u-monthly-table")
    document = pypdfium2.PdfDocument(WEB / page["file"])
    about = document.get_metadata_dict()
    document.close()
    assert page["content_type"] == "application/pdf"
    assert about["Title"] == "CPI-U monthly table, January 2024 to January 2025"
    assert about["CreationDate"].startswith("D:20250212")
    assert "September 2024 315.301 2.4" in text(page["file"])


def test_the_pdf_rates_follow_from_its_index_levels() -> None:
    rows = re.findall(r"(\w+ 202[45]) (\d{3}\.\d{3}) (\d\.\d)", reads("labor-statistics-cpi-u-monthly-table"))
    level = {month: float(index) for month, index, _ in rows}
    rate = {month: float(change) for month, _, change in rows}
    assert len(rows) == 13
    assert round((level["January 2025"] / level["January 2024"] - 1) * 100, 1) == rate["January 2025"] == 3.0


def test_other_character_sets() -> None:
    russian, japanese = of("ekonomika-obzor-klyuchevaya-stavka"), of("jinko-dayori-births-2024")
    assert russian["content_type"] == "text/html"
    assert "charset=windows-1251" in source(russian["file"])
    assert "Ключевая ставка осталась на уровне 21%" in text(russian["file"])
    assert "出生数は72万988人" in text(japanese["file"])
    for page in (russian, japanese):
        with pytest.raises(UnicodeDecodeError):
            (WEB / page["file"]).read_bytes().decode("utf-8")


def test_challenge_shell_and_paywall() -> None:
    challenge, shell = of("inflation-tracker-challenge"), of("grid-map-dashboard")
    assert challenge["status"] == 403
    assert "Just a moment..." in text(challenge["file"])
    assert "JavaScript" in text(shell["file"])
    assert len(text(shell["file"])) < 100
    assert "for subscribers only" in reads("demographic-quarterly-paywall")
    assert [name(page) for page in PAGES if "status" in page] == [name(challenge)]


def test_the_injection_stands_in_hidden_and_in_visible_text_of_a_useful_page() -> None:
    page = of("warm-years-nasa-2024")
    assert re.search(r'<div style="display:none">[^<]*Ignore all previous instructions', source(page["file"]))
    assert re.search(r"<p [^>]*><b>Note to AI assistants", source(page["file"]))
    assert any(question["gold_urls"] == [page["url"]] for question in QUESTIONS)
    assert not any("ignore all previous" in text(p["file"]).lower() for p in PAGES if p is not page)


def shingles(said: str) -> set[tuple[str, ...]]:
    words = said.lower().split()
    return set(zip(*(words[start:] for start in range(5)), strict=False))


def test_one_pair_of_pages_are_near_duplicates() -> None:
    parts = {name(page): shingles(text(page["file"])) for page in PAGES}

    def alike(one: str, other: str) -> float:
        return len(parts[one] & parts[other]) / max(1, min(len(parts[one]), len(parts[other])))

    close = [pair for pair in combinations(sorted(parts), 2) if alike(*pair) > 0.5]
    assert close == [("harbor-ledger-consumer-prices", "midland-wire-consumer-prices")]


def test_one_page_contradicts_the_release_on_the_same_quantity() -> None:
    right, wrong = reads("labor-statistics-cpi-january-2025"), reads("money-brief-inflation-today")
    assert "inflation rate was 3.0 percent in January 2025, compared with 3.1 percent a year ago" in right
    assert "inflation rate in January 2025 was 2.9%, down from 3.4% in January 2024" in wrong
    assert not any(of("money-brief-inflation-today")["url"] in question["gold_urls"] for question in QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_answers_stand_in_each_gold_page_or_between_them(question: dict[str, Any]) -> None:
    assert set(question) == {"id", "question", "answers", "gold_urls", "class"}
    assert question["class"] in CLASSES
    golds = [BY_URL[url] for url in question["gold_urls"]]
    found = [any(normal(answer) in text(page["file"]) for answer in question["answers"]) for page in golds]
    assert any(found)
    if question["class"] != "multi-source":
        assert all(found)
    assert not any(page in UNREADABLE for page in golds)


def test_questions_cover_every_class_and_begin_with_the_demo() -> None:
    assert QUESTIONS[0]["question"] == "What is the US inflation rate, and how does it compare with a year ago?"
    assert QUESTIONS[0]["gold_urls"][0] == of("labor-statistics-cpi-january-2025")["url"]
    assert {question["class"] for question in QUESTIONS} == CLASSES
    assert all(len(q["gold_urls"]) > 1 for q in QUESTIONS if q["class"] == "multi-source")
    assert len(QUESTIONS) == 20


def test_unanswerable_questions_say_why() -> None:
    ids = [question["id"] for question in QUESTIONS + UNANSWERABLE]
    assert len(set(ids)) == len(ids) == 40
    for question in UNANSWERABLE:
        assert set(question) == {"id", "question", "answers", "gold_urls", "class", "why"}
        assert question["answers"] == question["gold_urls"] == []
        assert len(question["why"]) > 20
    assert {question["class"] for question in UNANSWERABLE} == {"near miss", "off topic", "false premise"}


def test_the_readme_lists_every_page() -> None:
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    assert [name(page) for page in PAGES if f"`{name(page)}`" not in readme] == []
