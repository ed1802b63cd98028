"""What MKL, oneDNN and CUPTI say of a kernel, without what differs in every run: pointers, times, thread numbers.

Formats: https://www.intel.com/content/www/us/en/docs/onemkl/developer-guide-linux/current/using-onemkl-verbose-mode.html
and https://uxlfoundation.github.io/oneDNN/dev_guide_verbose.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["Reader"]

_MKL_CALL = re.compile(r"MKL_VERBOSE (?P<routine>\w+)\((?P<arguments>[^)]*)\) \S+ (?P<settings>.*)")
_MKL_HEAD = re.compile(
    r"MKL_VERBOSE (?:Intel\(R\) )?(?:one)?MKL (?P<major>[\d.]+)(?: Update (?P<update>\d+))?.*?"
    r"Product build (?P<build>\d+)(?:.* (?P<threads>\w+))?$"
)
_ISA = re.compile(r"Advanced Vector Extensions \S+|AVX\S*|SSE\S*")
_DNNL = re.compile(r"(?:onednn|dnnl)_verbose,(?:v1,)?(?:\d+\.\d+,)?(?P<rest>.*)")
_POINTER = re.compile(r"^0x[0-9a-fA-F]+$")
_TEMPLATE = 3


class Reader:
    """Turns lines of one trial into kernels; remembers which version of a library has introduced itself."""

    def __init__(self) -> None:
        self._mkl = "MKL"
        self._onednn = "oneDNN"
        self._isa = ""

    def kernels(self, lines: Iterable[str]) -> tuple[str, ...]:
        """The kernels that these lines tell of, in order; lines that are none are left out."""
        return tuple(found for line in lines if (found := self._kernel(line)) is not None)

    def _kernel(self, line: str) -> str | None:
        if line.startswith("cuda "):
            return line
        call = _MKL_CALL.match(line)
        if call is not None:
            arguments = [part for part in call["arguments"].split(",") if not _POINTER.match(part)]
            settings = [part for part in call["settings"].split() if not part.startswith("TID:")]
            return f"{self._mkl}: {call['routine']}({','.join(arguments)}) {' '.join(settings)}"
        head = _MKL_HEAD.match(line)
        if head is not None:
            update = f".{head['update']}" if head["update"] else ""
            isa = _ISA.search(line)
            extra = [head["build"], *([isa[0]] if isa else []), *([head["threads"]] if head["threads"] else [])]
            self._mkl = (
                f"MKL {head['major'].removesuffix('.0') if update else head['major']}{update} ({', '.join(extra)})"
            )
            return None
        dnnl = _DNNL.match(line)
        return self._primitive(dnnl["rest"]) if dnnl is not None else None

    def _primitive(self, text: str) -> str | None:
        """OneDNN's line: `primitive,exec,ENGINE,KIND,IMPLEMENTATION,…,PROBLEM,TIME`, or information about itself."""
        fields = text.split(",")
        if fields[0] == "primitive":
            fields = fields[1:]
        if fields[0] == "info":
            if fields[1].startswith("oneDNN v"):
                self._onednn = fields[1].partition(" (")[0]
            elif fields[1] == "cpu" and len(fields) > 2 and fields[2].startswith("isa:"):
                self._isa = fields[2][4:]
            return None
        if not fields[0].startswith("exec") or len(fields) <= _TEMPLATE:
            return None
        isa = f" ({self._isa})" if self._isa else ""
        return f"{self._onednn}{isa}: {','.join(field for field in fields[1:-1] if field)}"
