"""asyncio building blocks: tasks, queues, batches, wake-ups, clock. They know nothing of Maestro."""
