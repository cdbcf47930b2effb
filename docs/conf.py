"""The documentation site: `make docs` builds it into out/site, without a network."""

import inspect
from importlib import import_module
from pathlib import Path

from docutils import nodes

import argmaxf

project = "argmaxf"
author = copyright = "The argmaxf developers"
release = version = argmaxf.__version__

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",  # examples are copied without their prompts
    "sphinx_design",  # grids
    "sphinx_gallery.gen_gallery",  # examples/gallery, run and shown with their pictures
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"rare_ones\.py",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,
}
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
# Parts of results.md, all but the page on time.
exclude_patterns = [
    f"results/{page.name}"
    for page in (Path(__file__).parent / "results").glob("*.md")
    if page.stem != "timing"
]
templates_path = ["_templates"]
default_role = "py:obj"  # names in single backticks link to their pages
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
toc_object_entries_show_parents = "hide"  # a method by its own name
autodoc_typehints = "none"  # the descriptions of parameters have their types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
suppress_warnings = ["toc.not_included"]

WIDE = (
    "which-function",
    "warnings",
    "background/other-packages",
    "background/benchmarks",
    "background/notation",
    "background/method-study",
    "background/labels-per-row",
)
html_theme = "pydata_sphinx_theme"
html_title = "argmaxf"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"tutorial": []}  # one page, no section
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "github_url": "https://github.com/argmaxf/argmaxf",
    # Pages of wide tables use the whole width.
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in WIDE},
    },
}

# The reference is generated from the public list, so that no name can be missing from it.
SECTIONS = {
    "Decisions from probabilities": ("argmaxf.expected",),
    "Thresholds, intervals and guarantees from labels": ("argmaxf.empirical", "argmaxf.measures"),
    "Classifiers and their comparison": ("argmaxf.estimators", "argmaxf.comparison"),
    "Data frames": ("argmaxf.frames",),
    "After deployment": ("argmaxf.monitoring", "argmaxf.prior", "argmaxf.saved_threshold"),
}
MODULES = ("measures", "objectives", "displays", "torch", "theory", "estimators", "frames")


def reference():
    """Yield each section of the reference with its names."""
    things = {name: getattr(argmaxf, name) for name in argmaxf.__all__ if name != "__version__"}
    left = {name for name, thing in things.items() if not inspect.ismodule(thing)}
    for title, packages in SECTIONS.items():
        found = (name for name in left if things[name].__module__.startswith(packages))
        names = sorted(found, key=str.swapcase)  # functions, then what they return
        left.difference_update(names)
        yield title, names
    assert not left, f"no section of the reference has {left}"
    for name in MODULES:
        module = import_module(f"argmaxf.{name}")
        shown = [each for each in module.__all__ if each not in things and has_page(module, each)]
        yield f"argmaxf.{name}", [f"{name}.{each}" for each in shown]


def has_page(module, name):
    """Say whether a name has a page: types and tables have none."""
    return inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))


def write_reference():
    """Write api.md, where autosummary finds the names."""
    parts = [
        "# API reference\n\n[Which function do I need?](which-function.md) helps to choose. "
        "The names of `argmaxf` itself come first, then those of its modules.\n"
    ]
    for title, names in reference():
        lines = "\n".join(f"   argmaxf.{name}" for name in names)
        options = ".. autosummary::\n   :toctree: api\n   :nosignatures:\n"
        if names:
            parts.append(f"## {title}\n\n```{{eval-rst}}\n{options}\n{lines}\n```\n")
    (Path(__file__).parent / "api.md").write_text("\n".join(parts), encoding="utf-8")


write_reference()


def strip_examples(app, doctree):
    """Take away the empty line that ends an example, which doctest needs and readers do not."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    """Hook into the build."""
    app.connect("doctree-read", strip_examples)
