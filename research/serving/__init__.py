"""`ask`, `search` and `fetch` for the models of others, over the Model Context Protocol.

    wording   what clients' models are told, from a file; what their calls must fit
    session   what the tools do
    lines     what a client sends, line by line
    protocol  the SDK's server, on stdin and stdout

The same store, web, guards and limits as on the command line. Whoever calls is a model
that may have read a hostile page: it can't name a file or an address of its own, nor
raise a limit. What it is told of strangers' text is fenced.
"""
