"""What pip is configured with, in uv's words: uv reads none of pip's files and variables.

https://docs.astral.sh/uv/pip/compatibility/#configuration-files-and-environment-variables
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from reprocheck.model import Struct

__all__ = ["Settings", "carried_over", "parse"]


class Settings(Struct, frozen=True, kw_only=True):
    """pip's configuration in uv's words."""

    options: tuple[str, ...] = ()
    variables: dict[str, str] = {}


# What these say concerns pip's own behaviour, not which packages are taken.
_PIPS_OWN = {
    *("disable-pip-version-check", "retries", "progress-bar", "no-input", "quiet", "verbose", "debug", "log"),
    *("cache-dir", "no-cache-dir", "require-virtualenv", "root-user-action", "break-system-packages", "user"),
    *("no-warn-script-location", "no-warn-conflicts", "no-python-version-warning", "no-color", "compile", "no-compile"),
    *("prefer-binary", "use-feature", "use-deprecated", "exists-action", "format", "isolated", "editable", "src"),
    *("build-dir", "upgrade"),
}
_PER_VALUE = {
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "constraint": "--constraint",
    "trusted-host": "--allow-insecure-host",
    "no-binary": "--no-binary",
    "only-binary": "--only-binary",
}
_VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
}
_UVS_OWN = (
    *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX"),
    *("UV_CONFIG_FILE", "UV_OFFLINE"),
)


def carried_over(
    settings: Mapping[str, str], environment: Mapping[str, str], *, no_index: bool, index_given: bool
) -> tuple[Settings, str | None]:
    """(pip's `settings` for uv, the first one that can't be handed over).

    Nothing is handed over to a uv that was told itself where packages come from.
    """
    if any(environment.get(name) for name in _UVS_OWN):
        return Settings(), None
    options: list[str] = []
    variables: dict[str, str] = {}
    obstacle = None
    for key, value in settings.items():
        if key in _PER_VALUE:
            if no_index and key == "extra-index-url":
                continue
            for part in value.split():
                options += [_PER_VALUE[key], part]
        elif key == "index-url":
            if not no_index and not index_given:
                options += ["--index-url", value]
        elif key in ("no-index", "pre"):
            if value.lower() in ("1", "true", "yes", "on"):
                options += ["--no-index"] if key == "no-index" else ["--prerelease", "allow"]
        elif key in _VARIABLES:
            if not environment.get(_VARIABLES[key]):
                variables[_VARIABLES[key]] = value
        elif key not in _PIPS_OWN:
            obstacle = obstacle or key
    return Settings(options=tuple(options), variables=variables), obstacle


def parse(text: str) -> dict[str, str]:
    """Key -> value from `pip config list`, where variables beat a command's section and that beats `global`."""
    ranks = {"global": 0, "install": 1, ":env:": 2}
    found: dict[str, tuple[int, str]] = {}
    for line in text.splitlines():
        name, equals, shown = line.partition("=")
        section, dot, key = name.partition(".")
        if not equals or not dot or section not in ranks:
            continue
        try:
            value = str(ast.literal_eval(shown))
        except (ValueError, SyntaxError):
            value = shown
        if ranks[section] >= found.get(key, (0, ""))[0]:
            found[key] = (ranks[section], value)
    return {key: value for key, (_, value) in found.items()}
