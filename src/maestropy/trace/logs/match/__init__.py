"""Match log records to the spec requests they belong to."""
