"""The instrument checks itself: faults of every kind are planted, and what is found is compared with them."""
