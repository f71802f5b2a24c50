"""What operator actions do: facts in, a plan out. A dry run shows the plan that the action carries out. Pure."""
