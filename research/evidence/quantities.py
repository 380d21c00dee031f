"""Numbers with their units, and dates, that a text asserts; and whether one says the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from .normal import comparable

# How far a rounded number may be from the real one, as a share of it: one of a single digit
# ("3 %" of 2.96), and one of more digits ("1.2 million") or called "about".
CLOSE = Decimal("0.02")
ABOUT = Decimal("0.05")

_MAGNITUDES = {
    "hundred": 2, "thousand": 3, "k": 3, "million": 6, "millions": 6, "mn": 6, "m": 6, "billion": 9, "billions": 9,
    "bn": 9, "b": 9, "trillion": 12, "tn": 12, "millionen": 6, "mio": 6, "milliarden": 9, "mrd": 9, "milliards": 9,
    "millones": 6, "milliard": 9, "万": 4, "億": 8, "亿": 8,
}  # fmt: skip
_UNITS = {
    "%": "%", "percent": "%", "per cent": "%", "prozent": "%", "pour cent": "%", "por ciento": "%", "pct": "%",
    "percentage points": "points", "percentage point": "points",
    "$": "$", "us$": "$", "usd": "$", "dollars": "$", "dollar": "$", "€": "€", "eur": "€", "euros": "€", "euro": "€",
    "£": "£", "gbp": "£", "pounds": "£", "¥": "¥", "yen": "¥", "jpy": "¥", "円": "¥",
}  # fmt: skip
_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18,
    "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90,
}  # fmt: skip
_MONTHS: dict[str, int] = {}
for _number, _spellings in enumerate(
    (
        "january jan januar janvier enero gennaio", "february feb februar février febrero febbraio",
        "march mar märz mars marzo", "april apr avril abril aprile", "may mai mayo maggio", "june jun juni juin junio",
        "july jul juli juillet julio luglio", "august aug août agosto", "september sep sept septembre septiembre",
        "october oct oktober octobre octubre ottobre", "november nov novembre noviembre",
        "december dec dezember décembre diciembre dicembre",
    ),
    start=1,
):  # fmt: skip
    _MONTHS.update(dict.fromkeys(comparable(_spellings).split(), _number))

_MONTH = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?P<year>1\d{3}|20\d\d)(?!\d|[.,]\d|s\b)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.|º|er)?(?!\d)"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d-])(?P<year>[12]\d{3})-(?P<month>0[1-9]|1[0-2])(?:-(?P<day>0[1-9]|[12]\d|3[01]))?(?![\d-])",
        r"(?P<year>[12]\d{3})年(?:(?P<month>1[0-2]|0?[1-9])月(?:(?P<day>3[01]|[12]\d|0?[1-9])日)?)?",
        rf"\b{_MONTH} {{1,2}}(?:the )?{_DAY}(?:,? {{1,2}}{_YEAR})?",
        rf"\b{_DAY} (?:of |de )?{_MONTH}(?:,? (?:of |de )?{_YEAR})?",
        rf"\b{_MONTH},? {{1,2}}(?:of |de )?{_YEAR}",
        r"(?<![\d/.])(?P<day>0?[1-9]|[12]\d|3[01])(?P<sign>[/.])(?P<month>0?[1-9]|[12]\d|3[01])(?P=sign)(?P<year>[12]\d{3})\b",
    )
]
_ABOUT = re.compile(
    r"(?:\babout|\baround|\broughly|\bapproximately|\bapprox\.?|\bnearly|\balmost|\bover|\bmore than|\bless than"
    r"|\bunder|\bsome|\bcirca|\bca\.?|\brund|\betwa|\benviron|\bclose to|\bjust|~|≈) ?(?:us)?[$€£¥]? ?$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<money>(?:us|usd|eur|gbp)? ?[$€£¥] ?|\b(?:usd|eur|gbp|jpy) )?"
    r"(?<![\w.,])(?P<sign>(?<![\w\d])-)?(?P<digits>\d++(?:[.,]\d++)*+)(?P<ordinal>st|nd|rd|th|s)?"
    r"(?: ?-? ?(?P<size>hundred|thousand|millionen|millions|million|millones|mio|mn|milliarden|milliards|milliard|mrd"
    r"|billions|billion|bn|trillion|tn|[kmb]|万|億|亿)(?![\w])|(?P<cjk>[万億亿]))?"
    r"(?: ?-? ?(?P<unit>%|percentage points?|per cent|percent|prozent|pour cent|por ciento|pct|us dollars|dollars?"
    r"|euros?|pounds|yen|usd|eur|gbp|[$€£¥]|円))?",
    re.IGNORECASE,
)
_NUMBER_WORD = re.compile(
    rf"\b(?P<word>{'|'.join(_WORDS)})\b(?: (?P<size>hundred|thousand|million|billion|trillion)\b)?"
    r"(?: (?P<unit>percent|per cent|percentage points?|dollars|euros|pounds)\b)?",
    re.IGNORECASE,
)
_ANY = re.compile(rf"\d|\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Number:
    """A value in its base unit. `step` is what its last digit counts (3.1 → 0.1; 1.2 million → 100,000)."""

    value: Decimal
    unit: str  # "%", "points", "$", "€", "£", "¥", or "" where none is known
    step: Decimal
    about: bool
    text: str
    start: int  # in the comparable form of the text

    def says(self, other: Number) -> bool:
        """Whether `other`, a number of the source, bears this one out: equal, or rounded to it."""
        if self.unit and other.unit and self.unit != other.unit:
            return False
        apart = abs(self.value - other.value)
        if not apart:
            return True
        near = ABOUT if self.about or self.value.copy_abs() > 10 * self.step else CLOSE
        step = max(self.step, self._round_step()) if self.about else self.step
        return other.step < step and 2 * apart <= step and apart <= near * abs(other.value)

    def _round_step(self) -> Decimal:
        whole = self.value.normalize()
        return Decimal(1).scaleb(int(whole.as_tuple().exponent)) if self.value else self.step


@dataclass(frozen=True)
class Date:
    """A day, a month or a year; parts that are not named are None. `others` are further readings."""

    year: int | None
    month: int | None
    day: int | None
    text: str
    start: int
    swapped: bool = False  # 05/06/2023: either may be the month

    def says(self, other: Date) -> bool:
        """Whether `other`, a date of the source, has all the parts that this one names."""
        return self._within(other.parts) or (other.swapped and self._within(other.turned)) or (
            self.swapped and Date(self.year, self.day, self.month, "", 0)._within(other.parts)
        )  # fmt: skip

    @property
    def parts(self) -> tuple[int | None, int | None, int | None]:
        return self.year, self.month, self.day

    @property
    def turned(self) -> tuple[int | None, int | None, int | None]:
        return self.year, self.day, self.month

    def _within(self, parts: Sequence[int | None]) -> bool:
        return all(mine is None or mine == theirs for mine, theirs in zip(self.parts, parts, strict=True))


@dataclass(frozen=True)
class Quantities:
    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]


def states(text: str) -> bool:
    """Whether `text` may hold a number or a date; quicker than looking for them."""
    return _ANY.search(text) is not None


def quantities(text: str) -> Quantities:
    """The numbers and dates of `text`, each once, in order. A bare year is a date."""
    plain = comparable(text)
    dates: list[Date] = []
    for pattern in _DATES:
        dates.extend(_date(match) for match in pattern.finditer(plain))
        plain = pattern.sub(lambda match: " " + "_" * (len(match[0]) - 1), plain)
    numbers: list[Number] = []
    for number in (*_numerals(plain), *_spelled(plain)):
        if _is_year(number):
            dates.append(Date(int(number.value), None, None, number.text, number.start))
        else:
            numbers.append(number)
    in_order = sorted(numbers, key=lambda number: number.start)
    return Quantities(tuple(in_order), tuple(sorted(dates, key=lambda date: date.start)))


def _date(match: re.Match[str]) -> Date:
    parts = match.groupdict()
    spelled = parts.get("month") or ""
    month = int(spelled) if spelled.isdigit() else _MONTHS.get(spelled.lower())
    day = int(parts["day"]) if parts.get("day") else None
    year = int(parts["year"]) if parts.get("year") else None
    if parts.get("sign") and month and day:
        if month > 12:
            month, day = day, month
        return Date(year, month, day, match[0], match.start(), swapped=day <= 12)
    return Date(year, month, day, match[0], match.start())


def _numerals(text: str) -> Iterator[Number]:
    for match in _NUMBER.finditer(text):
        digits = match["digits"]
        value = _value(digits)
        if value is None:
            continue
        exponent = _MAGNITUDES.get((match["size"] or match["cjk"] or "").lower(), 0)
        unit = _unit(match["unit"] or match["money"] or "")
        if match["size"] and len(match["size"]) == 1 and match["size"].isascii() and not match["money"]:
            exponent = 0  # "5 m" may be metres, "3 b" anything; "$5m" is a sum
        step = Decimal(1).scaleb(_last_place(value) + exponent)
        signed = -value if match["sign"] else value
        about = _ABOUT.search(text[max(0, match.start() - 20) : match.start("digits")]) is not None
        yield Number(signed.scaleb(exponent), unit, step, about, match[0].strip(" -"), match.start("digits"))


def _spelled(text: str) -> Iterator[Number]:
    for match in _NUMBER_WORD.finditer(text):
        exponent = _MAGNITUDES.get((match["size"] or "").lower(), 0)
        value = Decimal(_WORDS[match["word"].lower()]).scaleb(exponent)
        step = Decimal(1).scaleb(exponent)
        yield Number(value, _unit(match["unit"] or ""), step, False, match[0], match.start())


def _unit(spelled: str) -> str:
    plain = spelled.strip().lower()
    return _UNITS.get(plain.removeprefix("us ").replace(" $", "$"), _UNITS.get(plain[-1:], ""))


def _value(digits: str) -> Decimal | None:
    """A numeral's value: 1,234.5 · 1.234.567 · 3,5 · 2.96; None for versions and addresses."""
    if len(digits) > 30:
        return None
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        return Decimal(digits.replace(",", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}(?:\.\d{3})+,\d+", digits):
        return Decimal(digits.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d+(?:[.,]\d+)?", digits):
        return Decimal(digits.replace(",", "."))
    return None


def _last_place(value: Decimal) -> int:
    return int(value.as_tuple().exponent)


def _is_year(number: Number) -> bool:
    plain = re.fullmatch(r"1\d{3}|20\d\d", number.text)
    return plain is not None and not number.unit and number.step == 1
