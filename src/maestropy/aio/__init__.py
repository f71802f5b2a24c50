"""asyncio building blocks that know nothing of the domain."""
