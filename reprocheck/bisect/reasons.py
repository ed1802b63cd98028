"""Why a version can't be installed: what installers print, sorted into a few kinds, in one line."""

from __future__ import annotations

import re

from reprocheck.bisect.records import Unavailable, UnavailableKind

__all__ = ["out_of_reach", "unavailable"]

# The installer could not ask. That is no property of the version: nothing may be concluded from it.
_OUT_OF_REACH = re.compile(
    r"error sending request|Failed to fetch|Connection refused|connection broken|NewConnectionError"
    r"|Temporary failure in name|Name or service not known|Read timed out|ReadTimeoutError"
    r"|HTTP status (?:server|client) error|40[13] (?:Client Error|Forbidden|Unauthorized)|50\d Server Error"
    r"|SSLError|certificate verify failed|No space left on device|network (?:was|is) disabled",
    re.IGNORECASE,
)
# First match wins; both uv's and pip's wordings.
_KINDS: tuple[tuple[UnavailableKind, str], ...] = (
    ("python", r"requires (?:a different )?Python|Requires-Python|does not satisfy Python"),
    ("platform", r"no wheels? with a matching|not a supported wheel on this platform|platform tag|ABI tag"),
    (
        "build",
        r"no usable wheels|Failed to build|build backend|metadata-generation-failed|subprocess-exited-with-error",
    ),
    ("yanked", r"\byanked\b"),
)
_MISSING = re.compile(
    r"there is no version of (?P<uv>[\w.\-]+)|(?P<none>[\w.\-]+) was not found"
    r"|Could not find a version that satisfies the requirement (?P<pip>[\w.\-]+)"
)
_CONFLICT = re.compile(
    r"depends on|conflict|incompatible|only .+ (?:is|are) available|\(from [\w.\-]+\)", re.IGNORECASE
)
_NOISE = re.compile(r"^(?:Using Python|Resolved|warning:|hint:|Looking in|Processing|Collecting|Downloading|\[notice)")
_LIMIT = 300


def out_of_reach(text: str) -> bool:
    """Whether an installer failed for a reason that has nothing to do with the version (network, disk, credentials)."""
    return _OUT_OF_REACH.search(text) is not None


def unavailable(text: str, package: str) -> Unavailable:
    """The kind and the line of what an installer printed when it could not install a version of `package`."""
    reason = _reason(text)
    for kind, pattern in _KINDS:
        if re.search(pattern, text, re.IGNORECASE):
            advice = (
                "; allow building from source with --build" if kind == "build" and "no usable wheels" in text else ""
            )
            return Unavailable(kind=kind, reason=reason + advice)
    missing = _MISSING.search(text)
    name = next((value for value in missing.groupdict().values() if value), "") if missing else ""
    if _CONFLICT.search(text) or (name and _plain(name) != _plain(package)):
        return Unavailable(kind="dependency", reason=reason)
    return Unavailable(kind="no-such-version" if missing else "other", reason=reason)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def _reason(text: str) -> str:
    """The first telling sentence: uv's `cause:`, else pip's first `ERROR:`, else the last line."""
    lines = [line.strip() for line in text.splitlines()]
    causes = [line.removeprefix("cause:").strip() for line in lines if line.startswith("cause:")]
    errors = [line.partition(":")[2].strip() for line in lines if line.startswith("ERROR:")]
    plain = [line for line in lines if line and not _NOISE.match(line)]
    found = (causes or errors or plain[-1:] or ["the installer said nothing"])[0]
    if "conflicting dependencies" in found:
        # pip lists the sides of a conflict below: `tool 1.2 depends on huge>=99`.
        sides = [line for line in lines if re.match(r"(?:\S+ \S+ depends on|The user requested)", line)]
        found = "; ".join(sides) or found
    # What uv says first is the fact; what follows is deduction.
    found = re.split(r",? we can conclude that|\(from versions:", found)[0].strip()
    found = re.sub(r"^Because ", "", found)
    found = re.sub(r" and you require \S+$", "", found)
    return found if len(found) <= _LIMIT else found[: _LIMIT - 1] + "…"
