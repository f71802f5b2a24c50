"""Format a walk as text, JSON model, Markdown, Mermaid and HTML. Pure."""
