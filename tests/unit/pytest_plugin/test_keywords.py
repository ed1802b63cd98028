from __future__ import annotations

import pytest

from reprocheck.errors import UsageError
from reprocheck.pytest_plugin.keywords import check_keywords


def test_isolation_is_a_keyword() -> None:
    assert check_keywords({"isolation": "shared-prefix"}, "a test") == {"isolation": "shared-prefix"}


def test_another_isolation_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="`isolation` in a test must be `fresh` or `shared-prefix`, not 'forked'"):
        check_keywords({"isolation": "forked"}, "a test")
