"""What installers say, what pip is configured with, and which wheels fit."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from reprocheck.bisect.environments import unmet
from reprocheck.bisect.pip_settings import carried_over, parse
from reprocheck.bisect.reasons import out_of_reach, unavailable
from reprocheck.bisect.wheels import Distribution, content_digest, top_level

UV = "Using Python 3.11.7 environment at: e\nerror: No solution found when resolving dependencies\n  cause: Because {}"
PIP = "Looking in links: w\nProcessing ./w/tb-1.1-py3-none-any.whl\nERROR: {}"


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        (
            UV.format("tb==1.1 requires Python >=3.99 and you require tb==1.1, we can conclude that …"),
            "python",
            "tb==1.1 requires Python >=3.99",
        ),
        (
            UV.format(
                "tb==1.2 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you require tb==1.2, we …"
            ),
            "platform",
            "tb==1.2 has no wheels with a matching Python ABI tag (e.g., `cp311`)",
        ),
        (
            UV.format(
                "missing was not found in the provided package locations and tb==1.3 depends on missing>=2, we can …"
            ),
            "dependency",
            "missing was not found in the provided package locations and tb==1.3 depends on missing>=2",
        ),
        (
            UV.format("only dep==2.0 is available and tb==1.5 depends on dep<2, we can conclude that tb==1.5 cannot …"),
            "dependency",
            "only dep==2.0 is available and tb==1.5 depends on dep<2",
        ),
        (
            UV.format("there is no version of tb==1.9 and you require tb==1.9, we can conclude that your …"),
            "no-such-version",
            "there is no version of tb==1.9",
        ),
        (PIP.format("Package 'tb' requires a different Python: 3.11.7 not in '>=3.99'"), "python", None),
        (
            PIP.format(
                "Could not find a version that satisfies the requirement missing>=2 (from tb) (from versions: none)"
            ),
            "dependency",
            "Could not find a version that satisfies the requirement missing>=2 (from tb)",
        ),
        (
            PIP.format("Could not find a version that satisfies the requirement tb==1.9 (from versions: 1.0, 1.1)"),
            "no-such-version",
            "Could not find a version that satisfies the requirement tb==1.9",
        ),
        ("error: Failed to build `x==1`\n  cause: The build backend returned an error", "build", None),
        ("", "other", "the installer said nothing"),
    ],
)
def test_reasons(text: str, kind: str, reason: str | None) -> None:
    found = unavailable(text, "tb")

    assert found.kind == kind
    assert reason is None or found.reason.startswith(reason)
    assert "\n" not in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "error: Request failed after 3 retries\n  cause: Failed to fetch: http://x/simple/six/",
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'",
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "hint: Packages were unavailable because the network was disabled.",
    ],
)
def test_trouble_on_the_way_is_no_property_of_a_version(text: str) -> None:
    assert out_of_reach(text)
    assert not out_of_reach(UV.format("there is no version of tb==1.9"))


def test_pip_settings_are_read_with_the_stronger_place_winning() -> None:
    text = (
        ":env:.find-links='/env'\nglobal.find-links='/global'\n"
        "global.extra-index-url='https://a/simple https://b/simple'\n"
        "install.no-binary='torch'\ndownload.dest='/x'\nrubbish\n"
    )

    assert parse(text) == {
        "find-links": "/env",
        "extra-index-url": "https://a/simple https://b/simple",
        "no-binary": "torch",
    }


def test_pip_settings_in_uvs_words() -> None:
    settings = {
        "find-links": "/w",
        "extra-index-url": "https://a https://b",
        "constraint": "/c.txt",
        "cert": "/ca.pem",
        "retries": "3",
        "index-url": "https://i",
    }

    found, obstacle = carried_over(settings, {}, no_index=False, index_given=False)

    assert obstacle is None
    assert found.options == (
        *("--find-links", "/w", "--extra-index-url", "https://a", "--extra-index-url", "https://b"),
        *("--constraint", "/c.txt", "--index-url", "https://i"),
    )
    assert found.variables == {"SSL_CERT_FILE": "/ca.pem"}


def test_an_index_given_or_ruled_out_beats_pips() -> None:
    settings = {"index-url": "https://i", "extra-index-url": "https://a"}

    assert carried_over(settings, {}, no_index=True, index_given=False)[0].options == ()
    assert "--index-url" not in carried_over(settings, {}, no_index=False, index_given=True)[0].options


def test_what_uv_cannot_be_told_is_named() -> None:
    assert carried_over({"client-cert": "/k.pem"}, {}, no_index=False, index_given=False)[1] == "client-cert"


def test_a_uv_that_was_told_itself_is_told_nothing() -> None:
    found, obstacle = carried_over(
        {"client-cert": "/k", "find-links": "/w"}, {"UV_INDEX": "https://u"}, no_index=False, index_given=False
    )

    assert (found.options, obstacle) == ((), None)


MARKERS = {"python_version": "3.11", "sys_platform": "linux", "extra": ""}


def test_requirements_that_what_is_visible_does_not_meet() -> None:
    one = Distribution(
        name="tool",
        version="1",
        requires=(
            "torch>=99",
            "numpy>=1",
            "Missing_Thing",
            "windows-only; sys_platform == 'win32'",
            "only-extra; extra == 'x'",
            "not a requirement at all !!",
        ),
    )

    found = unmet([one], {"torch": "2.13.0+cpu", "numpy": "2.3"}, MARKERS)

    assert [Requirement(text).name for text in found] == ["torch", "Missing_Thing"]


def test_local_and_pre_releases_meet_what_they_should() -> None:
    one = Distribution(name="tool", version="1", requires=("torch==2.13.0", "numpy>=2"))

    assert unmet([one], {"torch": "2.13.0+cpu", "numpy": "2.4.0rc1"}, MARKERS) == ()


def test_top_level_modules() -> None:
    files = ["toolbox/__init__.py", "toolbox/sub/x.py", "single.py", "_c.cpython-311-x86_64-linux-gnu.so"]

    assert top_level([*files, ".dist-info/entry_points.txt", "x-1.data/y"]) == ("_c", "single", "toolbox")


def test_contents_are_equal_when_files_are() -> None:
    assert content_digest({"a": "1", "b": "2"}) == content_digest({"b": "2", "a": "1"})
    assert content_digest({"a": "1"}) != content_digest({"a": "2"})
