from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.errors import UsageError
from reprocheck.model import Share
from reprocheck.plan.coverage import coverage
from reprocheck.plan.orders import MOST_ORDERS, OrderPlan, cut, orders_for

NAMES = ("cupy", "torch", "mkl", "toolbox", "scipy", "jax", "numba", "sklearn", "pandas", "cv2", "faiss", "tvm")


def complete(share: Share) -> bool:
    return share.complete


def one_sentence(error: pytest.ExceptionInfo[UsageError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert text.rstrip().endswith((".", "?"))
    return text


specs = st.sampled_from(["all", "pairs", "triples", "balanced", "triples+balanced", "default", "sample:7", "sample:30"])


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 11), spec=specs, seed=st.none() | st.integers(0, 2**32))
def test_every_plan_keeps_its_promises(n: int, spec: str, seed: int | None) -> None:
    subjects = NAMES[:n]
    if spec == "all" and n > 6:
        return
    plan = orders_for(subjects, spec, seed=seed)
    assert plan.subjects == subjects == plan.orders[0]
    assert len(set(plan.orders)) == len(plan.orders) >= 2
    assert all(sorted(order) == sorted(subjects) for order in plan.orders)
    assert plan.spec == spec
    assert plan.stated == coverage(plan.orders, subjects)
    assert plan == orders_for(subjects, spec, seed=seed)
    if not spec.startswith("sample"):
        assert complete(plan.stated.pairs)
    if spec in {"all", "triples", "triples+balanced", "default"}:
        assert complete(plan.stated.triples)
    if spec in {"all", "balanced", "triples+balanced", "default"}:
        assert complete(plan.stated.firsts)
        assert complete(plan.stated.adjacencies)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 9), spec=specs, most=st.integers(1, 12))
def test_a_cut_plan_states_what_is_left(n: int, spec: str, most: int) -> None:
    if spec == "all" and n > 6:
        return
    plan = orders_for(NAMES[:n], spec)
    short = cut(plan, most)
    assert short.orders == plan.orders[:most]
    assert short.stated == coverage(short.orders, plan.subjects)
    assert cut(plan, len(plan.orders)) == plan
    assert len(cut(plan, 0).orders) == 1


def test_a_cut_loses_less_than_the_same_cut_of_the_unsorted_design() -> None:
    plan = orders_for(NAMES[:6], "all")
    plain = list(itertools.permutations(plan.subjects))
    for most in (2, 4, 8):
        assert cut(plan, most).stated.triples.covered > coverage(plain[:most], plan.subjects).triples.covered
    assert complete(cut(plan, 2).stated.pairs)


@pytest.mark.parametrize(
    ("n", "design", "count"), [(2, "all", 2), (3, "all", 6), (4, "all", 24), (5, "triples+balanced", 16)]
)
def test_the_default_is_everything_up_to_four(n: int, design: str, count: int) -> None:
    plan = orders_for(NAMES[:n])
    assert (plan.spec, plan.design, len(plan.orders), plan.seed) == ("default", design, count, None)


def test_ten_subjects_take_ten_orders() -> None:
    assert len(orders_for(NAMES[:10], "triples").orders) == 10


def test_the_seed_is_named_only_where_it_matters() -> None:
    assert orders_for(NAMES[:10], "triples", seed=3).seed is None
    assert orders_for(NAMES[:11], "triples", seed=3).seed == 3
    assert orders_for(NAMES[:11], "default").seed == 0
    assert orders_for(NAMES[:4], "sample:5").seed == 0
    assert orders_for(NAMES[:4], "sample:24", seed=3).seed is None
    assert orders_for(NAMES[:5], "balanced", seed=3).seed is None
    assert orders_for(NAMES[:6], "sample:9", seed=1) != orders_for(NAMES[:6], "sample:9", seed=2)


def test_all_of_seven_is_the_limit() -> None:
    assert len(orders_for(NAMES[:7], "all").orders) == MOST_ORDERS == math.factorial(7)
    with pytest.raises(UsageError) as error:
        orders_for(NAMES[:8], "all")
    assert "8! orders of 8 subjects" in one_sentence(error)
    assert "triples" in str(error.value)


# --- one by one -------------------------------------------------------------------------------------------------


def test_explicit_orders_replace_the_default_and_follow_the_users_own() -> None:
    plan = orders_for(("a", "b", "c"), explicit=[("c", "b", "a"), ("a", "b", "c"), ("b", "a", "c")])
    assert plan.orders == (("a", "b", "c"), ("c", "b", "a"), ("b", "a", "c"))
    assert (plan.design, plan.seed) == ("explicit", None)


def test_explicit_orders_come_on_top_of_a_design() -> None:
    plan = orders_for(("a", "b", "c"), "pairs", explicit=[("b", "a", "c")])
    assert plan.orders == (("a", "b", "c"), ("b", "a", "c"), ("c", "b", "a"))
    assert plan.design == "pairs+explicit"


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (("a", "x", "b"), "the order `a,x,b` names `x`, which is not a subject"),
        (("torhc", "b", "a"), "the order `torhc,b,a` names `torhc`, which is not a subject: did you mean `torch`?"),
        (("a", "b"), "the order `a,b` lacks `torch`"),
        (("a", "b", "a"), "the order `a,b,a` names `a` twice"),
        (("a", "", "b"), "the order `a,,b` has an empty name"),
        ((), "the order `` lacks `a`, `b`, `torch`"),
    ],
)
def test_a_wrong_explicit_order_is_told(order: Sequence[str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        orders_for(("a", "b", "torch"), explicit=[order])
    assert one_sentence(error).startswith(said)


# --- files ------------------------------------------------------------------------------------------------------


def from_file(folder: Path, text: str) -> OrderPlan:
    path = folder / "orders.txt"
    path.write_text(text, encoding="utf-8")
    return orders_for(("a", "b", "c"), str(path))


def test_a_file_of_orders_keeps_its_sequence(tmp_path: Path) -> None:
    plan = from_file(tmp_path, "# the bad ones\n\n c , b,a  # worst\nb,c,a\r\na,b,c\nb,c,a\n")
    assert plan.orders == (("a", "b", "c"), ("c", "b", "a"), ("b", "c", "a"))
    assert (plan.design, plan.seed) == ("file", None)
    assert plan.spec.endswith("orders.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,c\n\n# x\nc,b,d\n", "line 4 of `{}` names `d`, which is not a subject; the subjects are `a`, `b`, `c`."),
        ("c,b\n", "line 1 of `{}` lacks `a`"),
        ("c,b,b,a\n", "line 1 of `{}` names `b` twice"),
        ("c,b,a,\n", "line 1 of `{}` has an empty name"),
        ("c b a\n", "line 1 of `{}` names `c b a`, which is not a subject"),
        ("# nothing\n", "`{}` holds no order: write one a line, e.g. `c,b,a`."),
    ],
)
def test_a_wrong_line_is_told_with_its_number(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        from_file(tmp_path, text)
    assert one_sentence(error).startswith(said.format(tmp_path / "orders.txt"))


def test_files_that_cant_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        orders_for(("a", "b"), str(tmp_path))
    assert "Is a directory" in one_sentence(error)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not text in UTF-8"):
        orders_for(("a", "b"), str(tmp_path / "binary"))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("tripels", "did you mean `triples`?"),
        ("no/such/file.txt", "the designs are `all`, "),
        ("pairs:3", "did you mean `pairs`?"),
        ("", "the designs are `all`, "),
        ("nul\0byte", "neither a design of orders nor a file"),
        ("sample", "write a number from 1 to 5040"),
        ("sample:0", "write a number from 1 to 5040"),
        ("sample:-1", "write a number from 1 to 5040"),
        ("sample:many", "write a number from 1 to 5040"),
        ("sample:9999999999999999999", "write a number from 1 to 5040"),
    ],
)
def test_an_unknown_design_is_told(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        orders_for(("a", "b"), spec)
    assert said in one_sentence(error)


# --- nothing varies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["default", "all", "pairs", "triples", "balanced", "sample:5"])
def test_one_subject_alone_is_no_question(spec: str) -> None:
    with pytest.raises(UsageError) as error:
        orders_for(["torch"], spec)
    assert "`torch` is the only subject" in one_sentence(error)
    assert "--imports torch,OTHER" in str(error.value)


def test_no_subject_is_no_question() -> None:
    with pytest.raises(UsageError) as error:
        orders_for([])
    assert "--imports" in one_sentence(error)


@pytest.mark.parametrize("spec", ["sample:1", "default"])
def test_the_users_own_order_alone_is_no_question(spec: str) -> None:
    with pytest.raises(UsageError) as error:
        orders_for(("a", "b"), spec, explicit=[("a", "b")] if spec == "default" else ())
    assert "a single order, `a,b`" in one_sentence(error)


def test_one_order_will_do_where_something_else_varies() -> None:
    assert orders_for(["torch"], varies_otherwise=True).orders == (("torch",),)
    assert orders_for([], varies_otherwise=True).orders == ((),)


def test_a_subject_given_twice_is_told() -> None:
    with pytest.raises(UsageError) as error:
        orders_for(("a", "b", "a"))
    assert "`a` is given twice" in one_sentence(error)


def test_a_plan_has_a_json_form() -> None:
    plan = orders_for(NAMES[:5])
    assert msgspec.json.decode(msgspec.json.encode(plan), type=OrderPlan) == plan
