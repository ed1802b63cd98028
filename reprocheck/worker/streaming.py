"""A large array's bytes a part at a time, in C order.

Saving one that is not contiguous, of the other byte order, or on a device takes a copy of it. Taken whole, that copy
would double what the workload needs and might not fit; taken in parts, it is `PART` bytes at a time.
"""

__all__ = ["PART", "parts"]

PART = 8 << 20


def parts(array, nbytes, flat):
    """Yield flat byte views that together are `array` (anything with `shape` and slices), about `PART` bytes each.

    `flat(part)` gives the bytes of a part as they are stored, as `(view, owner)`; a view is valid until the next one.
    """
    if nbytes <= PART or not len(array.shape):
        view, owner = flat(array)
        yield view
        del owner
        return
    rows = array.shape[0]
    row_bytes = nbytes // rows
    if row_bytes > PART:
        for row in range(rows):
            yield from parts(array[row], row_bytes, flat)
        return
    step = PART // row_bytes
    for start in range(0, rows, step):
        view, owner = flat(array[start : start + step])
        yield view
        # One part at a time, not two.
        del view, owner
