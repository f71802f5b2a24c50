"""Format traced requests as text, JSON, Markdown, CSV, HTML and Mermaid."""
