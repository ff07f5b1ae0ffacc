"""Small line charts of samples over time, one below the other, as SVG."""

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, LEFT, GAP = 760, 90, 250, 24
COLOUR = "#3572b0"


def chart(samples: Sequence[dict[str, float]], begins: Sequence[str]) -> str:
    """A chart for each figure whose name has one of these prefixes; every axis begins at zero."""
    names = [name for name in samples[-1] if name.startswith(tuple(begins))]
    height = len(names) * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}"'
        ' font-family="sans-serif" font-size="13">',
        f'<rect width="100%" height="{height}" fill="white"/>',
    ]
    longest = samples[-1]["seconds"] or 1.0
    for number, name in enumerate(names):
        bottom = GAP + number * (HEIGHT + GAP) + HEIGHT
        points = [(each["seconds"], each[name]) for each in samples if name in each]
        most = max((value for _, value in points), default=0.0) or 1.0
        line = " ".join(
            f"{LEFT + at / longest * WIDTH:.1f},{bottom - value / most * HEIGHT:.1f}" for at, value in points
        )
        parts += [
            f'<text x="8" y="{bottom - HEIGHT / 2}">{escape(name)}</text>',
            f'<text x="8" y="{bottom - HEIGHT / 2 + 18}" fill="#777">at most {most:,.0f}</text>',
            f'<path d="M{LEFT},{bottom} h{WIDTH}" stroke="#ccc"/>',
            f'<polyline points="{line}" fill="none" stroke="{COLOUR}" stroke-width="1.5"/>',
        ]
    return "\n".join([*parts, "</svg>\n"])
