"""The JSON document of a study and its schema, both made from the same record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from reprocheck.errors import UsageError
from reprocheck.model import Study

__all__ = ["read_studies", "read_study", "schema", "studies_json", "study_json"]


def study_json(study: Study) -> str:
    """The published document, indented, keys in the record's order, one final newline."""
    return msgspec.json.format(msgspec.json.encode(study), indent=2).decode() + "\n"


def studies_json(studies: Sequence[Study]) -> str:
    """The document of one study, or a list of documents."""
    if len(studies) == 1:
        return study_json(studies[0])
    return "[\n" + ",\n".join(study_json(study).rstrip() for study in studies) + "\n]\n"


def read_studies(text: bytes) -> list[Study]:
    """The studies of a document or of a list of them. Raises `UsageError` for anything else."""
    try:
        items = msgspec.json.decode(text, type=list[msgspec.Raw] | dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise UsageError(f"this is not a study: {error}") from error
    return [read_study(bytes(item)) for item in items] if isinstance(items, list) else [read_study(text)]


def read_study(text: str | bytes) -> Study:
    """The study of a document. Raises `UsageError` for another schema or version."""
    try:
        head = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"this is not a study: {error}") from error
    found = (head.get("schema"), head.get("schema_version"))
    if found != ("reprocheck/study", 1):
        raise UsageError(
            f"this document is {found[0]} version {found[1]}; this reprocheck reads reprocheck/study version 1"
        )
    try:
        return msgspec.convert(head, Study)
    except msgspec.ValidationError as error:
        raise UsageError(f"this study is damaged: {error}") from error


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the document, written by the code that writes the document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Study)}
