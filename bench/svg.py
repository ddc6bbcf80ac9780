"""A small writer of charts as SVG. The ground is transparent and the greys are readable on white and on black, because GitHub shows a
picture in both."""

import dataclasses
import math
from xml.sax.saxutils import escape

TEXT, FAINT, OURS, PEER, LIMIT, MARK = "#6e7781", "#8b949e55", "#e8590c", "#4c8bd0", "#8b949e", "#2da44e"
WIDTH, LABEL_WIDTH, VALUE_WIDTH = 880, 270, 130
ROW, BAR, TITLE, AXIS, GAP = 22, 13, 38, 36, 14
STYLE = (f"text{{font:12px system-ui,sans-serif;fill:{TEXT}}}.t{{font-weight:600;font-size:13px}}"
         ".e{text-anchor:end}.m{text-anchor:middle}")


@dataclasses.dataclass
class Bar:
    label: str
    value: float
    shown: str  # the value as text
    kind: str = "peer"  # ours, peer or limit
    low: float = None
    high: float = None


@dataclasses.dataclass
class Dots:
    """Several points of one subject on one line, such as percentiles."""

    label: str
    points: list  # (value, name)
    shown: str  # the values as text
    kind: str = "peer"


@dataclasses.dataclass
class Panel:
    title: str
    unit: str
    rows: list
    log: bool = False
    target: float = None
    target_name: str = ""


class Scale:
    """Values to x positions."""

    def __init__(self, values, log, left, right):
        self.log, self.left, self.right = log, left, right
        if log:
            self.low = 10 ** math.floor(math.log10(min(values)))
            self.high = 10 ** math.ceil(math.log10(max(values)))
            if self.high == self.low:
                self.high *= 10
        else:
            self.low, self.high = 0, nice_above(max(values))

    def x(self, value):
        if self.log:
            share = (math.log10(max(value, self.low)) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.left + min(1, share) * (self.right - self.left), 1)

    def ticks(self):
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            return [10.0 ** power for power in range(first, last + 1)]
        return [self.high * part / 4 for part in range(5)]


def nice_above(value):
    """A round number that four ticks divide well, at least the value."""
    if value <= 0:
        return 1
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * power >= value)


def compact(value):
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _values(panel):
    found = [panel.target] if panel.target else []
    for row in panel.rows:
        found += [value for value, _ in row.points] if isinstance(row, Dots) else [row.value, row.low, row.high]
    return [value for value in found if value is not None and value > 0]


def _colour(kind):
    return {"ours": OURS, "limit": LIMIT}.get(kind, PEER)


def _bar(row, y, scale):
    middle, top = y + ROW / 2, y + (ROW - BAR) / 2
    end = scale.x(row.value)
    out = [f'<rect x="{scale.left}" y="{top}" width="{max(1, round(end - scale.left, 1))}" height="{BAR}" fill="{_colour(row.kind)}"/>']
    furthest = end
    if row.low is not None and row.high is not None and row.high > row.low:
        first, furthest = scale.x(row.low), max(end, scale.x(row.high))
        out.append(f'<path d="M{first} {middle}H{scale.x(row.high)}M{first} {middle - 4}v8M{scale.x(row.high)} {middle - 4}v8" '
                   f'stroke="{TEXT}" fill="none"/>')
    out.append(f'<text x="{furthest + 6}" y="{middle + 4}">{escape(row.shown)}</text>')
    return out


def _dots(row, y, scale):
    middle = y + ROW / 2
    places = [scale.x(value) for value, _ in row.points]
    out = [f'<path d="M{min(places)} {middle}H{max(places)}" stroke="{_colour(row.kind)}" stroke-width="2"/>']
    for place, (value, name) in zip(places, row.points):
        out.append(f'<circle cx="{place}" cy="{middle}" r="4.5" fill="{_colour(row.kind)}">'
                   f"<title>{escape(name)}: {value:g}</title></circle>")
    out.append(f'<text x="{max(places) + 9}" y="{middle + 4}">{escape(row.shown)}</text>')
    return out


def _panel(panel, y, values):
    """The parts of one panel, with a scale for these values, and where the next begins."""
    scale = Scale(values, panel.log, LABEL_WIDTH, WIDTH - VALUE_WIDTH)
    bottom = y + TITLE + ROW * len(panel.rows)
    out = [f'<text class="t" x="0" y="{y + 14}">{escape(panel.title)}</text>']
    for tick in scale.ticks():
        x = scale.x(tick)
        out.append(f'<path d="M{x} {y + TITLE}V{bottom}" stroke="{FAINT}"/>')
        out.append(f'<text class="m" x="{x}" y="{bottom + 15}">{compact(tick)}</text>')
    name = f"{panel.unit}, log scale" if panel.log else panel.unit
    out.append(f'<text class="m" x="{(scale.left + scale.right) / 2}" y="{bottom + 30}">{escape(name)}</text>')
    for index, row in enumerate(panel.rows):
        top = y + TITLE + ROW * index
        out.append(f'<text class="e" x="{LABEL_WIDTH - 8}" y="{top + ROW / 2 + 4}">{escape(row.label)}</text>')
        out += _dots(row, top, scale) if isinstance(row, Dots) else _bar(row, top, scale)
    if panel.target:
        x = scale.x(panel.target)
        out.append(f'<path d="M{x} {y + TITLE - 4}V{bottom}" stroke="{MARK}" stroke-width="1.5" stroke-dasharray="4 3"/>')
        out.append(f'<text class="m" x="{x}" y="{y + TITLE - 8}" style="fill:{MARK}">{escape(panel.target_name)}</text>')
    return out, bottom + AXIS + GAP


def chart(title, panels, one_scale=False):
    """The panels below each other, on one scale if asked; those without a row are left out. None if nothing is left."""
    panels = [panel for panel in panels if panel.rows and _values(panel)]
    if not panels:
        return None
    parts, y = [], 4
    together = [value for panel in panels for value in _values(panel)]
    for panel in panels:
        drawn, y = _panel(panel, y, together if one_scale else _values(panel))
        parts += drawn
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {round(y)}" width="{WIDTH}" height="{round(y)}" '
            f'role="img"><title>{escape(title)}</title><style>{STYLE}</style>\n' + "\n".join(parts) + "\n</svg>\n")
