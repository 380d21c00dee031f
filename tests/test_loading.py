"""Every mistake in a pipeline file is found at once, and told with file, table, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.errors import PipelineError
from tests.kinds import KINDS, PIPELINE, PROMPT, pipeline


def mistakes(folder: Path, text: str, prompt: str = PROMPT) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        pipeline(folder, text, prompt)
    assert caught.value.exit_code == 2
    return [str(mistake) for mistake in caught.value.mistakes]


def test_a_sound_file_is_read_in_the_datas_order(tmp_path: Path) -> None:
    made = pipeline(tmp_path)
    assert list(made.stages) == ["split", "find", "order", "read", "note", "write"]
    assert made.stages["read"].want == 2
    assert str(made.stages["read"].each) == "ranked.url"
    assert made.stages["order"].model == "cheap"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[stage.split]", "[stage.spilt]", "tiny.toml: [stage.spilt] kind: there is no kind of stage called 'spilt'. "
         "Give kind = one of split, find, order, read, note, write. Did you mean 'split'?"),
        ("want = 2", "whant = 2", "tiny.toml: [stage.read] whant: there is no such key. "),
        ("want = 2", "whant = 2", "Did you mean 'want'?"),
        ("want = 2", "want = 0", "[stage.read] want: it must be a whole number from 1 on, not 0. Write want = 4"),
        ("want = 2", "want = true", "[stage.read] want: it must be a whole number from 1 on, not True"),
        ("want = 2", "patience = 3", "[stage.read] patience: patience is for stages that want some"),
        ("want = 2", "timeout = 'soon'", "[stage.read] timeout: input should be a valid number"),
        ('"ranked.url"', '"ranked.ulr"', "[stage.read] each: ranked.ulr: Hit has no such attribute. "
         "It has url, title, snippet, rank, date. Did you mean 'url'?"),
        ('"ranked.url"', '"rankd.url"', "[stage.read] each: nobody gives 'rankd'. "),
        ('"ranked.url"', '"rankd.url"', "Did you mean 'ranked'?"),
        ('"ranked.url"', '"ranked"', "[stage.read] each: ranked holds Hit; 'url' must be str. Fan out over another list"),
        ('"ranked.url"', '"question"', "[stage.read] each: question is a Question, no list to fan out over. Name a list"),
        ('{ url = "ranked.url" }', '"ranked.url"', "[stage.read] each: it must name one input and a list. Write each = "),
        ('takes = ["notes"]', 'takes = ["hits"]', "[stage.write] takes: write needs 'notes'"),
        ('takes = ["notes"]', 'takes = { notes = "hits" }', "[stage.write] takes: hits is a list of Hit; 'notes' must be a list of str"),
        ('takes = ["notes"]', "takes = 3", "[stage.write] takes: it must list names"),
        ('takes = ["notes"]', 'takes = ["notes", "as_of"]', "[stage.write] takes: write has no input 'as_of'. It takes notes, question"),
        ('model = "cheap"', 'model = "cheep"', "[stage.order] model: order needs a tier or a model, not 'cheep'. "
         'Write model = "cheap", "capable" or "provider:model". Did you mean \'cheap\'?'),
        ('model = "cheap"\n', "", "[stage.order] model: order needs a tier or a model. Write"),
        ('gives = "texts"', 'gives = "texts"\nmodel = "cheap"', "[stage.read] model: read asks no model. Remove model"),
        ('prompt = "order.md"\n', "", "[stage.order] prompt: order asks a model and needs a prompt"),
        ('"order.md"', '"odrer.md"', "[stage.order] prompt: 'odrer.md' is missing. Write "),
        ('"order.md"', '"../order.md"', "[stage.order] prompt: '../order.md' lies outside the pipeline's folder"),
        ('gives = "hits"', 'gives = "question"', "[stage.find] gives: 'question' is given to every run. Choose another name"),
        ('gives = "notes"', 'gives = "hits"', "[stage.note] gives: another stage gives 'hits' too. Choose another name"),
        ('gives = "hits"', "gives = 7", "[stage.find] gives: a stage must name its result"),
        ('answer = "answer"', 'answer = "anwser"', "tiny.toml: top level answer: it must name the result that is the answer. "
         "Write answer = \"answer\". Did you mean 'answer'?"),
        ('answer = "answer"', 'answer = "notes"', "top level answer: 'notes' is a list of str, not an Answer"),
        ('answer = "answer"', 'answers = "answer"', "top level answers: there is no such key. Known here: description, answer, stage"),
        ("[stage.split]", "[stage.split]\ntop = 'many'", "[stage.split] top: input should be a valid integer"),
        ('gives = "texts"', 'gives = "texts"\nprefetch = "hits"', "[stage.read] prefetch: it must name the fanned-out input"),
        ('gives = "texts"', 'gives = "texts"\nprefetch = { url = "hits.rank", top = 2 }', "[stage.read] prefetch: hits.rank holds int"),
        ('model = "cheap"', 'model = "cheap"\ntemperature = 3', "[stage.order] temperature: input should be less than or equal to 2"),
    ],
)  # fmt: skip
def test_each_mistake_names_place_and_remedy(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in PIPELINE
    assert any(told in one for one in mistakes(tmp_path, PIPELINE.replace(old, new, 1)))


def test_a_file_of_endless_nesting_is_told(tmp_path: Path) -> None:
    assert "nested too deeply" in mistakes(tmp_path, "a = " + "[" * 20_000)[0]


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = (
        PIPELINE.replace("want = 2", "whant = 2")
        .replace('model = "cheap"', 'model = "cheep"')
        .replace("[stage.note]", "[stage.noet]")
    )
    told = mistakes(tmp_path, text)
    assert len(told) == 3
    assert [one.split(": ")[1].split(" ")[0] for one in told] == ["[stage.order]", "[stage.read]", "[stage.noet]"]


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("Order these", "order.md lacks the placeholder 'hits'. Add {{ hits }} to it, or take less"),
        (
            "{{ hits }} {{ hts }}",
            "order.md has the placeholder 'hts', which nobody fills. It can hold hits. Did you mean 'hits'?",
        ),
        ("{{ hits }} {{ hits.url }}", "order.md holds '{{ hits.url }}'. A prompt has placeholders"),
        ("{{ hits }} {% for hit in hits %}", "order.md holds '{% for hit in hits %}'"),
    ],
)
def test_a_prompts_placeholders_are_its_stages_inputs(tmp_path: Path, prompt: str, told: str) -> None:
    assert any(told in one for one in mistakes(tmp_path, PIPELINE, prompt))


def test_one_slip_of_the_pen_is_one_mistake(tmp_path: Path) -> None:
    assert mistakes(tmp_path, PIPELINE.replace('takes = ["hits"]', 'takes = ["hots"]')) == [
        "tiny.toml: [stage.order] takes: order has no input 'hots'. It takes hits. Did you mean 'hits'?"
    ]


def test_a_circle_is_drawn(tmp_path: Path) -> None:
    text = PIPELINE.replace(
        'takes = ["question"]\ngives = "queries"', 'takes = { question = "late" }\ngives = "queries"'
    )
    text += '\n[stage.late]\nkind = "write"\ntakes = ["notes"]\ngives = "late"\n'
    told = mistakes(tmp_path, text)
    assert any("'question' must be a Question" in one for one in told)
    text = PIPELINE.replace('each = { query = "queries" }', 'each = { query = "again" }')
    text += '\n[stage.again]\nkind = "note"\neach = { text = "hits.url" }\ngives = "again"\n'
    text = text.replace('[stage.split]\ntakes = ["question"]\ngives = "queries"\n', "")
    assert any("it waits for itself: find → again → find. Break the circle" in one for one in mistakes(tmp_path, text))


def test_a_stage_that_nobody_takes_from_is_a_mistake(tmp_path: Path) -> None:
    text = PIPELINE + '\n[stage.more]\nkind = "note"\neach = { text = "texts" }\ngives = "more"\n'
    assert mistakes(tmp_path, text) == [
        "tiny.toml: [stage.more] gives: nobody takes 'more'. Take it somewhere, or remove the stage"
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [("= 3", "not readable as TOML"), ("", "there are no stages"), ("stage = 3", "there are no stages"),
     ("[stage]\nplan = 3", "a stage is a table")],
)  # fmt: skip
def test_what_is_no_pipeline(tmp_path: Path, text: str, told: str) -> None:
    assert any(told in one for one in mistakes(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    from research.loading import load

    with pytest.raises(PipelineError, match="there is no such file"):
        load(tmp_path / "none.toml", KINDS)
    (tmp_path / "latin.toml").write_bytes(b"description = '\xe9'")
    with pytest.raises(PipelineError, match="not readable"):
        load(tmp_path / "latin.toml", KINDS)


def test_two_stages_of_one_kind(tmp_path: Path) -> None:
    text = PIPELINE.replace('takes = ["notes"]', 'takes = { notes = "more" }')
    text += '\n[stage.again]\nkind = "note"\neach = { text = "notes" }\ngives = "more"\n'
    made = pipeline(tmp_path, text)
    assert [stage.kind.name for stage in made.stages.values()].count("note") == 2
