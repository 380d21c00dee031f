"""HTML to a tree, without what a reader of the page does not see; and plain text from markup.

Two parsers: lxml, which trafilatura works on, and Lexbor (through selectolax) for what
lxml drops and for markup within other formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement
    from selectolax.lexbor import LexborNode

MOST_ATTRIBUTES = 500  # of one element: parsers compare each with each

# A start tag with more attributes than that. Possessive, and so linear: one pass over the page.
_CROWDED_TAG = re.compile(
    r"<([a-zA-Z][^\s<>/\"']*+)"
    r"(?:[\s/\"']*+[^\s=<>\"'/]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"']*+))?)"
    rf"{{{MOST_ATTRIBUTES + 1},}}+[^<>]*+>?"
)
XML_START = re.compile(r"\A\s*<\?xml\b[^>]*>")
NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # lxml refuses them in a text
_EMPTY_HTML_TAG = re.compile(r"(<html\b[^<>]{0,2000}?)\s*/>", re.IGNORECASE)

_HIDING_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)"
    r"|(?:font-size|opacity)\s*:\s*0(?:\.0+)?(?:px|em|rem|pt|%)?\s*(?:;|!|\}|$)"
    r"|(?:left|top|text-indent)\s*:\s*-\d{4,}px",
    re.IGNORECASE,
)
_HIDING_CLASS = re.compile(r"(?:^|\s)(?:hidden|is-hidden|d-none|invisible|visually-hidden)(?:\s|$)")
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SIMPLE_SELECTOR = re.compile(r"\A([.#])([\w-]+)\Z")
_NO_WORD = re.compile(r"\W+")
_MOST_SPARED = 20  # hidden elements, each within the other, that may hold most of a page
_ARTICLE = 1_000  # letters: with less, a hidden element is no article
_MOST_CSS = 200_000  # characters of a page's own style sheets that are read

_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption "
        "figure footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol option p pre section summary table tbody "
        "tfoot thead title tr ul",
    )
)
_NO_TEXT = "script, style, noscript, template, head, svg, iframe, object, select, button, textarea"
_FURNITURE = "nav, header, footer, aside, form, dialog, [hidden], [role=navigation], [role=banner], [role=contentinfo]"


def parse(html: str) -> tuple[HtmlElement | None, bool]:
    """The page's tree as trafilatura wants it (no comments, no processing instructions), and
    whether it is whole: lxml drops what lies under 2,048 and more nested elements.
    """
    from lxml import html as lxml_html
    from lxml.etree import LxmlError

    # huge_tree raises the depth limit from 255; the caller has bounded the size.
    parser = lxml_html.HTMLParser(
        collect_ids=False,
        default_doctype=False,
        encoding="utf-8",
        remove_comments=True,
        remove_pis=True,
        huge_tree=True,
    )
    start = _EMPTY_HTML_TAG.sub(r"\1>", html[:4096], count=1)
    source = NOT_XML.sub("", XML_START.sub("", start + html[4096:]))
    try:
        tree = lxml_html.document_fromstring(source.encode("utf-8"), parser=parser)
    except (LxmlError, ValueError, AssertionError):
        return None, False
    whole = not any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log)
    return tree, whole


def fewer_attributes(html: str) -> str:
    """`html` with the attributes dropped of each element that has more than `MOST_ATTRIBUTES`."""
    return _CROWDED_TAG.sub(r"<\1>", html)


def drop_hidden(tree: HtmlElement) -> None:
    """Take out of `tree` what the page itself hides: by attribute, inline style or a simple rule of its own sheets.

    Orders to a model that no reader sees are the commonest injection. What a script may reveal
    later goes too, unless it is most of a long page: whole articles are hidden until loaded.
    `noscript` stays, which is what a reader without scripts sees.
    """
    classes, ids = _hidden_by_sheets(tree)
    most, spared = max(_text_size(tree) / 2, _ARTICLE), 0
    for element in tree.xpath(".//*[@hidden or @style or @aria-hidden or @class or @id or self::template]"):
        if element.tag in ("html", "body") or not _hides(element, classes, ids):
            continue
        if spared < _MOST_SPARED and _text_size(element) > most:
            spared += 1
        else:
            element.drop_tree()


def _text_size(element: HtmlElement) -> int:
    """Letters and digits in `element` that are no script's or style sheet's."""
    parts = []
    for node in element.iter():
        if node.tag not in ("script", "style"):
            parts.append(node.text or "")
        if node is not element:
            parts.append(node.tail or "")
    return len(_NO_WORD.sub("", "".join(parts)))


def _hides(element: HtmlElement, classes: frozenset[str], ids: frozenset[str]) -> bool:
    attributes = element.attrib
    if element.tag == "template":
        return True
    if "hidden" in attributes and attributes["hidden"] != "until-found":
        return True
    if "style" in attributes and _HIDING_STYLE.search(attributes["style"]):
        return True
    names = attributes.get("class", "")
    if attributes.get("aria-hidden") == "true" and _HIDING_CLASS.search(names):
        return True
    return bool(classes and not classes.isdisjoint(names.split())) or attributes.get("id", "") in ids


def _hidden_by_sheets(tree: HtmlElement) -> tuple[frozenset[str], frozenset[str]]:
    """The classes and ids that the page's own `<style>` hides with a rule of one simple selector."""
    found: dict[str, set[str]] = {".": set(), "#": set()}
    sheets = "".join(element.text or "" for element in tree.iter("style"))[:_MOST_CSS]
    for selectors, body in _top_rules(_CSS_COMMENT.sub("", sheets)):
        if not _HIDING_STYLE.search(body):
            continue
        for selector in selectors.split(","):
            if simple := _SIMPLE_SELECTOR.match(selector.strip()):
                found[simple[1]].add(simple[2])
    return frozenset(found["."]), frozenset(found["#"])


def _top_rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and body of each rule outside @media and the like, which hold for some readers only."""
    depth = 0
    for chunk in css.split("}"):
        parts = chunk.split("{")
        if depth == 0 and len(parts) == 2:
            yield parts[0], parts[1]
        depth = max(0, depth + len(parts) - 2)


def source(tree: HtmlElement) -> str:
    """`tree` as HTML again."""
    from lxml.html import tostring

    return str(tostring(tree, encoding="unicode"))


def visible_text(html: str, furniture: bool = True) -> str:
    """The text of `html`, a line for each block, cells parted by " | "; without navigation and the like
    if not `furniture`.
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for node in tree.css(_NO_TEXT):
        node.decompose()
    if not furniture:
        for node in tree.css(_FURNITURE):
            node.decompose()
    for node in tree.css("[style]"):
        if node.tag != "body" and _HIDING_STYLE.search(node.attributes.get("style") or ""):
            node.decompose()
    return _lines(tree.body) if tree.body else ""


def _lines(body: LexborNode) -> str:
    parts: list[str] = []
    for node in body.traverse(include_text=True):
        if node.tag == "-text":
            parts.append(node.text_content or "")
        elif node.tag in ("td", "th"):
            parts.append(" | " if node.prev is not None else "\n")
        elif node.tag in _BLOCKS:
            parts.append("\n")
    return "".join(parts)
