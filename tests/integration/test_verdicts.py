"""Every verdict, reached with tiny toolboxes in real interpreters."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.model import Study
from reprocheck.report.failure import failure_text
from tests.conftest import Lab

WORK = """
    import state
    from reprocheck import record

    def run():
        record("x", [1.0, float(state.value)])
        return {"y": state.value * 2.0}
"""


def first_wins(lab: Lab) -> None:
    """Toolboxes of which the first imported decides a value."""
    lab.write(
        state="value = None",
        a="import state\nif state.value is None: state.value = 1.0",
        b="import state\nif state.value is None: state.value = 1.0 + 2**-52",
        work=WORK,
    )


def groups_of(study: Study) -> dict[str, str | None]:
    return {",".join(arm.order): arm.group for arm in study.orders}


def test_identical(lab: Lab) -> None:
    lab.write(a="", b="", state="value = 3.0", work=WORK)

    study = lab.check()

    assert (study.verdict, study.exit_code) == ("identical", 0)
    assert [arm.trials for arm in study.orders] == [3, 3]
    assert study.noise.bound == pytest.approx(0.393, abs=1e-3)
    assert study.headline.startswith(
        "identical: 3 outputs equal bit for bit in 2 orders; 0 of 6 runs differed, so under 39 %"
    )


def test_order_dependent(lab: Lab) -> None:
    first_wins(lab)

    study = lab.check()

    assert (study.verdict, study.exit_code) == ("order-dependent", 1)
    assert groups_of(study) == {"a,b": "A", "b,a": "B"}
    assert study.noise.p_value == pytest.approx(2 / 252)
    assert [arm.trials for arm in study.orders] == [5, 5], "repeated until the exact test is convinced"
    by_name = {output.name: output for output in study.outputs}
    assert not by_name["x[0]"].differs
    assert by_name["x[1]"].max_ulp == 1
    assert by_name["y"].max_ulp == 1
    assert by_name["y"].max_abs == 2**-51
    assert (
        "2 of 3 outputs differ between `b,a` and `a,b`; stable within each order (5 + 5 runs, p = 0.008)"
        in study.headline
    )


def test_within_tolerance(lab: Lab) -> None:
    first_wins(lab)

    study = lab.check(ulp=1)

    assert (study.verdict, study.exit_code) == ("within-tolerance", 0)
    assert [arm.trials for arm in study.orders] == [3, 3], "no more runs than planned: the tolerance settles it"


def test_a_tolerance_that_matches_no_output_is_told(lab: Lab) -> None:
    first_wins(lab)

    study = lab.check(tolerance={"loss*": 1e-6, "x*": 1e-6}, orders="pairs")

    told = [note for note in study.notes if "tolerance" in note]
    assert told == ["the tolerance for `loss*` matches no output; the 3 outputs: `x[0]`, `x[1]`, `y`"]
    assert told[0] in failure_text(study)


def test_tolerance_that_is_too_small_does_not_pass(lab: Lab) -> None:
    first_wins(lab)

    assert lab.check(rtol=1e-17).verdict == "order-dependent"


def test_noisy(lab: Lab) -> None:
    lab.write(a="", b="", state="import os\nvalue = float(int.from_bytes(os.urandom(4), 'little'))", work=WORK)

    study = lab.check(max_repeat=4)

    assert (study.verdict, study.exit_code) == ("noisy", 1)
    assert study.noise.p_value == 1.0
    assert all(arm.group is None for arm in study.orders)


def test_order_dependent_with_noise(lab: Lab) -> None:
    first_wins(lab)
    lab.write(
        work="""
            import os, state
            def run():
                # Two values per order, disjoint between orders.
                return state.value * (1.0 + os.urandom(1)[0] % 2)
        """
    )

    study = lab.check(max_repeat=12)

    assert study.verdict == "order-dependent-with-noise"
    assert study.noise.p_value is not None
    assert study.noise.p_value < 0.01


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ImportError('libfoo.so.1: cannot open shared object file')", "ImportError: libfoo.so.1"),
        ("raise ValueError('bad')", "ValueError: bad"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal 11 (SIGSEGV) while importing b (2 of 2)"),
        ("import os; os._exit(7)", "ended with status 7 while importing b (2 of 2)"),
    ],
)
def test_fails_in_some_orders(lab: Lab, body: str, text: str) -> None:
    lab.write(a="", b=f"import sys\nif 'a' in sys.modules:\n    {body}", state="value = 1.0", work=WORK)

    study = lab.check()

    assert (study.verdict, study.exit_code) == ("fails-in-some-orders", 1)
    assert text in study.headline
    assert "`b,a` does not" in study.headline
    failed = next(group for group in study.groups if group.failure is not None)
    assert failed.orders in ((("a",),), (("a", "b"),))


def test_time_out_is_a_group(lab: Lab) -> None:
    lab.write(
        a="",
        b="import sys, time\nif 'a' in sys.modules: time.sleep(60)",
        state="value = 1.0",
        work=WORK,
    )

    study = lab.check(timeout=1.0)

    assert study.verdict == "fails-in-some-orders"
    failure = next(group.failure for group in study.groups if group.failure is not None)
    assert (failure.kind, failure.after_s) == ("timeout", 1.0)
    assert failure.message.startswith("no end after 1.0 s, while importing b")
    assert "b.py" in (failure.traceback or ""), "faulthandler says where it hangs"


def test_fails_everywhere(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    raise RuntimeError('no')")

    study = lab.check()

    assert (study.verdict, study.exit_code) == ("fails-everywhere", 1)
    assert "RuntimeError: no" in study.headline


def test_inconclusive_when_repeats_are_too_few(lab: Lab) -> None:
    first_wins(lab)

    study = lab.check(repeat=2, max_repeat=2)

    assert (study.verdict, study.exit_code) == ("inconclusive", 3)
    assert "raise --repeat" in study.headline


def test_effective_orders_are_merged(lab: Lab) -> None:
    lab.write(a="import b", b="", c="", state="value = 1.0", work=WORK)

    study = lab.check(imports=["a", "b", "c"])

    same = {",".join(arm.order): arm.same_as for arm in study.orders if arm.same_as}
    assert same == {"a,c,b": ("a", "b", "c"), "c,a,b": None} or set(same) == {"a,c,b"}
    arm = next(arm for arm in study.orders if arm.order == ("a", "c", "b"))
    assert arm.effective_order == ("a", "b", "c")
    assert arm.pulled_in == {"b": "a"}


def test_presence(lab: Lab) -> None:
    lab.write(
        state="value = 1.0",
        a="",
        b="import state\nstate.value = 2.0",
        work=WORK,
    )

    study = lab.check(presence=True)

    arms = {arm.order: arm.group for arm in study.orders if arm.presence}
    assert study.verdict == "identical"
    assert arms == {(): "other", ("a",): "other", ("b",): "A"}
    assert study.exit_code == 1, "merely importing `b` changes the result"


def test_output_names_that_differ(lab: Lab) -> None:
    lab.write(
        state="first = None",
        a="import state\nstate.first = state.first or 'a'",
        b="import state\nstate.first = state.first or 'b'",
        work="import state\ndef run():\n    return {state.first: 1.0, 'z': 2.0}",
    )

    study = lab.check()

    kinds = {output.name: output.kind for output in study.outputs}
    assert study.verdict == "order-dependent"
    assert kinds == {"a": "missing", "z": "equal", "b": "missing"}


def test_dtype_that_differs(lab: Lab) -> None:
    lab.write(
        state="first = None",
        a="import state\nstate.first = state.first or 1",
        b="import state\nstate.first = state.first or 1.0",
        work="import state\ndef run():\n    return state.first",
    )

    study = lab.check()

    assert study.outputs[0].kind == "dtype"
    assert study.outputs[0].passes_at is None


def test_nan_everywhere_is_equal_to_itself(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    return [float('nan')] * 3")

    assert lab.check().verdict == "identical"


def test_script_form_compares_globals(lab: Lab) -> None:
    lab.write(
        a="",
        b="",
        script="""
            import a, b
            loss = 0.5
            history = [1.0, 2.0]
            class Model: pass
            model = Model()
            if __name__ == "__main__":
                ran = 1
        """,
    )

    study = lab.check("script.py")

    assert [output.name for output in study.outputs] == ["loss", "history[0]", "history[1]", "ran"]
    assert [(item.name, item.reason) for item in study.not_compared] == [
        ("model", "a __main__.Model: not an array, tensor or number")
    ]


def test_subjects_from_the_workload(lab: Lab) -> None:
    lab.write({"a/__init__.py": "", "b/__init__.py": ""}, work="import a, b\ndef run():\n    return 1.0")

    study = lab.check(imports=None)

    assert study.subjects == ("a", "b")
    assert study.subjects_from == "the workload's own imports"


def test_outputs_pattern(lab: Lab) -> None:
    first_wins(lab)

    study = lab.check(outputs=["x[[]0]"])

    assert study.verdict == "identical"
    assert {item.name for item in study.not_compared} == {"x[1]", "y"}


def test_run_folder_holds_everything(lab: Lab) -> None:
    first_wins(lab)

    study = lab.check()
    folder = Path(study.run_dir)

    assert folder.is_relative_to(lab.folder / ".reprocheck" / "runs")
    assert len(list((folder / "records").iterdir())) == 10
    assert len(list((folder / "objects").glob("*/*"))) == 4, "1, 1+ulp, 2 and 2+2ulp, each stored once"


def test_a_script_block_that_does_not_end_is_told(lab: Lab) -> None:
    block = "# /// script\n# [tool.reprocheck]\n# repeat = 7\n"
    lab.write(a="", b="", work=f"{block}def run():\n    return 1.0\n")

    study = lab.check(repeat=1, observer=False)

    (note,) = [note for note in study.notes if "script" in note]
    assert note.startswith("the `# /// script` block of `work.py` is ignored: it must end with a line `# ///`")

    lab.write(work=f"{block}# ///\ndef run():\n    return 1.0\n")
    assert not [note for note in lab.check(repeat=1, observer=False).notes if "script" in note]
