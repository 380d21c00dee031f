"""Question files: what they hold, in every shape that people give them, and what is wrong with them, by line."""

from __future__ import annotations

import codecs
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from research.errors import UsageError
from research.questions import Questions, Row

Write = Callable[[str, bytes | str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, content: bytes | str) -> Path:
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return written


def rows(file: Path, *options: str | None) -> list[Row]:
    return list(Questions(file, *options).rows())


def asked(file: Path, *options: str | None) -> list[tuple[int, str]]:
    return [(row.line, row.question.text) for row in rows(file, *options)]


def problems(file: Path, *options: str | None) -> dict[int, str]:
    return {problem.line: problem.what for problem in Questions(file, *options).check().problems}


TWO = [(1, "Who?"), (2, "Why not?")]
TABLE = [(2, "Who?"), (3, "Why not?")]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "Who?\nWhy not?\n", TWO),
        ("a.txt", "Who?\r\nWhy not?\r\n", TWO),
        ("a.txt", "Who?\rWhy not?\r", TWO),
        ("a.txt", "Who?\nWhy not?", TWO),
        ("a.txt", "\n  \nWho?\n\n\nWhy not?\n\n", [(3, "Who?"), (6, "Why not?")]),
        ("a.txt", codecs.BOM_UTF8 + b"Who?\nWhy not?", TWO),
        ("a.txt", "Who?\nWhy not?\n".encode("utf-16"), TWO),
        ("a.csv", "question\nWho?\nWhy not?\n", TABLE),
        ("a.csv", codecs.BOM_UTF8 + b"question\r\nWho?\r\nWhy not?\r\n", TABLE),
        ("a.csv", 'Question,x\n"Who?",1\n"Why not?",2\n', TABLE),
        ("a.csv", "id;question\n1;Who?\n2;Why not?\n", TABLE),
        ("a.csv", 'question\n"Who\nis it?"\nWhy not?\n', [(2, "Who\nis it?"), (4, "Why not?")]),
        ("a.csv", "please read\n,,\n\nid,user query,n\n1,Who?,\n,,\n2,Why not?,\n", [(5, "Who?"), (7, "Why not?")]),
        ("a.csv", "Who?\nWhy not?\n", TWO),
        ("a.tsv", "7\tWho is it?\n8\tWhy not?\n", [(1, "Who is it?"), (2, "Why not?")]),
        ("a.tsv", 'id\tquery\n1\t"Who?"\n2\tWhy "not"?\n', [(2, "Who?"), (3, 'Why "not"?')]),
        ("a.tsv", 'id\tquery\n1\t"Who" is it?\n2\tWhy "not?\n', [(2, '"Who" is it?'), (3, 'Why "not?')]),
        ("a.jsonl", '{"question": "Who?"}\n{"query": "Why not?"}', TWO),
        ("a.jsonl", '"Who?"\n\n"Why not?"\n', [(1, "Who?"), (3, "Why not?")]),
        ("a.jsonl", '{"vars": {"question": "Who?"}}\n{"vars": {"question": "Why not?"}}', TWO),
        ("a.jsonl", '{"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]}',
         [(1, "Who?")]),
        ("a.json", '[{"Question": "Who?"},\n {"Question": "Why not?"}\n]', TWO),
        ("a.json", '["Who?",\n"Why not?"]', TWO),
        ("a.json", '{"version": 2, "data":\n[{"prompt": "Who?"}]}', [(2, "Who?")]),
        ("a.json", '{"question": "Who?"}\n{"question": "Why not?"}\n', TWO),
        ("a.yaml", "prompts: [x]\ntests:\n  - vars:\n      query: Who?\n  - vars: {query: 'Why not?'}\n",
         [(3, "Who?"), (5, "Why not?")]),
        ("a.yml", "- question: Who?\n- question: yes\n", [(1, "Who?"), (2, "yes")]),
    ],
)  # fmt: skip
def test_every_shape_gives_the_same_questions(
    write: Write, name: str, content: bytes | str, expected: list[tuple[int, str]]
) -> None:
    file = write(name, content)
    assert asked(file) == expected
    assert problems(file) == {}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "question,n\nWho?,1\nWhy, not?,2\nWhat?,3\n", {3: "3 cells in a table of 2 columns"}),
        ("a.csv", 'question,n\nWho?,1\n"Why not?,2\nWhat?,3\n', {3: "a quote is opened here and never closed"}),
        ("a.csv", 'question,n\n"Who" is it?,1\nWhat?,3\n', {2: "between a closing quote and the next delimiter"}),
        ("a.csv", "question,n\n,1\n ,2\nWhat?,3\n", {2: "the question is empty", 3: "the question is empty"}),
        ("a.csv", "id,question\n1,Who?\n2,Why?\n1,What?\n", {4: "the id 1 is that of line 2 too"}),
        ("a.csv", b"question\nWho?\nO\xf9 est-il?\nWhat?\n", {3: "no UTF-8 text"}),
        ("a.jsonl", '{"question": "Who?"}\n{"question": "Why?"\n[1]\n7\n{"q": 1, "r": 2}\n{"question": 7}\n',
         {2: "no JSON", 3: "a list", 4: "a number", 5: "no column is called question", 6: "is no text"}),
        ("a.jsonl", '{"question": "Who?", "n": NaN}\n', {1: "NaN is no JSON"}),
        ("a.jsonl", '{"question": "a\\u0000b"}\n{"question": "\\ud800 half"}\n', {1: "bytes that are not", 2: "no UTF-8"}),
        ("a.jsonl", '{"question": "' + "x" * 20_001 + '"}\n', {1: "20,001 characters"}),
        ("a.jsonl", "[" * 100_000 + "\n", {1: "no JSON"}),
        ("a.json", '[{"question": "Who?"},\n{"question": }]', {2: "no JSON"}),
        ("a.json", '[{"question": "Who?"}\n{"question": "Why?"}]', {2: "a comma or ] is missing"}),
        ("a.yaml", "tests:\n  - vars: {question: 'Who?'}\n  - vars: {question: file://a.txt}\n", {3: "in another file"}),
        ("a.yaml", "- question: [a, b]\n", {1: "is no text"}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(
    write: Write, name: str, content: bytes | str, expected: dict[int, str]
) -> None:
    found = problems(write(name, content))
    assert found.keys() == expected.keys()
    for line, what in expected.items():
        assert what in found[line]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.csv", "", "no questions"),
        ("a.txt", "\n\n", "no questions"),
        ("a.json", "[]", "no questions"),
        ("a.json", "{}", "no list of questions"),
        ("a.json", '{"a": [1], "b": [2]}', "no list of questions"),
        ("a.json", "nonsense", "no list of questions"),
        ("a.yaml", "tests: file://tests.csv\n", "give that file instead"),
        ("a.yaml", "a: [\n", "line 2: no YAML"),
        ("a.xlsx", b"PK\x03\x04", "no format that is read"),
        ("a", "Who?", "no format that is read"),
        ("a.csv", b"PK\x03\x04\x00\x00", "no text file"),
        ("a.csv", "question,question\na,b\n", "two columns are called"),
        ("a.txt", "x" * (4 << 20), "longer than"),
    ],
)
def test_a_file_that_is_none_at_all(write: Write, name: str, content: bytes | str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        Questions(write(name, content)).check()
    with pytest.raises(UsageError, match="can't be read"):
        Questions(Path("/no/such/file.csv")).check()


def test_aliases_of_aliases_are_not_written_out(write: Write) -> None:
    names = "abcdefghij"
    bomb = "x: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in itertools.pairwise(names)
    )
    file = write("a.yaml", f"{bomb}tests:\n  - vars: {{question: Who, bomb: *j}}\n  - vars: {{question: 'Why?'}}\n")
    began = time.monotonic()
    assert list(problems(file)) == [12]
    assert asked(file) == [(13, "Why?")]
    assert time.monotonic() - began < 5


def test_one_bad_line_in_three_thousand(write: Write) -> None:
    lines = [f"q{number},What is {number}?" for number in range(3_000)]
    lines[1_233] = 'q1233,"What is it'
    file = write("a.csv", "\ufeffid,question\r\n" + "\r\n".join(lines) + "\r\n\r\n")
    assert problems(file) == {1_235: "a quote is opened here and never closed"}
    assert len(rows(file)) == 2_999


def test_ids_are_given_or_made_of_the_text(write: Write) -> None:
    given = rows(write("a.jsonl", '{"id": 7, "question": "Who?"}\n{"id": "x y", "question": "Who?"}\n'))
    assert [row.id for row in given] == ["7", "x y"]
    made = rows(write("b.txt", "Who?\nWhy?\nWho?\n"))
    assert len({row.id for row in made}) == 3
    assert made[2].id == f"{made[0].id}-2"
    later = rows(write("c.txt", "What?\nWho?\nWhy?\nWho?\n"))
    assert [row.id for row in later][1:] == [row.id for row in made]  # a line above changes none of them
    assert [row.position for row in later] == [1, 2, 3, 4]
    twice = write("d.csv", "id,question\n1,Who?\n1,Why?\n")
    assert len(rows(twice, None, "")) == 2
    assert [row.id for row in rows(write("e.csv", "question,code\nWho?,a\nWhy?,b\n"), None, "code")] == ["a", "b"]


def test_the_column_can_be_named(write: Write) -> None:
    file = write("a.csv", "language,body,text\nFrench,Who?,no\n")
    assert asked(file, "body") == [(2, "Who?")]
    assert "there is no column 'x'" in problems(file, "x")[2]
    assert asked(write("b.tsv", "1\tWho is it?\tI am it.\n"), "2") == [(1, "Who is it?")]


def test_the_rest_of_a_row_is_carried_through(write: Write) -> None:
    text = "class,question,answer,weight,Expected Answer\nplaces,Where?,Rome,=1+1,Roma\n"
    [row] = rows(write("a.csv", text))
    assert row.columns == {"class": "places", "answer": "Rome", "weight": "=1+1", "Expected Answer": "Roma"}
    assert (row.answers, row.kind) == (("Rome", "Roma"), "places")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"answers": "a::b::a"}, ("a", "b")),
        ({"answer": "std::vector"}, ("std::vector",)),
        ({"answer": '["a", "b"]'}, ("a", "b")),
        ({"answer": ["a", ["b", 3]]}, ("a", "b", "3")),
        ({"answer_0": "a", "answer_1": "", "answer_2": "b"}, ("a", "b")),
        ({"__expected": "icontains:paris"}, ("paris",)),
        ({"__expected": "llm-rubric:is polite", "__expected2": "Paris"}, ("Paris",)),
        (
            {"assert": [{"type": "contains", "value": "a"}, {"type": "cost", "threshold": 1}, {"type": "latency"}]},
            ("a",),
        ),
        ({"answer": "[" * 5_000 + "]" * 5_000}, ("[" * 5_000 + "]" * 5_000,)),
        ({"answer": "[" * 600 + "]" * 600}, ()),
        ({"target": True, "gold": None, "ideal": {"a": 1}}, ()),
    ],
)
def test_reference_answers(write: Write, values: dict[str, object], expected: tuple[str, ...]) -> None:
    [row] = rows(write("a.jsonl", json.dumps({"question": "Who?", **values})))
    assert row.answers == expected


def test_a_value_nested_too_deeply_is_told_by_its_line(write: Write) -> None:
    deep = "[" * 600 + "]" * 600
    file = write("a.jsonl", f'{{"question": "Who?"}}\n{{"question": "How?", "x": {deep}}}\n')
    assert [str(one) for one in Questions(file).check().problems] == ["line 2: a value is nested too deeply"]


def test_many_rows_are_read_at_once(write: Write) -> None:
    file = write("a.csv", "question,answer\n" + "".join(f"What is {n}?,{n}\n" for n in range(10_000)))
    checked = Questions(file).check()
    assert (checked.rows, checked.answers, checked.problems) == (10_000, 10_000, [])


# file → rows that can be run, lines that can't, the first question's line; worked out by hand
KNOWN = {
    "allsouls.jsonl": (32, 28, 1),
    "bamboogle_30.json": (20, 0, 2),
    "clapnq_dev.tsv": (None, 2, 2),
    "deepresearchbench_query.jsonl": (None, 0, 1),
    "freshqa_v10282024.csv": (None, 0, 4),
    "gptr_search_queries.jsonl": (105, 0, 1),
    "promptfoo_cases.jsonl": (2, 0, 1),
    "promptfoo_csv-metadata_tests.csv": (3, 0, 2),
    "promptfoo_output.csv": (0, None, None),
    "promptfoo_rag-eval.yaml": (2, 0, 10),
    "promptfoo_self-grading_tests.csv": (4, 0, 2),
    "promptfoo_simple-csv_tests.csv": (0, 4, None),
    "trec_rag24_test_topics.tsv": (301, 0, 1),
    "webglm_web_questions.jsonl": (100, 0, 1),
}


def test_files_as_people_have_them(data: Callable[[str], Path]) -> None:
    folder = data("question-files") / "dev"
    manifest = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    assert len(manifest) == 20
    for entry in manifest:
        checked = Questions(folder / entry["file"]).check()
        count, bad, line = KNOWN.get(entry["file"], (None, None, None))
        assert count in (None, checked.rows), entry["file"]
        assert bad in (None, len(checked.problems)), checked.told(Path(entry["file"]))
        assert line is None or (checked.first is not None and checked.first.line == line)
        if checked.rows:
            assert checked.first is not None
            assert checked.columns[0] in (
                entry["question_field"],
                "prompt_text",
                "text",
                "question",
                "input",
                "2",
                "query",
            )
        else:
            assert "Name it with --column" in checked.told(folder / entry["file"])
    for name, column in (("promptfoo_output.csv", "body"), ("promptfoo_simple-csv_tests.csv", "body")):
        assert Questions(folder / name, column).check().problems == []
