"""One story on several sites counts once."""

from __future__ import annotations

import random

from research.evidence.duplicates import syndicated

LISTED = "river tower price year city rate house train summer people bread light stone market winter school"
WORDS = LISTED.split(" ")


def story(seed: int, length: int = 200) -> str:
    chooser = random.Random(seed)
    return " ".join(chooser.choice(WORDS) for _ in range(length))


def test_copies_stand_together() -> None:
    first, second = story(1), story(2)
    assert syndicated([first, second, first.upper() + "!", f"By A Reporter. {first} More on our site."]) == [
        [0, 2, 3],
        [1],
    ]


def test_an_excerpt_is_a_copy_but_a_quoted_sentence_is_not() -> None:
    long = story(3, 400)
    excerpt, sentence = " ".join(long.split()[50:150]), " ".join(long.split()[50:70])
    assert syndicated([long, excerpt]) == [[0, 1]]
    assert syndicated([long, sentence]) == [[0], [1]]
    assert syndicated([long, f"{story(4)} {sentence} {story(5)}"]) == [[0], [1]]


def test_short_and_empty_texts() -> None:
    assert syndicated(["It fell.", "it fell", "It rose.", "", ""]) == [[0, 1], [2], [3], [4]]
    assert syndicated([]) == []
