"""Lines or points over a common grid, as SVG that suits light and dark pages."""

from html import escape
from math import ceil, floor, log2, log10

Lines = dict[str, list[tuple[float, float]]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 380, 60, 20, 36, 44


def plot(x_title: str, y_title: str, lines: Lines, log_x: bool = False, as_points: bool = False) -> str:
    points = [point for line in lines.values() for point in line]
    (x_low, x_high), (y_low, y_high) = [(min(v), max(v)) for v in zip(*points)]
    x_ticks = log_ticks(x_low, x_high) if log_x else round_ticks(x_low, x_high)
    y_ticks = round_ticks(y_low, y_high)
    y_low, y_high = y_ticks[0], y_ticks[-1]
    if log_x:
        x_low, x_high = min(x_low, x_ticks[0]), max(x_high, x_ticks[-1])
    else:
        x_low, x_high = x_ticks[0], x_ticks[-1]

    def along(value: float, low: float, high: float) -> float:
        return (value - low) / ((high - low) or 1)

    def x(value: float) -> float:
        share = along(log2(value), log2(x_low), log2(x_high)) if log_x else along(value, x_low, x_high)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - along(value, y_low, y_high) * (HEIGHT - BOTTOM - TOP)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 20 * len(lines)}" font-size="12">']
    for tick in y_ticks:
        at = y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="#888">{tick:.4g}</text>')
    for tick in x_ticks:
        parts.append(
            f'<text x="{x(tick):.1f}" y="{HEIGHT - 26}" text-anchor="middle" fill="#888">{tick:.4g}</text>'
        )
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end" fill="#888">{escape(x_title)}</text>')
    parts.append(f'<text x="4" y="14" fill="#888">{escape(y_title)}</text>')
    for i, (name, line) in enumerate(lines.items()):
        color = f"hsl({i * 360 // len(lines)} 70% 45%)"
        if as_points:
            parts += [f'<circle cx="{x(px):.1f}" cy="{y(py):.1f}" r="4" fill="{color}"/>' for px, py in line]
        else:
            path = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py in line)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT}" y="{HEIGHT + 14 + 20 * i}" fill="{color}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def round_ticks(low: float, high: float) -> list[float]:
    """About five numbers that are easy to read, the last of them at or beyond the end."""
    span = (high - low) or abs(high) or 1
    power = 10 ** floor(log10(span / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= span / 5)
    first = floor(low / step)
    return [n * step for n in range(first, ceil(high / step) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten where doublings would be too many to read."""
    if high / low <= 2**10:
        return doublings(low, high)
    return [10.0**power for power in range(round(log10(low)), round(log10(high)) + 1)]


def doublings(low: float, high: float) -> list[float]:
    ticks = [low]
    while ticks[-1] * 2 <= high:
        ticks.append(ticks[-1] * 2)
    return ticks
