from __future__ import annotations

import os
import platform

import msgspec
import pytest
from hypothesis import given, strategies as st

from reprocheck.engine.machine import alike, differences, named, refuse_unlike, this_machine
from reprocheck.errors import UsageError
from reprocheck.model import Machine, Record, Trial

HERE = Machine(
    host="a", cpu="EPYC", features="f1", cores=8, kernel="6.1", libc="glibc 2.36", python="cpython 3.12.1", driver="550"
)
text = st.sampled_from(["", "x", "y"])
machines = st.builds(
    Machine,
    host=text,
    cpu=text,
    features=text,
    cores=st.integers(1, 3),
    kernel=text,
    libc=text,
    python=text,
    gpus=st.sampled_from([(), ("GPU-1",), ("GPU-2",)]),
    gpu_models=st.sampled_from([(), ("H100",)]),
    driver=text,
)


def test_this_machine_is_what_the_system_says() -> None:
    found = this_machine({}, "cpython 3.12.1")
    assert found.host == platform.node()
    assert found.kernel == platform.release()
    assert found.cores == len(os.sched_getaffinity(0))
    assert found.cpu
    assert found.python == "cpython 3.12.1"


def test_which_box_it_is_makes_no_difference_of_kind() -> None:
    assert alike(HERE, msgspec.structs.replace(HERE, host="b", gpus=("GPU-2",)))


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("cpu", "Xeon", "CPU: EPYC on a, Xeon on b"),
        ("cores", 4, "usable cores: 8 on a, 4 on b"),
        ("gpu_models", ("H100",), "GPUs: none on a, H100 on b"),
        ("python", "cpython 3.12.2", "Python: cpython 3.12.1 on a, cpython 3.12.2 on b"),
        ("kernel", "6.2", "kernel: 6.1 on a, 6.2 on b"),
        ("libc", "glibc 2.40", "C library: glibc 2.36 on a, glibc 2.40 on b"),
        ("driver", "560", "GPU driver: 550 on a, 560 on b"),
        ("features", "f2", "CPU instruction sets: f1 on a, f2 on b"),
    ],
)
def test_every_other_fact_does(field: str, value: object, told: str) -> None:
    other = msgspec.structs.replace(HERE, host="b", **{field: value})
    assert named(HERE, other) == told


@given(machines, machines)
def test_differing_is_symmetric_and_nothing_differs_from_itself(one: Machine, other: Machine) -> None:
    assert not differences(one, one)
    assert differences(one, other) == {name: (a, b) for name, (b, a) in differences(other, one).items()}
    assert not any("" in values for values in differences(one, other).values()), "what is not known is no fact"


@given(machines)
def test_a_machine_survives_its_json(machine: Machine) -> None:
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


def test_a_record_from_another_kind_is_refused() -> None:
    record = Record(trial=Trial(order=("a",), repeat=0), effective_order=("a",), ok=True, machine=HERE)
    refuse_unlike(msgspec.structs.replace(HERE, host="b"), record)
    with pytest.raises(UsageError, match=r"another kind of machine \(usable cores: 4 on b, 8 on a\)"):
        refuse_unlike(msgspec.structs.replace(HERE, host="b", cores=4), record)
