"""What differs: arrays, tolerances, and whether noise explains it."""
