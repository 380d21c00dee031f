"""Evidence that can be checked, as pure functions of text.

    normal       the form in which texts are compared, with the way back to the original
    quotes       where a quote stands in a page, how surely, and what surrounds it
    sections     the parts of a page that are no evidence
    links        links that a model wrote, taken out
    markers      citation markers in a model's text → citations with offsets
    quantities   numbers with units, dates and names that a text asserts
    languages    whether two texts are plainly in different languages
    checks       whether a sentence is borne out by the quotes it cites; recall and precision
    duplicates   copies of one text
    folding      facts of copies, told as facts of the page that counts
    differences  values that differ for the same thing
    freshness    whether evidence is as recent as its question implies
    leaks        a model's reply without our own prompts
    drafts       a model's reply, taken apart
    answers      what a checked text makes: an answer, its ending, its notes
    untrusted    text of strangers, made safe for prompts

Nothing here fetches, asks a model, or looks at a clock. Every function is linear, or
nearly so, in the length of the text it is given: strangers wrote it.
"""
