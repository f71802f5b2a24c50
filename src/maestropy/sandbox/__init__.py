"""What a laptop lacks, brought along: the embedded PostgreSQL and the demonstration."""
