"""Judge a work: join its data, check it against its clusters, and choose the verdict. Pure."""
