"""JUnit XML against the schema that CI servers' plugins come with."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import numpy as np
import pytest
import xmlschema

from reprocheck.model import DifferingTest, Study, Suite
from reprocheck.report.junit import junit_xml
from tests.samples import HOSTILE, full_study, make_run, tiny_study

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).parents[2] / "data/schemas/junit-10.xsd"))


def parsed(*studies: Study) -> ET.Element:
    text = junit_xml(studies)
    SCHEMA.validate(text)
    return ET.fromstring(text)


def test_agreement_is_a_passing_case() -> None:
    root = parsed(tiny_study())

    assert root.attrib | {} == {"name": "reprocheck", "tests": "1", "failures": "0", "errors": "0"}
    case = root.find("testsuite/testcase")
    assert case is not None
    assert case.get("name") == "work.py::run"
    assert case.find("failure") is None


def test_divergence_is_a_failure_with_the_message_of_a_failing_test(tmp_path: Path) -> None:
    root = parsed(full_study(tmp_path / "run"), tiny_study())

    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "order-dependent"
    assert str(failure.get("message")).startswith("order-dependent: 3 of 4 outputs differ")
    assert "group B" in str(failure.text)


def test_no_verdict_is_an_error() -> None:
    root = parsed(tiny_study(verdict="inconclusive", exit_code=3, headline="inconclusive: too few"))

    assert root.get("errors") == "1"
    assert root.find("testsuite/testcase/error") is not None


def test_tests_that_differ_are_cases_of_their_own() -> None:
    differing = DifferingTest(
        test="tests/test_x.py::test_y",
        verdict="order-dependent",
        reason="stable",
        orders={"a,b": {"passed": 3}, "b,a": {"failed": 3}},
        failure="E   assert 1 == 2",
    )
    study = tiny_study(verdict="order-dependent", exit_code=1, suite=Suite(tests=9, differing=(differing,)))

    root = parsed(study)

    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["work.py::run", "tests/test_x.py::test_y"]
    assert "passed in `a,b`; failed in `b,a`" in ET.tostring(root, encoding="unicode")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names(tmp_path: Path, hostile: str) -> None:
    one, two = np.arange(4.0), np.arange(4.0) * 3
    study = make_run(tmp_path / "run", {("a", "b"): [{hostile: one}], ("b", "a"): [{hostile: two}]})

    parsed(msgspec.structs.replace(study, workload=hostile))
