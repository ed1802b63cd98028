"""Digests of text before `hashlib` may be loaded (it maps libcrypto).

Real SHA-256 (FIPS 180-4), so a value digested early and one digested late are comparable; the slow path costs
about 0.1 ms for 64 bytes and runs only for the few values that changed.
"""

import sys

__all__ = ["data", "numbers", "short"]

_known: dict[str, str] = {}
_constants: list[int] = []


def short(text):
    """`sha256:` and 16 hexadecimal digits for a string; surrogates are kept apart."""
    found = _known.get(text)
    if found is None:
        found = _known[text] = data(text.encode("utf-8", "surrogatepass"))
    return found


def data(raw):
    """`sha256:` and 16 hexadecimal digits for bytes."""
    hashlib = sys.modules.get("hashlib")
    if hashlib is not None and hasattr(hashlib, "sha256"):
        return "sha256:" + hashlib.sha256(raw).hexdigest()[:16]
    return "sha256:" + _sha256(raw)[:16]


def _primes(number):
    found = []
    candidate = 2
    while len(found) < number:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found


def _root_bits(value, degree):
    """The first 32 bits of the fraction of the square or cube root of `value`, by integer bisection."""
    target = value << (32 * degree)
    low, high = 0, 1 << 40
    while low + 1 < high:
        middle = (low + high) // 2
        if middle**degree <= target:
            low = middle
        else:
            high = middle
    return low & 0xFFFFFFFF


def _sha256(raw):
    if not _constants:
        _constants.extend(_root_bits(prime, 3) for prime in _primes(64))
    state = [_root_bits(prime, 2) for prime in _primes(8)]
    size = len(raw)
    raw += b"\x80" + b"\0" * ((55 - size) % 64) + (8 * size).to_bytes(8, "big")
    for start in range(0, len(raw), 64):
        words = [int.from_bytes(raw[at : at + 4], "big") for at in range(start, start + 64, 4)]
        for at in range(16, 64):
            x, y = words[at - 15], words[at - 2]
            x = (x >> 7 | x << 25) ^ (x >> 18 | x << 14) ^ x >> 3
            y = (y >> 17 | y << 15) ^ (y >> 19 | y << 13) ^ y >> 10
            words.append((words[at - 16] + (x & 0xFFFFFFFF) + words[at - 7] + (y & 0xFFFFFFFF)) & 0xFFFFFFFF)
        a, b, c, d, e, f, g, h = state
        for word, constant in zip(words, _constants):
            s = (e >> 6 | e << 26) ^ (e >> 11 | e << 21) ^ (e >> 25 | e << 7)
            first = h + (s & 0xFFFFFFFF) + ((e & f) ^ (~e & g)) + constant + word
            s = (a >> 2 | a << 30) ^ (a >> 13 | a << 19) ^ (a >> 22 | a << 10)
            second = (s & 0xFFFFFFFF) + ((a & b) ^ (a & c) ^ (b & c))
            h, g, f, e, d, c, b, a = g, f, e, (d + first) & 0xFFFFFFFF, c, b, a, (first + second) & 0xFFFFFFFF
        state = [(x + y) & 0xFFFFFFFF for x, y in zip(state, (a, b, c, d, e, f, g, h))]
    return "".join("%08x" % word for word in state)


def numbers(values):
    """16 hexadecimal digits for a tuple of integers (a generator's state).

    A 64-bit FNV-1a over whole words, folded: not secret, and about 0.1 ms for the 625 words of the Mersenne Twister.
    """
    folded = 0xCBF29CE484222325
    for value in values:
        folded = ((folded ^ (value & 0xFFFFFFFF)) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "fnv1a:%016x" % folded
