"""What will be run: the target, its subjects, and the orders in which they are imported."""
