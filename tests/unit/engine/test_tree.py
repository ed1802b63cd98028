"""Fork trees: every trial is reached once, nothing is imported twice for one beginning, few processes are alive."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from reprocheck.engine.tree import Prefix, grow, may_start, saved
from reprocheck.model import Trial


def trials(orders: list[str]) -> list[Trial]:
    """Repeats of an order are numbered."""
    return [Trial(order=tuple(order), repeat=orders[:n].count(order)) for n, order in enumerate(orders)]


@st.composite
def some_orders(draw: st.DrawFn) -> list[str]:
    """Orders of the same subjects, in any number and sequence, some of them more than once."""
    names = "abcde"[: draw(st.integers(1, 5))]
    return draw(st.lists(st.permutations(names).map("".join), min_size=1, max_size=30))


def walk(tree: Prefix) -> Iterator[Prefix]:
    yield tree
    for child in tree.children:
        yield from walk(child)


def beginnings(orders: list[str]) -> int:
    """Different beginnings: what has to be imported at least, where the last import of a trial can't be shared."""
    return len({order[:n] for order in orders for n in range(1, len(order) + 1)})


@given(some_orders())
def test_every_trial_is_reached_exactly_once(orders: list[str]) -> None:
    wanted = trials(orders)

    reached = list(grow(wanted).trials)

    assert sorted(reached, key=repr) == sorted(wanted, key=repr)


@given(some_orders())
def test_imports_are_as_few_as_they_can_be(orders: list[str]) -> None:
    tree = grow(trials(orders))

    assert tree.imports() == beginnings(orders)
    assert saved(tree) == sum(map(len, orders)) - beginnings(orders)


@given(some_orders())
def test_a_process_goes_on_where_its_parent_stopped(orders: list[str]) -> None:
    for node in walk(grow(trials(orders))):
        for child in node.children:
            assert child.order[: len(node.order)] == node.order
            whole = child.order if child.trial is None else child.trial.order
            assert whole[: len(node.order)] == node.order


@given(some_orders())
def test_only_the_root_may_be_forked_once_only(orders: list[str]) -> None:
    _, *others = walk(grow(trials(orders)))

    assert all(len(node.children) != 1 for node in others)
    assert all((node.trial is None) == bool(node.children) for node in others)


@pytest.mark.parametrize(("n", "imports", "height"), [(1, 1, 1), (2, 4, 1), (3, 15, 2), (4, 64, 3), (5, 325, 4)])
def test_all_orders(n: int, imports: int, height: int) -> None:
    tree = grow(trials(["".join(order) for order in permutations("abcde"[:n])]))

    assert (tree.imports(), tree.height) == (imports, height)


def test_repeats_share_all_imports() -> None:
    tree = grow(trials(["abc"] * 5))

    assert tree.imports() == 3
    assert saved(tree) == 12


@given(some_orders(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_whatever_ends_first_all_is_run_and_few_are_alive(orders: list[str], jobs: int, random) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - hypothesis's own class
    """The engine's loop with processes that end in any sequence."""
    root = grow(trials(orders))
    waiting = [(root, list(root.children))]
    children: dict[int, list[Prefix]] = {id(root): []}
    parent: dict[int, Prefix] = {}
    active: list[Prefix] = []
    live, ended, most = 1, 0, 1
    while True:
        start = next(
            (
                (node, pending, child)
                for node, pending in reversed(waiting)
                for child in pending
                if len(active) < jobs and may_start(child, live=live, root=root, jobs=jobs)
            ),
            None,
        )
        if start is not None and (not active or random.random() < 0.7):
            node, pending, child = start
            pending.remove(child)
            children[id(node)].append(child)
            parent[id(child)] = node
            active.append(child)
            live += 1
            most = max(most, live)
            continue
        if not active:
            break
        child = active.pop(random.randrange(len(active)))
        if child.children:
            waiting.append((child, list(child.children)))
            children[id(child)] = []
            continue
        ended += 1
        gone: Prefix | None = child
        while gone is not None:
            live -= 1
            above = parent.get(id(gone))
            if above is None:
                break
            children[id(above)].remove(gone)
            pending = next(pending for node, pending in waiting if node is above)
            if pending or children[id(above)]:
                break
            waiting = [item for item in waiting if item[0] is not above]
            gone = above

    assert ended == len(orders)
    assert live == 0
    assert most <= jobs + root.height
