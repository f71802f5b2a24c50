"""Tell what became of a wish: from databases, clusters and journals, read and never written without a yes."""
