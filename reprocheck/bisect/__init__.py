"""Since when: versions of a package, the difference of two lock files, a git history; their environments; the search."""
