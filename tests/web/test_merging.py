"""Merging lists of hits, with scores worked out by hand."""

from __future__ import annotations

import pytest

from research.records import Hit
from research.web.merging import merge

LONG = "Prices rose by 3.1 percent over the year, the statistics office said on Tuesday, after 3.7 percent."


def hits(*urls: str) -> list[Hit]:
    return [Hit(url=url, title=f"Title of {url}", rank=rank) for rank, url in enumerate(urls, 1)]


def urls(merged: list[Hit]) -> list[str]:
    assert [hit.rank for hit in merged] == list(range(1, len(merged) + 1))
    return [hit.url for hit in merged]


A, B, C, D = (f"http://{name}.example/" for name in "abcd")


def test_what_several_lists_found_comes_first() -> None:
    # B: 1/62 + 1/61 = 0.0325; A: 1/61 = 0.0164; C: 1/63 + 1/63 = 0.0317
    assert urls(merge([hits(A, B, C), hits(B, D, C)])) == [B, C, A, D]


def test_k_is_60() -> None:
    # one first place (1/61) against two places at rank 62: 2/122, which is the same: the first seen leads
    filler = [[f"http://f{n}-{rank}.example/" for rank in range(61)] for n in range(2)]
    merged = urls(merge([hits(A), hits(*filler[0], B), hits(*filler[1], B)]))
    assert merged.index(A) < merged.index(B) < merged.index(filler[0][1])


def test_ties_stand_by_first_appearance() -> None:
    assert urls(merge([hits(C), hits(A), hits(B)])) == [C, A, B]


def test_equal_places_in_any_order_are_a_tie() -> None:
    # ranks 1 to 7 in turn: added up in the order of the lists, floating-point sums would differ
    row = [f"http://{number}.example/" for number in range(7)]
    rotated = [row[start:] + row[:start] for start in range(7)]
    for start in range(7):
        lists = rotated[start:] + rotated[:start]
        assert urls(merge([hits(*row) for row in lists])) == lists[0]


def test_one_page_under_many_spellings_is_one_hit_with_the_clean_url() -> None:
    spellings = ["HTTP://A.example:80/x?utm_source=n#part", "http://a.example/x", "http://a.example/./x?gclid=1"]
    merged = merge([hits(*spellings), hits("http://a.example/x?a=1", "http://a.example/x?a=2")])
    assert urls(merged) == ["http://a.example/x", "http://a.example/x?a=1", "http://a.example/x?a=2"]
    assert merged[0].title == f"Title of {spellings[0]}"


def test_what_one_hit_lacks_another_gives() -> None:
    bare = Hit(url=A, title="Title", rank=1)
    full = Hit(url=A, title="Other", snippet="Text", date="2024-01-02", rank=1)
    assert merge([[bare], [full]]) == [bare.model_copy(update={"snippet": "Text", "date": "2024-01-02"})]


def test_hits_without_a_sound_url_are_left_out() -> None:
    assert urls(merge([hits("javascript:alert(1)", "//x", A, "http://u:p@b.example/", "file:///a%20b")])) == [
        A,
        "file:///a%20b",
    ]


def test_syndicated_copies_are_folded_into_the_better_one() -> None:
    first = Hit(url=A, title="Prices  rise", snippet=LONG, rank=1)
    copy = Hit(url=B + "news", title="prices rise", snippet=LONG.replace(" ", "\n"), rank=2)
    assert urls(merge([[first, copy]])) == [A]


@pytest.mark.parametrize(
    "other",
    [
        Hit(url=B, title="Prices rise", snippet=LONG + " More.", rank=2),
        Hit(url=B, title="Prices fall", snippet=LONG, rank=2),
        Hit(url=A + "?page=2", title="Prices rise", snippet=LONG, rank=2),
    ],
)
def test_what_only_resembles_is_kept(other: Hit) -> None:
    first = Hit(url=A, title="Prices rise", snippet=LONG, rank=1)
    assert len(merge([[first, other]])) == 2


def test_short_or_missing_snippets_prove_nothing() -> None:
    for snippet in ("", "Please enable cookies"):
        pair = [Hit(url=url, title="Home", snippet=snippet, rank=1) for url in (A, B)]
        assert len(merge([pair])) == 2


def test_scheme_and_www_alone_make_no_other_page() -> None:
    same = [Hit(url=url, title="T", snippet=url, rank=1) for url in ("https://www.a.example/x", "http://a.example/x")]
    assert urls(merge([same])) == ["https://www.a.example/x"]
    other = [same[0], same[1].model_copy(update={"title": "Another"})]
    assert len(merge([other])) == 2


def test_at_most_so_many_of_a_site() -> None:
    found = hits("http://a.example/1", "http://www.a.example/2", "http://a.example/3", B, "file:///1", "file:///2")
    assert urls(merge([found], per_site=1)) == ["http://a.example/1", B, "file:///1", "file:///2"]
    assert len(merge([found], per_site=2)) == 5


def test_nothing_merges_to_nothing() -> None:
    assert merge([]) == []
    assert merge([[], []]) == []
