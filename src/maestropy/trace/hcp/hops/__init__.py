"""One file per hop: what it asks, what it teaches the others, and how it is judged by what was answered."""
