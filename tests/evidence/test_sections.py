"""Reference lists, menus and comments are told from an article's own words."""

from __future__ import annotations

import pytest

from research.evidence.sections import non_evidence_spans

ARTICLE = "The tower was built in 1889.\nIt is 330 metres tall, and about 7 million people visit it each year.\n"
PROSE = "Its lifts were renewed later, which took several years and cost more than had been planned by the owners. " * 3


def left_out(text: str) -> list[str]:
    return [text[start:end] for start, end in non_evidence_spans(text)]


def test_an_article_is_evidence() -> None:
    assert left_out(ARTICLE + PROSE) == []
    assert left_out("") == []


@pytest.mark.parametrize(
    "heading", ["References", "## References", "**Bibliography**", "Notes:", "参考文献", "Weblinks"]
)
def test_a_list_of_references(heading: str) -> None:
    listed = f"{heading}\n- Smith, J. (2004). Towers. ISBN 12.\n- https://tower.example/a\n[3] Jones et al, pp. 4"
    assert left_out(ARTICLE + listed) == [listed]


def test_a_list_of_references_ends_at_prose_or_at_a_new_section() -> None:
    listed = "References\n1. Smith (2004)\n2. Jones (2005)"
    assert left_out(f"{ARTICLE}{listed}\n{PROSE}") == [listed]
    dated = "In 1889 the tower was opened. " * 8
    assert left_out(f"{ARTICLE}{listed}\n{dated}\nIn 1890 it was painted.") == [listed]
    assert left_out(f"{ARTICLE}{listed}\n## Visitors\nThe tower has many.") == [listed]


def test_a_heading_alone_is_not_enough() -> None:
    assert left_out(f"Sources\nThe river rises in the Alps.\nIt is fed by three glaciers.\n{PROSE}") == []
    assert left_out(f"Notes\n{PROSE}") == []


def test_comments_go_to_the_end() -> None:
    comments = "12 Comments\nAnna says:\nIt is 400 metres tall.\nReply\nBert\n3 days ago\nNo."
    assert left_out(ARTICLE + comments) == [comments]


def test_an_article_about_comments_stays() -> None:
    assert left_out(f"{ARTICLE}Comments\nThe minister made no comment on the tower.\nHer office was closed.") == []


def test_menus() -> None:
    menu = "Home\nNews\nAbout us\nContact\nLog in"
    assert left_out(f"{menu}\n{ARTICLE}") == [menu]
    assert left_out(f"{ARTICLE}Home | About | Privacy Policy | Terms of Use\n") == [
        "Home | About | Privacy Policy | Terms of Use"
    ]


def test_lists_and_tables_stay() -> None:
    members = "Members\nAnna Arendt\nBert Brecht\nClara Zetkin\nDora Maar\nEmil Nolde"
    assert left_out(f"{members}\n{ARTICLE}") == []
    assert left_out("| City | Contact | Phone |\n| --- | --- | --- |\n| Rome | Home | 123 |") == []
