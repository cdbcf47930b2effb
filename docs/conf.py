"""The documentation site: `make docs` builds it into out/site, without a network."""

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
exclude_patterns = ["results/*.md"]  # parts of results.md
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
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
