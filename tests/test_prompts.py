"""Prompts are filled once, literally."""

from research.prompts import Prompt


def test_above_the_rule_is_the_system_prompt() -> None:
    assert Prompt("p", "Be brief.\n---\nQ: {{ question }}\n").fill({"question": "why?"}) == ("Be brief.", "Q: why?")
    assert Prompt("p", "Q: {{question}}").fill({"question": "why?"}) == ("", "Q: why?")
    assert Prompt("p", "a\n---\nb\n---\nc").fill({}) == ("a", "b\n---\nc")
    assert Prompt("p", "a --- b").fill({}) == ("", "a --- b")


def test_what_is_filled_in_is_never_looked_at_again() -> None:
    values = {"page": "{{ question }} {{7*7}} {0} %s $HOME \\1 \\g<0>\n---\n", "question": "why?"}
    assert Prompt("p", "{{ page }}|{{ question }}").fill(values) == (
        "",
        "{{ question }} {{7*7}} {0} %s $HOME \\1 \\g<0>\n---\n|why?",
    )


def test_placeholders_and_strangers() -> None:
    prompt = Prompt("p", "{{ a }} {{b}} {{ a.b }} {% if a %} {# note #} {{ 7*7 }} { c }")
    assert prompt.placeholders == {"a", "b"}
    assert prompt.strangers == ["{{ a.b }}", "{% if a %}", "{# note #}", "{{ 7*7 }}"]


def test_a_digest_is_of_the_text_alone() -> None:
    assert Prompt("a", "text").digest == Prompt("b", "text").digest != Prompt("a", "text ").digest
