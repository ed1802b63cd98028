"""`reprocheck(target, imports=[...])`: a workload outside of the test, checked by a test."""

from __future__ import annotations

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]


def test_every_kind_of_target_and_what_an_outcome_offers(inner: Inner) -> None:
    inner.write(
        tests__near="def run(): return 1.0",
        tests__test_it="""
            import pytest
            from reprocheck import DivergenceError, UsageError

            def run():
                return {"y": 2.0}

            FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False}

            @pytest.mark.parametrize("target", ["work.py::same", "work:same", "near.py::run", run], ids=str)
            def test_same(reprocheck, target):
                outcome = reprocheck(target, **FEW)
                outcome.assert_identical()
                outcome.assert_close()
                assert (outcome.verdict, len(outcome.groups)) == ("identical", 1)
                assert outcome.causes == ()
                assert outcome.study.subjects == ("a", "b")

            def test_differs(reprocheck):
                outcome = reprocheck("work.py::differs", ["a", "b"])
                outcome.assert_close(rtol=1e-12)
                outcome.assert_close(atol=1e-12)
                outcome.assert_close(ulp=1)
                with pytest.raises(DivergenceError, match="^order-dependent: 1 of 1 output"):
                    outcome.assert_identical()
                with pytest.raises(DivergenceError, match="^order-dependent: 1 of 1 output"):
                    outcome.assert_close(rtol=1e-17)
                for wrong in ({"rtol": float("nan")}, {"atol": -1}, {"rtol": "1e-3"}, {"ulp": 0.5}):
                    with pytest.raises(UsageError, match=f"`{[*wrong][0]}` in `assert_close` must be a"):
                        outcome.assert_close(**wrong)
                assert [group.orders for group in outcome.groups] == [(("a", "b"),), (("b", "a"),)]
                assert outcome.outputs[0].max_ulp == 1

            def test_tolerance_of_the_call(reprocheck):
                outcome = reprocheck("work.py::differs", ["a", "b"], rtol=1e-12)
                assert outcome.verdict == "within-tolerance"
                outcome.assert_agree()
                with pytest.raises(DivergenceError, match="^within-tolerance: "):
                    outcome.assert_identical()

            def test_a_varied_setting(reprocheck):
                vary = {"SOME_SETTING": ["", "1"]}
                outcome = reprocheck("work.py::same", ["a", "b"], vary=vary, repeat=1, observer=False)
                outcome.assert_identical()
                assert outcome.study.factors.sentence == (
                    "the order doesn't matter under any level; `SOME_SETTING` doesn't change the outputs"
                )

            def test_imported_late(reprocheck):
                import sys
                assert not {"numpy", "rich", "click", "a", "b", "work"} & set(sys.modules)
        """,
    )

    result = inner.run()

    result.assert_outcomes(passed=8)


def test_the_failure_shows_the_users_line_and_none_of_ours(inner: Inner) -> None:
    inner.write(
        test_it="""
            def test_it(reprocheck):
                reprocheck("work.py::differs", ["a", "b"]).assert_identical()
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>       reprocheck("work.py::differs", [[]"a", "b"[]]).assert_identical()',
            "E       reprocheck.DivergenceError: order-dependent: 1 of 1 output differs between*",
            "E         again *reprocheck run work.py::differs --imports a,b",
            "test_it.py:3: DivergenceError",
        ]
    )
    assert "pytest_plugin" not in result.stdout.str()
    assert "_require" not in result.stdout.str()


def test_an_outcome_nobody_looks_at_is_an_error(inner: Inner) -> None:
    inner.write(
        test_it="""
            def test_forgets(reprocheck):
                reprocheck("work.py::differs", ["a", "b"], max_repeat=1, repeat=1, observer=False)

            def test_fails_before(reprocheck):
                outcome = reprocheck("work.py::same", ["a", "b"], max_repeat=1, repeat=1, observer=False)
                assert 1 == 2
                outcome.assert_identical()
        """
    )

    result = inner.run()

    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["E *UsageError: nobody looked at the outcome of `reprocheck(…)`; end the call with *"])


QUESTIONS = {
    '"wrk.py::same", ["a", "b"]': "there is no file `wrk.py`: did you mean `work.py`?",
    '"work.py::sam", ["a", "b"]': "`work.py` defines no `sam` at its top level: did you mean `same`?",
    '"work.py::same", ["a", "nowhere"]': "subject `nowhere` isn't installed for *; install it, *",
    '"work.py::same", ["a"]': "`a` is the only subject, *",
    '"work.py::same", ["a", "b"], tolerence=1': "unknown keyword `tolerence` in the call of `reprocheck`: *",
    "lambda: 1, ['a', 'b']": "`test_6.<locals>.<lambda>` is not at the top level of its module, *",
    "3, ['a', 'b']": "a target is `file.py::function`, `pkg.mod:function` or a function, not int",
}


def test_a_question_that_cannot_be_asked_fails_with_one_sentence(inner: Inner) -> None:
    tests = [
        f"@pytest.mark.xfail\ndef test_{number}(reprocheck):\n    reprocheck({call}).assert_identical()\n"
        for number, call in enumerate(QUESTIONS, 1)
    ]
    inner.write(test_it="import pytest\n" + "\n".join(tests))

    result = inner.run()

    result.assert_outcomes(failed=len(QUESTIONS))
    result.stdout.fnmatch_lines([f"E *reprocheck.UsageError: {message}" for message in QUESTIONS.values()])
    assert "pytest_plugin" not in result.stdout.str()


def test_a_workload_that_fails_everywhere_fails_the_test_but_is_no_divergence(inner: Inner) -> None:
    inner.write(
        broken="def run(): raise RuntimeError('no such luck')",
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            @pytest.mark.xfail(raises=DivergenceError)
            def test_it(reprocheck):
                reprocheck("broken.py::run", ["a", "b"]).assert_identical()
        """,
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *Failed: fails-everywhere: RuntimeError: no such luck*"])
