"""What makes objects progress: the parts of a cluster that act on what the API keeps."""
