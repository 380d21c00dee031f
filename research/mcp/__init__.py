"""Tools of servers that the user has set up, over the Model Context Protocol (stdio).

    schemas  the JSON schema of a tool's arguments, as far as it can be trusted
    offers   which tools are offered, and what is said of them
    pipe     a server's process, and messages to and from it
    server   one server as it runs: its offers, and calls
    servers  those that run, for as long as somebody needs them

All that a server says (names, descriptions, schemas, results) is a stranger's text. The
SDK is imported when a server is started.
"""
