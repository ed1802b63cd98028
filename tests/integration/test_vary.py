"""Settings varied besides the order: tiny toolboxes whose order dependence, or whose bits, hang on a variable."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import msgspec
import pytest

from reprocheck.api import explain_run
from reprocheck.crossing import under_tolerance
from reprocheck.errors import UsageError
from reprocheck.model import Factors, Study, Tolerance
from reprocheck.report.documents import document
from reprocheck.report.evidence import Evidence
from reprocheck.report.json import schema
from reprocheck.report.redact import Redaction
from reprocheck.store.run import Run
from tests.conftest import Lab

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
WORK = """
    import os, state

    def run():
        scale = float(os.environ.get("SCALE", "1"))
        return {"x": state.value, "y": [scale, 2.0], "same": 3.0}
"""


def only_under_close(lab: Lab, work: str = WORK) -> None:
    """The first of `a` and `b` decides a value, but only under BIND=close; SCALE moves a number in every order."""
    decide = "import os, state\nif state.value is None or os.environ.get('BIND') != 'close': state.value = {}"
    lab.write(
        state="value = None",
        a=decide.format("1.0"),
        b=decide.format("1.0 + 2**-52 if os.environ.get('BIND') == 'close' else 1.0"),
        work=work,
    )


def factors_of(study: Study) -> Factors:
    assert study.factors is not None
    return study.factors


def letters(study: Study) -> dict[str, dict[str, str | None]]:
    """Level -> order -> group."""
    return {level.text: {",".join(arm.order): arm.group for arm in level.orders} for level in factors_of(study).levels}


def test_the_order_matters_only_under_one_value(lab: Lab) -> None:
    only_under_close(lab)

    study = lab.check(vary={"BIND": ["spread", "close"]})

    found = factors_of(study)
    assert (study.verdict, study.exit_code) == ("order-dependent", 1)
    assert found.told == 1, "told of the level under which the order matters"
    assert letters(study) == {"`BIND=spread`": {"a,b": "A", "b,a": "A"}, "`BIND=close`": {"a,b": "A", "b,a": "B"}}
    assert [level.verdict for level in found.levels] == ["identical", "order-dependent"]
    assert [level.order_matters for level in found.levels] == [False, True]
    assert study.headline.startswith(
        "order-dependent: the order matters only under `BIND=close`; "
        "`BIND=close` changes 1 of 4 outputs only in `b,a`; under `BIND=close` 1 of 4 outputs differ"
    )
    (factor,) = found.factors
    assert (factor.differs, factor.changing, factor.orders) == (True, ("close",), (("b", "a"),))
    assert [row.name for row in factor.outputs] == ["x"]
    assert factor.outputs[0].max_ulp == 1
    # Within the level: 6 + 6 runs, since two levels share the chance of an error.
    assert study.noise.p_value == pytest.approx(2 / 924)
    assert found.p_value is not None
    assert found.p_value < 0.01
    assert {arm.trials for arm in study.orders} == {6}


def test_a_setting_moves_bits_and_the_order_does_not(lab: Lab) -> None:
    only_under_close(lab)

    study = lab.check(vary={"SCALE": ["", "2"]})

    (factor,) = factors_of(study).factors
    assert (study.verdict, study.exit_code) == ("identical", 0)
    assert factor.values == (None, "2")
    assert [row.name for row in factor.outputs] == ["y[0]"]
    assert factor.sentence == "`SCALE=2` changes 1 of 4 outputs in every order"
    assert factor.p_value is not None
    assert factor.p_value < 0.01
    assert study.noise.stable, "levels are no noise of each other"
    assert letters(study)["`SCALE=2`"] == {"a,b": "B", "b,a": "B"}
    assert study.headline == (
        "identical: `SCALE=2` changes 1 of 4 outputs in every order; the order doesn't matter under any level; "
        "4 outputs equal bit for bit in 2 orders under each of 2 levels (16 runs)"
    )


def test_unset_is_unset_whatever_the_user_has(lab: Lab) -> None:
    lab.write(a="", b="", work="import os\ndef run(): return repr(os.environ.get('SCALE'))")

    study = lab.check(vary={"SCALE": ["", "2"]}, environment={**os.environ, "SCALE": "7"})

    folder = Run(Path(study.run_dir))
    seen = {
        str(r.trial.level["SCALE"]): folder.objects.path(r.outputs[0].digest).read_bytes() for r in folder.records()
    }
    assert b"None" in seen["None"]
    assert b"'2'" in seen["2"]


def test_two_settings_make_four_levels(lab: Lab) -> None:
    only_under_close(lab)

    study = lab.check(vary={"BIND": ["close", "spread"], "SCALE": ["1", "2"]})

    assert [list(orders.values()) for orders in letters(study).values()] == [
        ["A", "B"],
        ["C", "D"],
        ["A", "A"],
        ["C", "C"],
    ]
    assert factors_of(study).sentence == (
        "the order matters only under `BIND=close`; `BIND=spread` changes 1 of 4 outputs only in `b,a`; "
        "`SCALE=2` changes 1 of 4 outputs in every order"
    )


def test_noise_of_one_level_stays_its_own(lab: Lab) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import os
            def run():
                return int.from_bytes(os.urandom(7), "big") if os.environ["KIND"] == "noisy" else 5
        """,
    )

    study = lab.check(vary={"KIND": ["noisy", "calm"]}, max_repeat=8)

    found = factors_of(study)
    assert [level.verdict for level in found.levels] == ["noisy", "identical"]
    assert [level.order_matters for level in found.levels] == [None, False]
    assert [level.noise.stable for level in found.levels] == [False, True]
    assert (study.verdict, found.told) == ("noisy", 0)
    assert found.sentence == (
        "`KIND=calm` changes 1 of 1 output in every order; "
        "the order doesn't matter under `KIND=calm`; under `KIND=noisy` that can't be said"
    )


def test_a_value_under_which_the_workload_fails(lab: Lab) -> None:
    lab.write(a="", b="", work="import os\ndef run(): return 1 / (int(os.environ['N']) - 1)")

    study = lab.check(vary={"N": ["2", "1"]})

    assert (study.verdict, study.exit_code) == ("fails-everywhere", 1)
    assert factors_of(study).told == 1
    assert "`N=1` makes it fail in every order" in study.headline


def test_one_order_is_enough_where_a_setting_is_varied(lab: Lab) -> None:
    lab.write(a="", work="import os\ndef run(): return float(os.environ['N'])")

    study = lab.check(imports=["a"], vary={"N": ["1", "2"]})

    assert factors_of(study).factors[0].differs
    assert study.verdict == "identical"


def test_place_cause_and_remedy_are_of_the_level_where_the_order_matters(lab: Lab) -> None:
    sets = "import os\nif os.environ['BIND'] == 'close': os.environ.setdefault('OMP_NUM_THREADS', '{}')"
    work = "import os\ndef run():\n    value = float(os.environ.get('OMP_NUM_THREADS', '0'))\n    return value"
    lab.write(a=sets.format(1), b=sets.format(2), work=work)

    study = lab.check(vary={"BIND": ["spread", "close"]}, explain=True)

    assert study.verdict == "order-dependent"
    assert study.level == {"BIND": "close"}
    assert study.remedy is not None
    assert study.remedy.agrees, "found and tried under BIND=close; under BIND=spread there is nothing to repair"
    confirmed = [cause for cause in study.causes if cause.status == "confirmed"]
    assert any("OMP_NUM_THREADS" in cause.key for cause in confirmed)
    assert study.reproducer is not None
    assert study.reproducer.reproduces
    assert "'BIND': 'close'" in (Path(study.run_dir) / study.reproducer.path).read_text()
    again = explain_run(study.run_dir)
    assert again.remedy == study.remedy, "a stored run is explained under the level it tells of"
    # Only trials of the verdict run under the other level.
    others = [r.trial for r in Run(Path(study.run_dir)).records() if r.trial.level == {"BIND": "spread"}]
    assert not any(trial.actions or trial.trace or trial.env for trial in others)


def test_a_run_that_was_killed_goes_on_level_by_level(lab: Lab) -> None:
    only_under_close(lab)
    vary = {"BIND": ["close", "spread"]}
    study = lab.check(vary=vary, out="kept")
    folder = Path(study.run_dir)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:7]))
    (folder / "study.json").unlink()
    folder.rename(folder.with_name("kept.partial"))

    again = lab.check(vary=vary, out="kept", resume=True)

    assert (again.headline, again.factors) == (study.headline, study.factors)
    assert len(Run(folder).records()) == len(lines), "what the journal had was not run again"

    folder.rename(folder.with_name("kept.partial"))
    with pytest.raises(UsageError, match="another `levels`"):
        lab.check(vary={"BIND": ["close", "other"]}, out="kept", resume=True)


def test_every_report_tells_of_the_levels(lab: Lab) -> None:
    only_under_close(lab)
    study = lab.check(vary={"BIND": ["spread", "close"]})
    evidence = Evidence.of(study)

    jsonschema.Draft202012Validator(schema()).validate(msgspec.json.decode(msgspec.json.encode(study)))
    for format_ in ("text", "markdown", "html", "json", "junit", "sarif", "github"):
        text = document([evidence], format_)
        assert "BIND=close" in text, format_
    text = document([evidence], "text")
    assert re.search(r"BIND=close +order-dependent +12 +A +B", text)
    assert re.search(r"BIND=spread +identical +\d+ +A +A", text)
    assert "all that follows is told of `BIND=close`" in text
    matrix = evidence.matrix
    assert matrix is not None
    assert matrix.rows["x"] == ("A", "B"), "records of the other level are not mixed in"


def test_redaction_hides_values_and_keeps_levels_apart(lab: Lab) -> None:
    only_under_close(lab)
    study = lab.check(
        vary={"BIND": ["spread", "close"]}, command=["reprocheck", "run", "w", "--vary", "BIND=spread,close"]
    )

    shown = Redaction(study).study(study)

    text = msgspec.json.encode(shown).decode()
    assert "close" not in text
    assert "spread" not in text
    assert "the order matters only under `BIND=value 2`" in shown.headline
    assert [level.text for level in factors_of(shown).levels] == ["`BIND=value 1`", "`BIND=value 2`"]


def test_another_tolerance_judges_every_level_again(lab: Lab) -> None:
    only_under_close(lab)
    study = lab.check(vary={"BIND": ["spread", "close"]})

    strict = under_tolerance(Run(Path(study.run_dir)), lambda _: Tolerance())
    loose = under_tolerance(Run(Path(study.run_dir)), lambda _: Tolerance(ulp=1))

    assert (strict.verdict, strict.headline) == (study.verdict, study.headline)
    assert (loose.verdict, loose.exit_code) == ("within-tolerance", 0)
    assert [level.order_matters for level in factors_of(loose).levels] == [False, False]
    assert factors_of(loose).factors[0].sentence.endswith("only in `b,a`, all within the tolerance")


def test_vary_in_the_workloads_own_block(lab: Lab) -> None:
    only_under_close(lab)
    options = ('imports = ["a", "b"]', 'workload = "run"', 'vary = { BIND = ["close", "spread"] }')
    block = "".join(f"# {line}\n" for line in ("/// script", "[tool.reprocheck]", *options, "///"))
    path = lab.folder / "work.py"
    path.write_text(block + path.read_text())

    study = lab.check("work.py", None)

    assert "the order matters only under `BIND=close`" in study.headline


def command(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reprocheck", *words],
        cwd=lab.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command(lab: Lab) -> None:
    only_under_close(lab)

    done = command(
        lab,
        "run",
        "work.py::run",
        "--imports",
        "a,b",
        "--vary",
        "BIND=close,spread",
        "--no-explain",
        "--format",
        "json",
    )

    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["factors"]["sentence"].startswith("the order matters only under `BIND=close`")
    assert "BIND=close,spread" in document["command"]
    assert "a,b  BIND=close" in done.stderr, "progress says which level"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--vary", "BIND"], "--vary `BIND` is not NAME=V1,V2"),
        (["--vary", "BIND=1"], "`BIND` is varied over one value only"),
        (["--vary", "device=cpu,abacus"], "`abacus` is no device"),
        (["--vary", "X=1,2", "--vary", "X=3,4"], "--vary names `X` twice"),
        (["--vary", "X=1,2", "--env", "X=3"], "`X` is both varied and set by env"),
        (["--vary", "X=1,2", "--isolation", "shared-prefix"], "--vary needs every order under every level"),
    ],
)
def test_bad_input_is_one_sentence(lab: Lab, words: list[str], sentence: str) -> None:
    only_under_close(lab)

    done = command(lab, "run", "work.py::run", "--imports", "a,b", *words)

    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (lab.folder / ".reprocheck").exists(), "nothing was run"
