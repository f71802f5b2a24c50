"""The pages of the console: what each shows of the fleet, its works and their requests."""
