"""SARIF 2.1.0, for code scanning (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html).

GitHub refuses a whole file if one result in it has no place. Every result here has a file that is there and a line;
what has none is a notification of the invocation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reprocheck.headline import outcomes_text
from reprocheck.model import Study
from reprocheck.report.places import Anchor, anchor_of, repository_root, study_anchor, test_anchor
from reprocheck.report.plain import clip, visible

__all__ = ["sarif_json"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_HAZARDS = 10

RULES = {
    "order-dependent": ("error", "Outputs depend on the import order."),
    "order-dependent-with-noise": ("error", "Outputs depend on the import order, beyond the noise between runs."),
    "fails-in-some-orders": ("error", "The workload fails in some import orders only."),
    "fails-everywhere": ("error", "The workload fails in every import order."),
    "noisy": ("warning", "Identical runs give other outputs."),
    "inconclusive": ("warning", "Too few runs came back to tell."),
    "within-tolerance": ("note", "Outputs differ between import orders, within the tolerance."),
    "origin": ("warning", "The first line or operator at which two import orders part."),
    "cause": ("warning", "A setting whose change flips the outcome is made here."),
    "hazard": ("note", "State that differs between import orders is set here, while the outputs agree."),
}


def sarif_json(studies: Sequence[Study], *, root: Path | None = None) -> str:
    """The studies as one SARIF document; files are named relative to `root`, by default the repository."""
    base = (root or repository_root()).resolve()
    results: list[dict[str, Any]] = []
    notifications = []
    for study in studies:
        for rule, text, anchor, key in _findings(study, base):
            level = RULES[rule][0]
            message = {"text": clip(visible(text), 8000)}
            if anchor is None:
                notifications.append({"level": level, "message": message, "descriptor": {"id": rule}})
            else:
                results.append(
                    {
                        "ruleId": rule,
                        "ruleIndex": list(RULES).index(rule),
                        "level": level,
                        "message": message,
                        "locations": [_location(anchor)],
                        "partialFingerprints": {"reprocheck/v1": _fingerprint(study, rule, key)},
                    }
                )
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    version = studies[0].reprocheck_version if studies else "0"
    driver = {
        "name": "reprocheck",
        "version": version,
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": text},
                "defaultConfiguration": {"level": level},
            }
            for name, (level, text) in RULES.items()
        ],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


Finding = tuple[str, str, Anchor | None, str]


def _findings(study: Study, root: Path) -> Iterator[Finding]:
    """Rule, text, place and what tells one finding of a rule from another."""
    place = study_anchor(study, root)
    if study.verdict in RULES:
        text = study.headline
        if study.remedy is not None and study.remedy.agrees:
            text += f"\nWhat to do: {study.remedy.text}"
        yield study.verdict, text, place, ""
    for item in (study.first_line, study.origin):
        if item is not None:
            # Outside the repository (a library's own line) a finding is shown at the workload.
            yield "origin", item.text, anchor_of(item.file, item.line, root) or place, item.text
    for cause in study.causes:
        event = cause.event
        anchor = anchor_of(event.file, event.line, root) if event is not None else None
        yield "cause", f"{cause.status}: {cause.text}", anchor or place, cause.key
    for hazard in study.hazards[:MAX_HAZARDS]:
        places = (
            anchor_of(change.event.file, change.event.line, root)
            for change in hazard.changes
            if change.event is not None
        )
        yield "hazard", f"{hazard.key}: {hazard.why}", next(filter(None, places), None) or place, hazard.key
    for test in study.suite.differing if study.suite is not None else ():
        rule = test.verdict if test.verdict in RULES else "order-dependent"
        yield rule, f"{test.test}: {outcomes_text(test)}", test_anchor(test.test, root) or place, test.test


def _location(anchor: Anchor) -> dict[str, Any]:
    artifact = {"uri": quote(anchor.file), "uriBaseId": "SRCROOT"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": anchor.line}}}


def _fingerprint(study: Study, rule: str, key: str) -> str:
    """Equal for the same finding of the next run, whatever line it has moved to."""
    text = f"{study.workload}\0{rule}\0{key}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
