"""What `import research` offers, pinned: a name is added or taken away on purpose."""

import research


def test_the_public_names() -> None:
    assert research.__all__ == [
        "Answer",
        "BudgetError",
        "Citation",
        "Ending",
        "Fact",
        "Pipeline",
        "PipelineError",
        "ProviderError",
        "ResearchError",
        "StoreError",
        "UsageError",
        "WebError",
        "ask",
    ]
    for name in research.__all__:
        assert getattr(research, name).__doc__, name
