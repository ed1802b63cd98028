"""Since when: versions, the difference of two lock files, git histories; their environments; the search."""
