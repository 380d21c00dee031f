"""What became of a page: read from its status, its markers and how much text it has.

The words are those of `records.Outcome`, which this module doesn't import: the parser
process does without pydantic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Ending = Literal["ok", "blocked", "needs JavaScript", "login or paywall", "too large", "wrong type", "empty", "gone"]

SHORT = 600  # characters: only a page with less main text can be a challenge, a shell or a login form
_WORDY = 5 * SHORT  # a challenge that explains itself
_SCANT = 200  # characters: less is no article
_LEAST = 20  # characters of text that can say anything
_MARKUP = 200_000  # characters in which markers are looked for

_CHALLENGE = re.compile(
    r"cf-browser-verification|cf_chl_|cf-chl-|/cdn-cgi/challenge-platform/h/|cf-captcha|cf-error-details"
    r"|jschl[-_]|captcha-delivery\.com|px-captcha|_Incapsula_Resource|distil_r_|sucuri_cloudproxy|awswaf\.com/"
    r"|anubis_challenge|ddos-guard|/_sec/cp_challenge|kpsdk|geo\.captcha|perimeterx|/cdn-cgi/bm/|__CF\$cv\$params",
    re.IGNORECASE,
)
_CAPTCHA = re.compile(r"g-recaptcha|h-captcha|hcaptcha\.com|recaptcha/api|cf-turnstile|arkoselabs", re.IGNORECASE)
_CHALLENGE_WORDS = re.compile(
    r"just a moment|checking your browser|attention required|verify(?:ing)? (?:that )?you are (?:a )?human"
    r"|are you a (?:robot|human)|not a robot|unusual traffic|pardon our interruption"
    r"|access (?:to this page has been )?denied"
    r"|you have been blocked|request blocked|security check|ddos protection|making sure you.re not a bot"
    r"|enable javascript and cookies to continue|complete the captcha|bot verification|human verification",
    re.IGNORECASE,
)
_CONSENT_WORDS = re.compile(
    r"before you continue to|we and our (?:\d+ )?partners|bevor sie (?:zu .{1,40} )?(?:fortfahren|weitergehen)"
    r"|avant d.acc[ée]der|accept all cookies to continue|consent to (?:the use of )?cookies to continue",
    re.IGNORECASE,
)
_CONSENT_HOST = re.compile(r"\Ahttps?://(?:[\w-]+\.)*(?:consent|guce|cmp)\.[\w.-]+(?:[/:?]|$)", re.IGNORECASE)
_LOGIN = re.compile(r"<input\b[^>]{0,300}\btype\s*=\s*[\"']?password", re.IGNORECASE)
_LOGIN_WORDS = re.compile(
    r"\b(?:sign|log) ?in (?:to|with|or)\b|\blog ?in required|please (?:log|sign) ?in|create an account to"
    r"|forgot (?:your )?password",
    re.IGNORECASE,
)
_PAYWALL_WORDS = re.compile(
    r"subscribe (?:now )?to (?:continue|read|unlock|keep reading)|subscribers? only|only for subscribers"
    r"|already a subscriber|to continue reading|for unlimited access|members[- ]only"
    r"|nur für abonnenten|réservé aux abonnés|solo para suscriptores",
    re.IGNORECASE,
)
_SHELL = re.compile(
    r"<(?:div|main|section|app-root|body)\b[^>]{0,200}\bid\s*=\s*[\"']?(?:root|app|__next|__nuxt|svelte|main|app-root|react-root)"
    r"[\"']?[^>]{0,200}>\s*</|<app-root\b[^>]{0,200}>\s*</|ng-app\b|data-reactroot",
    re.IGNORECASE,
)
_SCRIPT_NEEDED = re.compile(
    r"(?:enable|turn on|requires?|need|activate|without) javascript"
    r"|javascript (?:functionality )?(?:is |to be )?(?:disabled|required|enabled|turned off)"
    r"|javascript (?:aktivieren|einschalten)|activer javascript|habilit\w+ javascript",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)
_REFRESH = re.compile(r"<meta\b[^>]{0,200}http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)
_FRAMES = re.compile(r"<frameset\b", re.IGNORECASE)
_GONE_TITLE = re.compile(
    r"\A(?:error\s*)?404\b|\b404 (?:error|not found)|page (?:was )?not found|page (?:doesn.t|does not) exist"
    r"|seite nicht gefunden|page introuvable|página no encontrada",
    re.IGNORECASE,
)

_BY_STATUS: dict[int, tuple[Ending, str]] = {
    401: ("login or paywall", "the server asks for a login"),
    402: ("login or paywall", "the server asks for payment"),
    403: ("blocked", "the server refuses this reader"),
    404: ("gone", "the server knows no such page"),
    407: ("blocked", "a proxy asks for a login"),
    410: ("gone", "the page was taken away"),
    429: ("blocked", "the server says: too many requests"),
    451: ("blocked", "withheld for legal reasons"),
    503: ("blocked", "the server is unavailable, or says so to this reader"),
}


def by_status(status: int) -> tuple[Ending, str] | None:
    """The outcome and its reason where the status alone decides; None for 2xx with a body to read."""
    if status in (204, 205, 304):
        return "empty", f"status {status}: no body"
    if 200 <= status < 300:
        return None
    ending, reason = _BY_STATUS.get(status, ("empty", "no page was sent"))
    return ending, f"status {status}: {reason}"


@dataclass(frozen=True)
class Evidence:
    """What an outcome is judged by. `paid` is the page's own word that it is not free."""

    html: str
    title: str
    text: str  # the main text
    url: str
    paid: bool = False


def by_content(page: Evidence) -> tuple[Ending, str]:
    """The outcome of an HTML page sent with status 200, and the reason where it is not ok.

    What has text enough is ok: widgets of every kind stand on pages that can be read.
    """
    markup = page.html[:_MARKUP]
    if len(page.text) >= SHORT:
        wordy = len(page.text) < _WORDY and _CHALLENGE_WORDS.search(page.title) and _CHALLENGE.search(markup)
        return ("blocked", "a challenge stands in place of the page") if wordy else ("ok", "")
    words = f"{page.title}\n{page.text}"
    return (
        _barred(markup, words, page.url) or _closed(markup, words, page) or _hollow(markup, words, page) or ("ok", "")
    )


def _barred(markup: str, words: str, url: str) -> tuple[Ending, str] | None:
    said = _CHALLENGE_WORDS.search(words)
    if _CHALLENGE.search(markup) and (said or len(words) < _SCANT):
        return "blocked", "a challenge stands in place of the page"
    if _CAPTCHA.search(markup) and (said or len(words) < _SCANT):
        return "blocked", "a captcha stands in place of the page"
    if said and len(words) < SHORT:
        return "blocked", f"the page says: {said[0]}"
    if _CONSENT_HOST.match(url) or (_CONSENT_WORDS.search(words) and len(words) < SHORT):
        return "blocked", "a consent form stands in place of the page"
    return None


def _closed(markup: str, words: str, page: Evidence) -> tuple[Ending, str] | None:
    if _GONE_TITLE.search(page.title):
        return "gone", f"the page's title says so: {page.title[:80]}"
    if _PAYWALL_WORDS.search(words) or (page.paid and len(page.text) < SHORT // 2):
        return "login or paywall", "little more than a teaser can be read"
    if _LOGIN.search(markup) and (_LOGIN_WORDS.search(words) or len(page.text) < _SCANT):
        return "login or paywall", "a login form stands in place of the page"
    return None


def _hollow(markup: str, words: str, page: Evidence) -> tuple[Ending, str] | None:
    scant = len(page.text) < _SCANT
    if _SCRIPT.search(markup) and scant and (_SHELL.search(markup) or _SCRIPT_NEEDED.search(markup)):
        return "needs JavaScript", "the page is a shell that a script fills"
    if _SCRIPT_NEEDED.search(words) and len(words) < SHORT // 2:
        return "needs JavaScript", "the page says so"
    if scant and _REFRESH.search(markup):
        return "empty", "the page only sends its readers elsewhere (meta refresh)"
    if _FRAMES.search(markup):
        return "empty", "the page is a set of frames"
    if len(page.text) < _LEAST:
        if len(_SCRIPT.findall(markup)) > 2:
            return "needs JavaScript", "the page has scripts, and hardly any text"
        return "empty", "no main text was found"
    return None
