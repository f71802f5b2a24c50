"""From paths to streams of log lines: files, archives, encodings, split lines, OTLP exports. Knows no log phrases."""
