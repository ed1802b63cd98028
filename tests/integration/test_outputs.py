"""Outputs of every kind: what is stored is what the workload had, byte for byte, under its own name and dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reprocheck.compare.inputs import open_outputs
from reprocheck.errors import UsageError
from reprocheck.model import Output, Study
from reprocheck.store.run import Run
from tests.conftest import Lab


def outputs(lab: Lab, body: str, **options: Any) -> tuple[Study, dict[str, Output]]:
    lab.write(a="", b="", work=body)
    study = lab.check(**options)
    assert study.verdict == "identical", study.headline
    return study, {output.name: output for output in Run(Path(study.run_dir)).records()[0].outputs}


def stored(study: Study, name: str) -> bytes:
    source = open_outputs(Path(study.run_dir))[name]
    reader = source.open()
    return np.ascontiguousarray(reader.read(0, source.size)).tobytes()


def test_python_values_and_containers(lab: Lab) -> None:
    _, found = outputs(
        lab,
        """
        import array, collections, dataclasses, decimal
        Point = collections.namedtuple("Point", "x y")
        @dataclasses.dataclass
        class Pair:
            left: float
            right: list
        def run():
            return {
                "int": 3, "big": 2**70, "bool": True, "float": 0.1, "complex": 1j, "none": None,
                "text": "é", "bytes": b"ab",
                "nested": {"list": [1.0, (2.0, 3.0)], 4: 5.0}, "point": Point(1.0, 2.0), "pair": Pair(1.0, [2.0]),
                "array": array.array("f", [1, 2]), "view": memoryview(b"xyz"), "decimal": decimal.Decimal("1.50"),
            }
        """,
    )

    dtypes = {name: (output.dtype, output.shape) for name, output in found.items()}
    assert dtypes == {
        "int": ("int64", ()),
        "big": ("int", (22,)),
        "bool": ("bool", ()),
        "float": ("float64", ()),
        "complex": ("complex128", ()),
        "none": ("none", (0,)),
        "text": ("str", (2,)),
        "bytes": ("bytes", (2,)),
        "nested.list[0]": ("float64", ()),
        "nested.list[1][0]": ("float64", ()),
        "nested.list[1][1]": ("float64", ()),
        "nested[4]": ("float64", ()),
        "point.x": ("float64", ()),
        "point.y": ("float64", ()),
        "pair.left": ("float64", ()),
        "pair.right[0]": ("float64", ()),
        "array": ("float32", (2,)),
        "view": ("uint8", (3,)),
        "decimal": ("str", (4,)),
    }


def test_a_name_recorded_again_is_numbered(lab: Lab) -> None:
    _, found = outputs(
        lab,
        "from reprocheck import record\ndef run():\n    for step in range(3): record('loss', float(step))\n",
    )

    assert list(found) == ["loss", "loss#1", "loss#2"]


def test_record_sees_the_value_as_it_is_now(lab: Lab) -> None:
    study, _ = outputs(
        lab,
        """
        import numpy as np
        from reprocheck import record
        def run():
            x = np.zeros(3)
            record("before", x)
            x += 1
            record("after", x)
        """,
    )

    assert stored(study, "before") == bytes(24)
    assert stored(study, "after") == np.ones(3).tobytes()


def test_numpy(lab: Lab) -> None:
    study, found = outputs(
        lab,
        """
        import numpy as np
        def run():
            base = np.arange(24, dtype=np.float32).reshape(4, 6)
            dtypes = ["bool", "int8", "uint16", "int64", "uint64", "float16", "float64", "complex64", "complex128",
                      "longdouble"]
            return {
                **{name: np.arange(3).astype(name) for name in dtypes},
                "transposed": base.T, "strided": base[::2, ::3], "reversed": base[::-1],
                "fortran": np.asfortranarray(base),
                "zero_dim": np.float64(2.5), "empty": np.empty((3, 0), np.int32), "swapped": base.astype(">f4"),
                "masked": np.ma.array([1.0, 2.0], mask=[True, False]),
                "structured": np.array([(1, 2.0)], dtype=[("i", "i4"), ("f", "f8")]),
                "date": np.array(["2026-12-01"], dtype="datetime64[D]"), "letters": np.array(["ab", "c"]),
            }
        """,
    )

    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert stored(study, "transposed") == base.T.tobytes()
    assert found["transposed"].shape == (6, 4)
    assert stored(study, "strided") == base[::2, ::3].tobytes()
    assert stored(study, "reversed") == base[::-1].tobytes()
    assert stored(study, "fortran") == base.tobytes()
    assert stored(study, "swapped") == base.tobytes()
    assert (found["zero_dim"].dtype, found["zero_dim"].shape) == ("float64", ())
    assert found["empty"].shape == (3, 0)
    assert {"masked.data", "masked.mask", "structured.i", "structured.f"} <= set(found)
    assert found["date"].dtype == "datetime64[D]"
    assert found["longdouble"].shape == (3,)


def test_torch(lab: Lab) -> None:
    pytest.importorskip("torch")
    study, found = outputs(
        lab,
        """
        import torch
        def run():
            x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
            layer = torch.nn.Linear(2, 1, bias=False)
            torch.nn.init.ones_(layer.weight)
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
            dtypes = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex32",
                      "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                      "uint16"]
            return {
                **{name: x.to(getattr(torch, name)) for name in dtypes},
                "transposed": x.T, "expanded": torch.ones(1).expand(4), "scalar": torch.tensor(2.0),
                "empty": torch.empty(0, 3),
                "grad": layer.weight, "conj": torch.tensor([1 + 2j]).conj(),
                "neg": torch.tensor([1 + 2j]).conj().imag,
                "sparse": x.to_sparse(), "csr": x.to_sparse_csr(),
                "quantised": torch.quantize_per_tensor(x, 0.5, 1, torch.qint8),
                "state": layer.state_dict(), "model": layer,
                "optimizer": optimizer, "size": x.shape, "kind": x.dtype,
            }
        """,
        repeat=1,
    )

    assert stored(study, "transposed") == np.arange(6, dtype=np.float32).reshape(2, 3).T.tobytes()
    assert stored(study, "expanded") == np.ones(4, np.float32).tobytes()
    assert stored(study, "conj") == np.array([1 - 2j], np.complex64).tobytes()
    assert stored(study, "neg") == np.array([-2], np.float32).tobytes()
    assert (
        stored(study, "bfloat16") == (np.arange(6, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    )
    assert {"sparse.indices", "sparse.values", "csr.crow_indices", "csr.col_indices", "csr.values"} <= set(found)
    assert {"quantised.int_repr", "quantised.scale", "quantised.zero_point", "state.weight", "model.weight"} <= set(
        found
    )
    assert found["optimizer.param_groups[0].lr"].dtype == "float64"
    assert found["grad"].python == "torch.nn.Parameter"


def test_meta_tensor_is_an_error_that_names_it(lab: Lab) -> None:
    pytest.importorskip("torch")
    lab.write(a="", b="", work="import torch\ndef run():\n    return {'ghost': torch.empty(2, device='meta')}")

    with pytest.raises(UsageError, match="output `ghost` is a tensor on the meta device"):
        lab.check()


def test_dlpack_without_torch_or_numpy(lab: Lab) -> None:
    """An object with nothing but `__dlpack__`: here a wrapper that hides numpy's array until it is asked."""
    study, found = outputs(
        lab,
        """
        import sys
        class Foreign:
            def __init__(self, array): self._array = array
            def __dlpack__(self, **kwargs): return self._array.__dlpack__()
            def __dlpack_device__(self): return self._array.__dlpack_device__()
        def run():
            import numpy
            dense, turned = numpy.arange(6.0).reshape(2, 3), numpy.arange(6, dtype="i4").reshape(2, 3).T
            hidden = sys.modules.pop("numpy")
            return {"dense": Foreign(dense), "turned": Foreign(turned)}
        """,
    )

    assert (found["dense"].dtype, found["dense"].shape) == ("float64", (2, 3))
    assert (found["turned"].dtype, found["turned"].shape) == ("int32", (3, 2))
    assert stored(study, "turned") == np.arange(6, dtype="i4").reshape(2, 3).T.tobytes()


def test_record_outside_a_trial_returns_its_value() -> None:
    from reprocheck import record

    assert record("x", 3) == 3


def test_safetensors_library_reads_our_objects(lab: Lab) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    study, found = outputs(lab, "import numpy as np\ndef run(): return {'x': np.arange(6.0).reshape(2, 3)}")

    path = Run(Path(study.run_dir)).objects.path(found["x"].digest)
    assert np.array_equal(safetensors.load_file(path)["value"], np.arange(6.0).reshape(2, 3))


def test_large_arrays_that_must_be_copied_are_saved_in_parts(lab: Lab) -> None:
    pytest.importorskip("torch")
    study, found = outputs(
        lab,
        """
        import resource
        import numpy as np
        import torch
        from reprocheck import record

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        def run():
            base = np.arange(9 << 21, dtype=np.float64).reshape(9, 1 << 10, 1 << 11)  # 144 MiB
            tensor = torch.from_numpy(base)
            (torch.ones(9, 9, 999).permute(2, 0, 1) + 1).contiguous()  # whatever is lazy
            before = peak()
            record("turned", base.transpose(2, 1, 0))
            record("one_row", base.reshape(1, -1)[:, ::2])
            record("matrix", np.matrix(base[0], copy=False).T)
            record("tensor", tensor.permute(1, 2, 0))
            record("conjugate", torch.view_as_complex(tensor.reshape(-1, 2)).conj())
            record("swapped", base[:2].view(base.dtype.newbyteorder()))
            return {"extra": 0.0 if peak() - before < 96 else peak() - before}
        """,
        repeat=1,
        max_repeat=1,
        observer=False,
        imports=["a"],
        presence=True,
    )
    base = np.arange(9 << 21, dtype=np.float64).reshape(9, 1 << 10, 1 << 11)
    expected = {
        "turned": base.transpose(2, 1, 0),
        "one_row": base.reshape(1, -1)[:, ::2],
        "matrix": base[0].T,
        "tensor": base.transpose(1, 2, 0),
        "conjugate": base.reshape(-1).view(np.complex128).conj(),
        "swapped": base[:2].byteswap(),
    }
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype.name, array.shape)
        assert found[name].nbytes == array.nbytes
        assert stored(study, name) == np.ascontiguousarray(array).tobytes(), name
    assert stored(study, "extra") == np.float64(0.0).tobytes(), "no second copy of what is saved: that were 144 MiB"


def test_a_container_that_contains_itself_is_named_shortly(lab: Lab) -> None:
    with pytest.raises(UsageError) as caught:
        outputs(lab, "def run():\n    x = []\n    x.append(x)\n    return {'loop': x}\n")

    assert "output `loop[0][0][0]" in str(caught.value)
    assert "…` is nested more than 64 levels deep, or contains itself" in str(caught.value)
    assert len(str(caught.value)) < 250
