"""The documentation site: `make docs` builds it into out/site, without a network."""

from pathlib import Path

import argmaxf

project = "argmaxf"
author = copyright = "The argmaxf developers"
release = version = argmaxf.__version__

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
# Parts of results.md, all but the page on time.
exclude_patterns = [
    f"results/{page.name}"
    for page in (Path(__file__).parent / "results").glob("*.md")
    if page.stem != "timing"
]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"  # the descriptions of parameters have their types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "argmaxf"
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
}
