"""JUnit XML: one test case a study, and one a test that differs when the workload is a test suite.

The dialect is that of Jenkins' xunit plugin, which is what CI servers read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from reprocheck.headline import outcomes_text
from reprocheck.model import DifferingTest, Study
from reprocheck.report.failure import failure_text
from reprocheck.report.plain import clip, visible
from reprocheck.report.planned import planned_rows

__all__ = ["junit_xml"]

LONGEST = 60_000
"""Characters of one failure's text."""


def junit_xml(studies: Sequence[Study]) -> str:
    """The studies as one document. A divergence is a failure, a verdict that is none an error."""
    root = ET.Element("testsuites", name="reprocheck")
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for study in studies:
        suite = ET.SubElement(root, "testsuite", name=_text(study.workload), time=f"{study.seconds:.3f}")
        if study.started:
            suite.set("timestamp", _text(re.sub(r"[+-]\d\d:?\d\d$", "", study.started)))
        _properties(suite, study)
        _case(suite, study)
        if study.suite is not None:
            for test in study.suite.differing:
                _test(suite, study, test)
        counts = {
            "tests": len(suite.findall("testcase")),
            "failures": len(suite.findall("testcase/failure")),
            "errors": len(suite.findall("testcase/error")),
        }
        for name, count in counts.items():
            suite.set(name, str(count))
            totals[name] += count
    for name, count in totals.items():
        root.set(name, str(count))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, study: Study) -> None:
    properties = ET.SubElement(suite, "properties")
    facts = {
        "reprocheck.version": study.reprocheck_version,
        "reprocheck.verdict": study.verdict,
        "reprocheck.subjects": ",".join(study.subjects),
        "reprocheck.orders": study.plan,
        **{f"reprocheck.{name.replace(' ', '-')}": text for name, text in planned_rows(study)},
        "reprocheck.p": "" if study.noise.p_value is None else f"{study.noise.p_value:.3g}",
        "reprocheck.run_folder": study.run_dir,
    }
    for name, value in facts.items():
        if value:
            ET.SubElement(properties, "property", name=name, value=_text(value))


def _case(suite: ET.Element, study: Study) -> None:
    case = ET.SubElement(
        suite, "testcase", classname="reprocheck", name=_text(study.workload), time=f"{study.seconds:.3f}"
    )
    if study.exit_code == 0:
        ET.SubElement(case, "system-out").text = _text(study.headline)
        return
    kind = "failure" if study.exit_code == 1 else "error"
    problem = ET.SubElement(case, kind, type=study.verdict, message=_text(study.headline))
    problem.text = _text(failure_text(study))


def _test(suite: ET.Element, study: Study, test: DifferingTest) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(study.workload), name=_text(test.test))
    told = outcomes_text(test)
    problem = ET.SubElement(case, "failure", type=test.verdict, message=_text(told))
    problem.text = _text(f"{test.reason}\n{told}\n{test.failure}".rstrip())


def _text(text: str) -> str:
    """What XML can hold: it has no controls, not even escaped."""
    return clip(visible(text), LONGEST)
