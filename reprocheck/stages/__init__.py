"""The stages of a study's trials: which are run next, given what the last ones said, until the verdict stands."""
