"""The hops of the walk. Each module defines the queries of one hop, what it learns, and how it is judged."""
