"""The digest: equal for equal values however they lie in memory, different for every kind of small change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from reprocheck.worker.trace import digest

torch = pytest.importorskip("torch")

MASK = 2**64 - 1
DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
SHAPES = ((), (0,), (0, 3), (1,), (5, 7), (300, 301), (40_000, 2), (2, 40_000))


def reference(data: bytes, width: int) -> int:
    """The sum of words, from the definition."""
    step = min(width, 4)
    words = (int.from_bytes(data[i : i + step], "little", signed=True) for i in range(0, len(data), step))
    total = 0
    for position, word in enumerate(words):
        key = digest._odd(position % digest.BLOCK) * digest._multiplier(position // digest.BLOCK)
        total += word * key
    return total & MASK


def tensor_of(dtype: str, shape: tuple[int, ...]) -> Any:
    """A tensor of random bits (of valid values, for bool)."""
    kind = getattr(torch, dtype)
    width = torch.empty((), dtype=kind).element_size()
    generator = torch.Generator().manual_seed(1)
    raw = torch.randint(0, 2 if dtype == "bool" else 256, (*shape, width), dtype=torch.uint8, generator=generator)
    return raw.view(kind).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_definition(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = tensor_of(dtype, shape)
    data = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()

    assert int(digest.tensor_sum(tensor)) & MASK == reference(data, tensor.element_size())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 7), (300, 301), (40_000, 2), (2, 3, 20_000)], ids=str)
def test_strides_do_not_matter(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = tensor_of(dtype, shape).transpose(0, -1)
    assert not tensor.is_contiguous()

    assert digest.tensor_digest(tensor) == digest.tensor_digest(tensor.contiguous())
    assert digest.tensor_digest(tensor[::2]) == digest.tensor_digest(tensor[::2].contiguous())
    assert digest.tensor_digest(tensor[:0]) == digest.tensor_digest(tensor[:0].contiguous())


def test_expanded_tensors() -> None:
    tensor = torch.tensor([1.0, 2.0]).reshape(2, 1).expand(2, 50_000)

    assert digest.tensor_digest(tensor) == digest.tensor_digest(tensor.contiguous())


@pytest.mark.parametrize("size", [4, 700])
def test_lazy_conjugation_and_negation(size: int) -> None:
    tensor = torch.randn(size, size, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))

    for lazy in (tensor.conj(), tensor.conj().imag, tensor.conj().t()):
        plain = lazy.clone().resolve_conj().resolve_neg().contiguous()
        assert digest.tensor_digest(lazy) == digest.tensor_digest(plain)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int64", "complex128", "bool", "float16"])
def test_numpy_and_torch_agree(dtype: str) -> None:
    for shape in SHAPES:
        tensor = tensor_of(dtype, shape)
        array = tensor.numpy()
        assert digest.array_digest(array) == digest.tensor_digest(tensor)
        if array.ndim == 2:
            assert digest.array_digest(array.T) == digest.tensor_digest(tensor.t())


def changes(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The changes that XOR, sums and L1 norms miss, each made to a copy."""
    flat = array.reshape(-1)
    unsigned = f"u{array.itemsize}"
    found = {}
    swapped = flat.copy()
    swapped[[1, -2]] = swapped[[-2, 1]]
    found["swap"] = swapped.reshape(array.shape)
    found["transpose"] = np.ascontiguousarray(array.T)
    flipped = flat.copy()
    flipped[3] = -flipped[3]
    found["sign flip"] = flipped.reshape(array.shape)
    both = flat.copy()
    both[[3, 4]] = -both[[3, 4]]
    found["two sign flips"] = both.reshape(array.shape)
    found["all signs flipped"] = -array
    ulp = flat.copy()
    ulp[5] = np.nextafter(ulp[5], np.inf, dtype=array.dtype)
    found["one ulp"] = ulp.reshape(array.shape)
    pair = flat.copy()
    pair.view(unsigned)[[6, 7]] ^= 1
    found["equal pair changed together"] = pair.reshape(array.shape)
    moved = flat.copy()
    moved.view(unsigned)[8] += 1
    moved.view(unsigned)[9] -= 1
    found["sum of bits kept"] = moved.reshape(array.shape)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [16, 300])
def test_every_small_change_is_seen(dtype: str, size: int) -> None:
    array = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    digests = {name: digest.array_digest(changed) for name, changed in changes(array).items()}
    digests["unchanged"] = digest.array_digest(array)

    assert len(set(digests.values())) == len(digests), digests
    for name, changed in changes(array).items():
        assert digest.tensor_digest(torch.from_numpy(changed)) == digests[name]


def test_zeros_of_either_sign() -> None:
    zeros = torch.zeros(64)
    signs = zeros.clone()
    signs[10] = -0.0
    pairs = zeros.clone()
    pairs[[10, 20]] = -0.0

    assert len({digest.tensor_digest(item) for item in (zeros, signs, pairs, -zeros)}) == 4


def test_nan_payloads() -> None:
    plain = np.full(8, np.nan, np.float32)
    other = plain.copy()
    other.view(np.uint32)[3] ^= 1
    signalling = plain.copy()
    signalling.view(np.uint32)[3] = 0x7F800001

    assert len({digest.array_digest(item) for item in (plain, other, signalling)}) == 3
    assert digest.tensor_digest(torch.from_numpy(signalling)) == digest.array_digest(signalling)


def test_dtype_and_shape_count() -> None:
    data = np.arange(6, dtype=np.float32)

    assert (
        len(
            {
                digest.array_digest(item)
                for item in (data, data.reshape(2, 3), data.reshape(3, 2), data.view(np.int32), data.view(np.uint32))
            }
        )
        == 5
    )
    assert digest.array_digest(np.zeros((0, 3))) != digest.array_digest(np.zeros((3, 0)))


def test_numpy_only_dtypes() -> None:
    times = np.array(["2026-01-01", "2026-01-02"], "M8[s]")
    words = np.array(["ab", "cd"])
    records = np.zeros(3, [("a", "f4"), ("b", "i8"), ("c", "i1")])
    changed = records.copy()
    changed["c"][1] = 1

    assert digest.array_digest(times) != digest.array_digest(times[::-1])
    assert digest.array_digest(words) != digest.array_digest(words[::-1])
    assert digest.array_digest(records) != digest.array_digest(changed)
    assert digest.array_digest(np.array([1, None])) is None
    assert digest.array_digest(np.array(["a"], np.dtypes.StringDType())) is None
    assert digest.array_digest(np.float32(1.5)) == digest.array_digest(np.array(1.5, np.float32))


def test_what_fills_a_long_double_is_no_part_of_it() -> None:
    if np.finfo(np.longdouble).nmant != 63:
        pytest.skip("long double is not the x87 format here")
    value = np.array([1.5, -2.5], np.longdouble)
    dirty = value.copy()
    dirty.view(np.uint8).reshape(2, 16)[:, 10:] = 0xAB
    changed = np.array([1.5, np.nextafter(np.longdouble(-2.5), np.longdouble(0))], np.longdouble)

    assert digest.array_digest(dirty) == digest.array_digest(value)
    assert digest.array_digest(changed) != digest.array_digest(value)
    assert digest.array_digest(value.astype(np.clongdouble)) is not None


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_layouts_other_than_strided() -> None:
    dense = torch.eye(4)
    sparse, changed = dense.to_sparse(), (dense * 2).to_sparse()
    rows = dense.to_sparse_csr()

    assert digest.tensor_digest(sparse) != digest.tensor_digest(changed)
    assert digest.tensor_digest(rows) not in (None, digest.tensor_digest(sparse))
    assert digest.tensor_digest(torch.empty(3, device="meta")) is None


def test_parameters_and_subclasses() -> None:
    class Tagged(torch.Tensor):  # type: ignore[name-defined, misc]
        pass

    tensor = torch.ones(3)

    assert digest.tensor_digest(torch.nn.Parameter(tensor)) == digest.tensor_digest(tensor)
    assert digest.tensor_digest(tensor.as_subclass(Tagged)) == digest.tensor_digest(tensor)
    assert digest.tensor_digest(tensor.clone().requires_grad_()) == digest.tensor_digest(tensor)


def test_nothing_is_digested_for_a_tensor_without_values() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(3)

    assert digest.tensor_digest(fake) is None


@settings(max_examples=200, deadline=None)
@given(
    data=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40),
    at=st.integers(0, 39),
    other=st.integers(0, 2**32 - 1),
)
def test_a_change_of_one_word_is_always_seen(data: list[int], at: int, other: int) -> None:
    array = np.array(data, np.uint32)
    changed = array.copy()
    changed[at % len(data)] = other

    assert (digest.array_digest(array) == digest.array_digest(changed)) == bool((array == changed).all())


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 200))
def test_permutations_are_seen(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    array = random.integers(0, 4, size).astype(np.float32)
    permuted = random.permutation(array)

    assert (digest.array_digest(array) == digest.array_digest(permuted)) == bool((array == permuted).all())


def test_changed_top_bits_in_pairs_do_not_cancel() -> None:
    """What a plain multiplication of 64-bit words would miss: half of the keys' bits stay in play."""
    array = np.random.default_rng(3).standard_normal(64)
    seen = {digest.array_digest(array)}
    for i in range(64):
        for j in range(i):
            changed = array.copy()
            changed[[i, j]] = -changed[[i, j]]
            seen.add(digest.array_digest(changed))

    assert len(seen) == 1 + 64 * 63 // 2


def test_blocks_of_large_arrays_are_told_apart() -> None:
    array = np.zeros(4 * digest.BLOCK, np.float32)
    seen = set()
    for block in range(4):
        changed = array.copy()
        changed[block * digest.BLOCK + 7] = 1.0
        seen.add(digest.array_digest(changed))

    assert len(seen) == 4


class Grouped:
    """numpy under another name, so that the code path of devices (several blocks at once) is taken."""

    __name__ = "cupy"

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


@pytest.mark.parametrize("size", [10, digest.BLOCK, 3 * digest.BLOCK + 5, 70 * digest.BLOCK])
def test_devices_sum_several_blocks_at_once(size: int) -> None:
    import types

    class Array(np.ndarray[Any, Any]):
        device = types.SimpleNamespace(id=0)  # type: ignore[assignment]

    array = np.random.default_rng(0).standard_normal(size).astype(np.float32)

    # Devices wrap around without a word.
    with np.errstate(over="ignore"):
        total = digest.array_sum(Grouped(), array.view(Array))

    assert int(total) & MASK == int(digest.array_sum(np, array)) & MASK
