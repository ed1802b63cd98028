"""All other variables of the environment, each as a digest, so that two machines can be told apart by them."""

from .. import digest
from . import environ

__all__ = ["name", "phases", "read"]

name = "environ"
phases = ("t3",)


def read():
    """`others`: name -> digest, for the variables at exec that are not shown with their value."""
    start = environ.at_start()
    return {
        "others": {key: digest.short(value) for key, value in sorted(start.items()) if not environ.visible(key, value)}
    }
