"""Rate limits in simulated time: known ones are met and never passed, unknown ones are found with few refusals."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from research.limits import pacing
from research.limits.pacing import Pace, told
from tests.limits.simulation import Bucket, Minutes, Service, Sliding, simulate

SERVICES: dict[str, Callable[[int], Service]] = {
    "sliding": Sliding,
    "sliding, tells": lambda most: Sliding(most, tells=True),
    "minutes": Minutes,
    "full bucket": lambda most: Bucket(most, most),
}
FLAT: dict[str, Callable[[int], Service]] = {
    "flat bucket": lambda most: Bucket(most, most / 60),
    "flat bucket, tells": lambda most: Bucket(most, most / 60, tells=True),
}


@pytest.fixture(autouse=True)
def even_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = pacing.random.Random(3)
    monkeypatch.setattr(pacing.random, "uniform", chance.uniform)


@pytest.mark.parametrize("service", [*SERVICES])
@pytest.mark.parametrize("most", [600, 3_000])
@pytest.mark.parametrize("known", ["configured", "told"])
def test_a_known_limit_is_reached_without_a_refusal(service: str, most: int, known: str) -> None:
    pace = Pace(requests=most) if known == "configured" else Pace()
    headers = {"requests": float(most)} if known == "told" else {}
    outcome = simulate(pace, SERVICES[service](most), 180, headers=headers)
    assert not outcome.refused
    assert outcome.rate(0, 180) >= 0.95 * most


@pytest.mark.parametrize("most", [5, 50])
def test_small_limits_are_kept_too(most: int) -> None:
    outcome = simulate(Pace(requests=most), Sliding(most), 300)
    assert not outcome.refused
    assert outcome.rate(0, 300) >= 0.9 * most


@pytest.mark.parametrize("service", [*SERVICES, *FLAT])
@pytest.mark.parametrize(("most", "latency"), [(600, 0.05), (600, 0.4), (600, 2.0), (3_000, 0.4)])
def test_a_limit_that_only_shows_in_refusals(service: str, most: int, latency: float) -> None:
    made = {**SERVICES, **FLAT}[service](most)
    outcome = simulate(Pace(), made, 300, latency=lambda: latency)
    reach = min(most, 50 / latency * 60)  # what fifty workers can do
    assert outcome.wasted(60, 300) <= 0.05
    assert outcome.rate(60, 300) >= 0.8 * reach


def test_a_limit_that_is_lifted_is_found_out() -> None:
    service = Sliding(300)
    pace = Pace()
    simulate(pace, service, 120)
    before = pace.rate
    pace.seen -= 11 * 60  # ten idle minutes later
    again = Pace.parse(pace.plain(), 2_000.0)
    assert before is not None
    assert again.rate is None


def test_few_requests_are_not_spaced() -> None:
    pace = Pace(requests=600)
    assert [pace.take(100.0, 0) for _ in range(16)] == [(100.0, True)] * 16
    late = [pace.take(100.0, 0)[0] for _ in range(3)]
    assert late == sorted(late)
    assert late[0] > 101


def test_tokens_are_limited_as_requests_are() -> None:
    pace = Pace(tokens=10_000)
    times = [pace.take(100.0, 3_000)[0] for _ in range(4)]
    assert times[:3] == [100.0] * 3
    assert 160 <= times[3] <= 163
    pace.adjust(times[0], -2_900)  # it used less than was reserved
    assert Pace.parse(pace.plain(), 100.0).take(100.0, 2_000)[0] < times[3] + 1
    assert pace.take(100.0, 99_000)[0] > times[3], "more than the whole waits for an empty window"


def test_one_pause_for_all_and_a_slow_start_after_it() -> None:
    pace = Pace()
    for at in range(20):
        pace.take(100.0 + at, 0)
    pace.refuse(120.0, 119.0, 5.0)
    pace.refuse(120.1, 119.0, None)
    first, sure = pace.take(120.2, 0)
    assert sure
    assert 125 <= first <= 126
    assert pace.misses == 1
    assert pace.rate == 2.0
    assert pace.take(125.5, 0)[0] >= first
    assert pace.next - first >= 2 / pace.rate, "the first requests after a pause are further apart"


def test_a_first_refusal_tells_what_was_admitted() -> None:
    pace = Pace()
    for at in range(300):
        pace.take(100.0 + at / 10, 0)
    pace.refuse(131.0, 129.9, None)
    assert pace.rate == pytest.approx(299 / 60)


def test_a_single_refusal_does_not_slow_a_question_down() -> None:
    """Somebody else's burst may be the cause."""
    pace = Pace()
    when, _ = pace.take(100.0, 0)
    pace.refuse(100.1, when, 0.5)
    now, sent = 100.1, []
    while len(sent) < 8:
        when, sure = pace.take(now, 0)
        now = when
        if sure:
            sent.append(when)
            pace.succeed(when + 0.1)
    assert sent[-1] < 107


def test_pauses_without_a_told_wait_grow() -> None:
    pace, now, pauses = Pace(), 100.0, []
    for _ in range(8):
        when, _ = pace.take(now, 0)
        pace.refuse(when + 0.1, when, None)
        pauses.append(pace.paused - when - 0.1)
        now = pace.paused + 0.001
    assert [round(pause) for pause in pauses[:5]] == pytest.approx([1, 2, 4, 8, 17], abs=1)
    assert max(pauses) <= 60.001


def test_what_others_use_counts() -> None:
    pace = Pace()
    pace.take(100.0, 0)
    pace.tell(100.5, {"requests": 100.0, "requests_left": 4.0})
    times = [pace.take(101.0, 0)[0] for _ in range(4)]
    assert times[-1] >= 160, "96 are used, 95 of them by others"


def test_a_state_of_another_boot_is_not_believed() -> None:
    pace = Pace(requests=10)
    for _ in range(10):
        pace.take(9_000_000.0, 0)
    assert Pace.parse(pace.plain(), 50.0).take(50.0, 0) == (50.0, True)
    assert json.loads(pace.plain())["requests"] == 10


def test_headers() -> None:
    openai = {
        "X-RateLimit-Limit-Requests": "500", "x-ratelimit-remaining-requests": "499", "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "30000", "x-ratelimit-remaining-tokens": "29000",
    }  # fmt: skip
    assert told(openai) == {"requests": 500, "requests_left": 499, "tokens": 30_000, "tokens_left": 29_000}
    anthropic = {
        "anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2025-03-01T10:00:00Z", "anthropic-ratelimit-tokens-limit": "40000",
    }  # fmt: skip
    assert told(anthropic) == {"requests": 50, "requests_left": 0, "tokens": 40_000}
    assert told({"x-ratelimit-limit-requests": "-1", "x-ratelimit-limit-tokens": "9" * 40, "other": "1"}) == {}
