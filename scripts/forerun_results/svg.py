"""Lines over a common grid, as SVG that suits light and dark pages."""

from math import log2

Lines = dict[str, list[tuple[float, float]]]


def plot(x_title: str, y_title: str, lines: Lines, log_x: bool = False) -> str:
    width, height, left, top = 640, 360, 60, 20
    scaled = {name: [(log2(x) if log_x else x, y) for x, y in line] for name, line in lines.items()}
    points = [point for line in scaled.values() for point in line]
    (x_low, x_high), (y_low, y_high) = [(min(v), max(v)) for v in zip(*points)]

    def x(value: float) -> float:
        return left + (value - x_low) / ((x_high - x_low) or 1) * (width - left - 20)

    def y(value: float) -> float:
        return height - 40 - (value - y_low) / ((y_high - y_low) or 1) * (height - 40 - top)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 20 * len(lines)}" font-size="12">']
    for i in range(5):
        x_value, y_value = (low + i * (high - low) / 4 for low, high in ((x_low, x_high), (y_low, y_high)))
        x_label = 2**x_value if log_x else x_value
        parts.append(f'<line x1="{left}" x2="{width - 20}" y1="{y(y_value):.1f}" y2="{y(y_value):.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{left - 6}" y="{y(y_value) + 4:.1f}" text-anchor="end" fill="#888">{y_value:.4g}</text>')
        parts.append(f'<text x="{x(x_value):.1f}" y="{height - 24}" text-anchor="middle" fill="#888">{x_label:.4g}</text>')
    parts.append(f'<text x="{width - 20}" y="{height - 8}" text-anchor="end" fill="#888">{x_title}</text>')
    parts.append(f'<text x="4" y="14" fill="#888">{y_title}</text>')
    for i, (name, line) in enumerate(scaled.items()):
        color = f"hsl({i * 360 // len(lines)} 70% 45%)"
        path = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{left}" y="{height + 14 + 20 * i}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
