"""PDFs, made here by hand: one object a line, as ISO 32000 describes them."""

from __future__ import annotations

from research.records import Outcome
from research.web.reading import read_page


def pdf(*lines: str, info: str = "") -> bytes:
    """A PDF of one page that shows `lines`."""
    shown = "".join(f"BT /F1 12 Tf 72 {700 - 20 * place} Td ({text}) Tj ET\n" for place, text in enumerate(lines))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}endstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< {info} >>",
    ]
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer << /Size {size} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("latin-1")


def test_a_pdf_is_known_by_its_content_and_read() -> None:
    body = pdf(
        "The harbour budget grew by a fifth.", "It is settled.", info="/Title (Budget) /CreationDate (D:20250304)"
    )
    page = read_page(body, url="https://a.example/report.html", content_type="text/html")
    assert (page.outcome, page.media_type) == (Outcome.OK, "application/pdf")
    assert page.text.splitlines() == ["The harbour budget grew by a fifth.", "It is settled."]
    assert (page.title, page.date, page.date_origin) == ("Budget", "2025-03-04", "PDF CreationDate")


def test_a_pdf_without_text_or_cut_short_is_empty_and_says_why() -> None:
    for body, reason in ((pdf(), "no text layer"), (b"%PDF-1.7\n1 0 obj\n<<", "damaged")):
        page = read_page(body, url="https://a.example/report.pdf")
        assert (page.outcome, page.text) == (Outcome.EMPTY, "")
        assert reason in page.detail
