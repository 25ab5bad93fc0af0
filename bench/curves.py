"""A picture of rates over the batch, both logarithmic: a colour for a precision, dashes for PyTorch."""

import math

COLORS = {"cpu": "#7a7a7a", "fp32": "#1f77b4", "tf32": "#2ca02c", "bf16": "#d62728", "tf32x3": "#9467bd"}


def svg(curves, title):
    """`curves`: of (who, precision) the points (batch, rate)."""
    width, height, left, bottom = 760, 460, 70, 50
    points = [point for curve in curves.values() for point in curve]
    x_low, x_high = (math.log2(f(p[0] for p in points)) for f in (min, max))
    y_low, y_high = math.floor(math.log10(min(p[1] for p in points))), math.ceil(math.log10(max(p[1] for p in points)))

    def place(batch, rate):
        across = (math.log2(batch) - x_low) / max(x_high - x_low, 1)
        up = (math.log10(rate) - y_low) / max(y_high - y_low, 1)
        return left + across * (width - left - 170), height - bottom - up * (height - bottom - 30)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="18" font-size="14">{title}</text>']
    for power in range(y_low, y_high + 1):
        y = place(2 ** x_low, 10 ** power)[1]
        parts.append(f'<path d="M{left} {y:.1f}H{width - 170}" stroke="#ddd"/><text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10 ** power:,}</text>')
    for batch in sorted({p[0] for p in points}):
        x = place(batch, 10 ** y_low)[0]
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 20}" text-anchor="middle">{batch}</text>')
    for row, ((who, precision), curve) in enumerate(sorted(curves.items())):
        dash = ' stroke-dasharray="5 4"' if who == "PyTorch" else ""
        path = " L".join("{:.1f} {:.1f}".format(*place(*point)) for point in curve)
        line = f'fill="none" stroke="{COLORS[precision]}" stroke-width="2"{dash}'
        y = 50 + 20 * row
        parts.append(f'<path d="M{path}" {line}/><path d="M{width - 155} {y}h30" {line}/>'
                     f'<text x="{width - 118}" y="{y + 4}">{who}, {precision}</text>')
    return "\n".join(parts + ["</svg>\n"])
