"""Read lists: the condition and order of a page, the IDs on it, where the next begins, and its resources."""
