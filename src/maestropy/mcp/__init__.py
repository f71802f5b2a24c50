"""The tools of `maestro mcp` for assistants, and the server that offers them over the Model Context Protocol.

`tools` is the entry without a transport; `server` is the only module that imports the SDK of the protocol. Verdicts are
those of `maestropy.trace`, `maestropy.diagnose` and `maestropy.console`: nothing is judged here.
"""
