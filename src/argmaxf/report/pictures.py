"""Displays as SVG inside a page, with its fonts and its text colour."""

from __future__ import annotations

import io
import re
from typing import Any

from markupsafe import Markup, escape

TEXT = "#010203"  # stands for the page's text colour until the picture is written

COLOURS = (
    "text.color",
    "axes.labelcolor",
    "axes.edgecolor",
    "xtick.color",
    "ytick.color",
    "xtick.labelcolor",
    "ytick.labelcolor",
    "legend.labelcolor",
)
SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",  # letters stay letters: crisp, selectable, small
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    **dict.fromkeys(COLOURS, TEXT),
}


def svg(display: Any, description: str, *, wide: bool = False) -> Markup:
    """Draw a display and return it as SVG that can stand inside a page, light or dark."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {**SETTINGS, "svg.hashsalt": description}  # no two pictures share names
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7.4 if wide else 5.6, 2.7 if wide else 3.6), layout="constrained")
        display.plot(figure.subplots())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return Markup(_inline(out.getvalue(), description))


def _inline(text: str, description: str) -> str:
    """Leave out what a page has already, and let the picture take the width it is given."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = text.replace(TEXT, "currentColor")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None
    opening = f'<svg {box[0]} role="img" aria-label="{escape(description)}">'
    return opening + text[text.index(">") + 1 :]
