"""What is kept of a study: the run folder with its journal, records and content-addressed arrays."""
