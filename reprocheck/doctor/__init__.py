"""Is the instrument sound here? Identical trials through an engine, and what the engine and the machine do to them."""
