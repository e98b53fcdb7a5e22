"""The documentation site: `make docs` builds it from this folder, offline, into site/.

Pages are the Markdown files of this folder. Where one of them says `<!-- generated: NAME -->`, the
program itself fills in the rest, so that a reference cannot go stale.
"""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

from generators import campaign_keys, commands, http_api  # noqa: E402

from adsbpc import __version__  # noqa: E402
from adsbpc.report.palette import DARK, LIGHT  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# The service opens its tables to say what its API is.
logging.getLogger("alembic").setLevel(logging.WARNING)

project = "adsbpc"
author = "the adsbpc authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["**/cache"]

myst_heading_anchors = 4
# Two hyphens begin an option.
smartquotes = False

# Docstrings put code between single backticks.
default_role = "code"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "adsbpc"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"
# Prompts and what a command prints are not copied.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_line_continuation_character = "\\"
copybutton_exclude = ".linenos, .gp, .go"


def _theme(colours: dict[str, str]) -> dict[str, str]:
    """The report's own colours, for the theme and for pictures that are part of a page."""
    own = {
        "color-brand-primary": colours["accent"],
        "color-brand-content": colours["accent"],
        "color-brand-visited": colours["accent"],
        "color-foreground-primary": colours["ink"],
        "color-foreground-secondary": colours["quiet"],
        "color-foreground-muted": colours["quiet"],
        "color-background-primary": colours["card"],
        "color-background-secondary": colours["paper"],
        "color-background-border": colours["line"],
    }
    return own | colours


html_theme_options = {
    "light_css_variables": _theme(LIGHT),
    "dark_css_variables": _theme(DARK),
    "navigation_with_keys": True,
}

GENERATORS = {
    "campaign keys": campaign_keys.page,
    "commands": commands.page,
    "http api": http_api.page,
}
_GENERATED = re.compile(r"<!-- generated: ([a-z ]+) -->")
# Pictures of concepts are drawn in the colours of the page.
_CONCEPT = re.compile(r"!\[([^\]]+)\]\(((?:\.\./)?(?:concepts/)?pictures/[a-z-]+\.svg)\)")


def _fill_in(app: Sphinx, name: str, source: list[str]) -> None:
    folder = (DOCS / name).parent
    source[0] = _GENERATED.sub(lambda found: GENERATORS[found[1]](), source[0])
    source[0] = _CONCEPT.sub(lambda found: _picture(folder / found[2]), source[0])


def _picture(file: Path) -> str:
    drawn = file.read_text(encoding="utf-8").strip()
    return f"```{{raw}} html\n<figure class='concept'>\n{drawn}\n</figure>\n```"


# What the theme leaves out for people who read with a screen reader.
_MENDED = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside aria-label="All pages" class="sidebar-drawer"',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div id="search-results"': '<h1>Search</h1>\n<div id="search-results"',
}


def _mend(app: Sphinx, error: Exception | None) -> None:
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for found, better in _MENDED.items():
            text = text.replace(found, better)
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _fill_in)
    app.connect("build-finished", _mend)
