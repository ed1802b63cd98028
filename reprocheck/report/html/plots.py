"""The pictures of a report, drawn by matplotlib. Without it there are none, and the page says so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from reprocheck.model import Struct
from reprocheck.report.html.maps import Map
from reprocheck.report.html.svg import COLOURS, inline, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Pictures", "Span", "Track", "available"]

PANEL = "#14161b"
"""Behind the colours of a map, in light and dark alike."""


def available() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


class Span(Struct, frozen=True, kw_only=True):
    """A stretch of a loading timeline."""

    start: float
    stop: float
    kind: str
    """`import` or `workload`."""
    label: str


class Track(Struct, frozen=True, kw_only=True):
    """One order's timeline: seconds since the interpreter began with the trial."""

    label: str
    spans: tuple[Span, ...]
    libraries: tuple[float, ...] = ()
    changes: tuple[float, ...] = ()


class Pictures:
    """Draws for one page: every figure gets ids of its own."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix` keeps the ids of several pages in one document apart."""
        self._prefix = prefix
        self._count = 0

    def histogram(self, buckets: Mapping[str, int], *, label: str) -> Markup:
        """Elements per distance in ULP, in powers of two; a logarithmic count where counts are far apart."""
        names, counts = _filled(buckets)
        with self._figure(5.0, 2.3, label) as (figure, done):
            axes = figure.add_subplot()
            axes.bar(range(len(names)), counts, width=0.82, color=COLOURS["g1"])
            if max(counts) > 50 * min(count for count in counts if count):
                _logarithmic(axes)
                axes.set_ylim(bottom=0.7)
            step = max(1, math.ceil(len(names) / 7))
            axes.set_xticks(range(0, len(names), step), [_short(name) for name in names[::step]])
            axes.set_xlabel("distance in ULP")
            axes.set_ylabel("elements")
        return done[0]

    def difference(self, found: Map, *, label: str) -> Markup:
        """A map of differences: a heat map of a matrix, a profile of a vector."""
        return self._profile(found, label) if found.values.ndim == 1 else self._heat(found, label)

    def _profile(self, found: Map, label: str) -> Markup:
        with self._figure(5.0, 2.3, label) as (figure, done):
            axes = figure.add_subplot()
            size = found.shape[0]
            edges = np.arange(len(found.values) + 1) * size / len(found.values)
            values = np.where(np.isnan(found.values), 0.0, found.values)
            axes.stairs(values, edges, fill=True, color=COLOURS["g1"], linewidth=0)
            lost = np.flatnonzero(np.isnan(found.values))
            top = float(values.max()) or 1.0
            for at in lost[:200]:
                axes.plot([(edges[at] + edges[at + 1]) / 2], [top], marker="v", markersize=5, color=COLOURS["bad"])
            nonzero = values[values > 0]
            if len(nonzero) and nonzero.max() > 50 * nonzero.min():
                _logarithmic(axes)
            axes.set_xlim(0, size)
            axes.locator_params(axis="x", nbins=6)
            axes.set_xlabel("element")
            axes.set_ylabel(_unit_text(found.unit))
        return done[0]

    def _heat(self, found: Map, label: str) -> Markup:
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        height, width = found.values.shape
        rows, columns = found.shape
        tall = min(3.4, max(1.5, 3.6 * min(rows / columns, 1.0) + 0.3))
        with self._figure(5.0, tall, label) as (figure, done):
            from matplotlib import colormaps

            axes = figure.add_subplot()
            axes.set_facecolor(PANEL)
            colours = LinearSegmentedColormap.from_list("differences", colormaps["inferno"](np.linspace(0.3, 1.0, 64)))
            finite = found.values[found.values > 0]
            top = float(np.nanmax(finite)) if len(finite) else 1.0
            low = float(np.nanmin(finite)) if len(finite) else 1.0
            norm = LogNorm(low, top if top > low else low * 2)
            masked: NDArray[Any] = np.ma.masked_where(~(found.values > 0), found.values)
            aspect: Any = "equal" if 0.2 < rows / columns < 2.5 else "auto"
            image = axes.imshow(
                masked,
                cmap=colours,
                norm=norm,
                interpolation="none",
                extent=(0, columns, rows, 0),
                aspect=aspect,
            )
            lost = np.argwhere(np.isnan(found.values))[:400]
            if len(lost):
                axes.plot(
                    (lost[:, 1] + 0.5) * columns / width,
                    (lost[:, 0] + 0.5) * rows / height,
                    linestyle="none",
                    marker="x",
                    markersize=4,
                    color=COLOURS["bad"],
                )
            axes.spines[:].set_visible(False)
            axes.locator_params(nbins=5, integer=True)
            if found.unit != "differs" and len(finite):
                ticks = [low, math.sqrt(low * top), top] if low < top < 100 * low else None
                bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.05, format=_plain, ticks=ticks)
                bar.outline.set_visible(False)
                bar.set_label(_unit_text(found.unit), color=COLOURS["muted"])
                bar.minorticks_off()
        return done[0]

    def overview(self, cells: NDArray[np.uint8], *, outputs: int, label: str) -> Markup:
        """Orders down, outputs across; 0 is the reference's bits, 1–6 other groups', 7 mixed, 8 nothing."""
        from matplotlib.colors import ListedColormap

        palette = ["#9dbbe0", "#e7a35c", "#67b88c", "#b58fd4", "#d0b636", "#dd7a82", "#9aa4b1", "#14161b", "#ffffff"]
        orders = cells.shape[0]
        with self._figure(8.6, min(3.2, 0.6 + 0.16 * orders), label) as (figure, done):
            axes = figure.add_subplot()
            axes.imshow(
                cells,
                cmap=ListedColormap(palette),
                vmin=0,
                vmax=8,
                interpolation="none",
                aspect="auto",
                extent=(0, outputs, orders + 0.5, 0.5),
            )
            axes.set_xlabel("output, in the order in which the workload produced them")
            axes.set_ylabel("order")
            axes.locator_params(axis="y", nbins=6, integer=True)
            axes.spines[:].set_visible(False)
        return done[0]

    def timeline(self, tracks: Sequence[Track], *, label: str) -> Markup:
        """What was loaded when, one row an order; marks where native libraries came in and settings changed."""
        with self._figure(8.6, 0.75 + 0.62 * len(tracks), label) as (figure, done):
            axes = figure.add_subplot()
            end = max((span.stop for track in tracks for span in track.spans), default=1.0)
            for row, track in enumerate(tracks):
                for span in track.spans:
                    axes.broken_barh(
                        [(span.start, max(span.stop - span.start, end / 150))],
                        (row - 0.24, 0.48),
                        facecolors=COLOURS[span.kind],
                        edgecolors=COLOURS["panel"],
                        linewidth=0.8,
                    )
                    if span.stop - span.start > end * 0.012 * (len(span.label) + 1):
                        axes.text(
                            (span.start + span.stop) / 2, row, span.label, ha="center", va="center", color="#ffffff"
                        )
                axes.vlines(track.libraries, row - 0.40, row - 0.28, colors=COLOURS["library"], linewidth=0.8)
                axes.plot(
                    track.changes,
                    [row + 0.36] * len(track.changes),
                    linestyle="none",
                    marker="^",
                    markersize=5,
                    color=COLOURS["change"],
                    markeredgecolor="none",
                )
            axes.set_yticks(range(len(tracks)), [track.label for track in tracks])
            axes.set_ylim(len(tracks) - 0.45, -0.55)
            axes.set_xlim(0, end * 1.01)
            axes.set_xlabel("seconds")
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
        return done[0]

    def bars(
        self, rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str], *, unit: str, label: str
    ) -> Markup:
        """Stacked horizontal bars, one row each, with a legend."""
        with self._figure(8.6, 0.9 + 0.34 * len(rows), label) as (figure, done):
            axes = figure.add_subplot()
            left = np.zeros(len(rows))
            for number, name in enumerate(names):
                widths = np.array([values[number] for _, values in rows], float)
                colour = COLOURS[("g0", "g1", "g2", "g3")[number % 4]]
                axes.barh(range(len(rows)), widths, left=left, height=0.6, color=colour, label=name)
                left += widths
            axes.set_yticks(range(len(rows)), [text for text, _ in rows])
            axes.invert_yaxis()
            axes.set_xlabel(unit)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            figure.legend(loc="outside upper right", ncols=len(names))
        return done[0]

    def trend(self, points: Sequence[tuple[float, float, bool]], *, label: str) -> Markup:
        """Seconds before the last run, share of differing outputs in per cent, and whether that run agreed."""
        with self._figure(4.2, 1.0, label) as (figure, done):
            axes = figure.add_subplot()
            longest = max(point[0] for point in points)
            unit, seconds = next((item for item in _UNITS if longest >= 2 * item[1]), _UNITS[-1])
            points = [(before / seconds, share, agreed) for before, share, agreed in points]
            x, y = [point[0] for point in points], [point[1] for point in points]
            axes.plot(x, y, color=COLOURS["muted"], linewidth=1)
            for good, colour in ((True, "g2"), (False, "bad")):
                chosen = [(at, value) for at, value, agreed in points if agreed is good]
                axes.plot(
                    [at for at, _ in chosen],
                    [value for _, value in chosen],
                    linestyle="none",
                    marker="o",
                    markersize=4,
                    markeredgecolor="none",
                    color=COLOURS[colour],
                )
            axes.set_ylim(-8, max(20.0, max(y) * 1.2))
            axes.locator_params(nbins=3)
            axes.set_ylabel("% differ")
            axes.set_xlabel(f"{unit} before the last run")
            axes.invert_xaxis()
        return done[0]

    @contextmanager
    def _figure(self, width: float, height: float, label: str) -> Iterator[tuple[Figure, list[Markup]]]:
        """A figure to draw on; when the block ends, its SVG is in the list."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        done: list[Markup] = []
        self._count += 1
        with mpl.rc_context(settings()):
            figure = Figure(figsize=(width, height), layout="constrained")
            yield figure, done
            done.append(inline(figure, prefix=f"{self._prefix}f{self._count}-", label=label))


def _filled(buckets: Mapping[str, int]) -> tuple[list[str], list[int]]:
    """The buckets from the first to the last one in use, empty ones between them included."""
    names = ["1", "2"] + [f"{(1 << power - 1) + 1}-{1 << power}" for power in range(2, 65)]
    used = [number for number, name in enumerate(names) if buckets.get(name)]
    chosen = names[used[0] : used[-1] + 1] if used else ["1"]
    return chosen, [buckets.get(name, 0) for name in chosen]


def _short(bucket: str) -> str:
    """`1,025-2,048` as `≤2048`, and large ones as a power of two."""
    last = int(bucket.rpartition("-")[2])
    if last > 512:
        return "2" + str(last.bit_length() - 1).translate(_RAISED)
    return bucket if last <= 2 else f"≤{last}"


def _logarithmic(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(_plain))
    axes.yaxis.set_minor_locator(NullLocator())


_UNITS = (("days", 86400), ("hours", 3600), ("minutes", 60), ("seconds", 1))
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _plain(value: float, _position: object = None) -> str:
    """A power of ten as text: matplotlib's own are formulas."""
    if not value > 0:
        return "0"
    exponent = round(math.log10(value))
    if not math.isclose(value, 10.0**exponent, rel_tol=1e-6):
        return f"{value:.3g}"
    return f"{value:g}" if -2 <= exponent <= 3 else "10" + str(exponent).translate(_RAISED)


def _unit_text(unit: str) -> str:
    return {"ulp": "largest ULP distance", "difference": "largest difference", "differs": "differs"}[unit]
