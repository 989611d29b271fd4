"""Figures as an HTML page, with lines drawn in it."""

import html
from collections.abc import Iterable, Sequence
from typing import Final

_WIDTH: Final = 900
_HEIGHT: Final = 160
_HEAD: Final = """\
<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{title}</title>
<style>body{{font:14px sans-serif;max-width:1100px;margin:auto}}svg{{background:#f6f6f6}}
td,th{{padding:2px 8px;text-align:left}}td.n{{text-align:right}}</style>
<h1>{title}</h1>
"""


def page(title: str, *parts: str) -> str:
    """A page of these parts, which are HTML."""
    return _HEAD.format(title=html.escape(title)) + "\n".join(parts) + "\n"


def listed(sentences: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{html.escape(each)}</li>' for each in sentences)}</ul>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    cells = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{html.escape(each)}</th>' for each in head)}</tr>{cells}</table>"


def plot(title: str, points: Sequence[tuple[float, float]], mark: float | None = None) -> str:
    """A line through points, from zero on; ``mark`` is where, of the width, a vertical line stands."""
    top = max(*(value for _, value in points), 1e-9) * 1.05
    end = max(at for at, _ in points) or 1.0
    drawn = " ".join(f"{_WIDTH * at / end:.1f},{_HEIGHT * (1 - value / top):.1f}" for at, value in points)
    line = ""
    if mark is not None:
        line = f"<line x1='{_WIDTH * mark}' x2='{_WIDTH * mark}' y2={_HEIGHT} stroke='#bbb'/>"
    return (
        f"<h2>{html.escape(title)}</h2><svg role=img aria-label='{html.escape(title)}' width={_WIDTH} "
        f"height={_HEIGHT}>{line}<polyline fill=none stroke='#06c' points='{drawn}'/></svg>"
    )
