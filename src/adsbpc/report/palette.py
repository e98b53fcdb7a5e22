"""Colours of the page and its charts, light and dark, told apart also by colour-blind readers."""

from __future__ import annotations

# Hues after Okabe and Ito, "Color Universal Design" (2008), darkened or lightened for contrast.
LIGHT = {
    "paper": "#f6f7f8",
    "card": "#ffffff",
    "ink": "#1a2028",
    "quiet": "#5a6572",
    "line": "#e2e6ea",
    "accent": "#0067a8",
    "series-1": "#0067a8",
    "series-2": "#e08a00",
    "series-3": "#00936b",
    "series-4": "#b5579a",
    "series-5": "#4aa8e0",
    "series-6": "#c4481a",
    "series-7": "#a89600",
    "series-8": "#3b4754",
    "series-other": "#8b949e",
}
DARK = {
    "paper": "#12161b",
    "card": "#1a1f26",
    "ink": "#e8ebee",
    "quiet": "#9ca7b3",
    "line": "#2e3640",
    "accent": "#5fb0f0",
    "series-1": "#4c9be8",
    "series-2": "#f0a63c",
    "series-3": "#35c19a",
    "series-4": "#d988c0",
    "series-5": "#9ad6fa",
    "series-6": "#f07f53",
    "series-7": "#d9cb3f",
    "series-8": "#c3ccd6",
    "series-other": "#7d8792",
}
SERIES = 8


def variables(colours: dict[str, str]) -> str:
    """CSS custom properties, one for each colour."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def variable(name: str) -> str:
    """A colour that follows the page's light or dark scheme without drawing again."""
    return f"var(--{name})"
