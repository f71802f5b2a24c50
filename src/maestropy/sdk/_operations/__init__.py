"""Operations on works: write, wait, compare, summarize. Not public."""
