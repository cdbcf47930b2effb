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
    "sphinx_design",  # the grid of the first page
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
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
toc_object_entries_show_parents = "hide"  # a method by its own name
autodoc_typehints = "none"  # the descriptions of parameters have their types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
suppress_warnings = ["toc.not_included"]  # a page without a place is built all the same

html_theme = "pydata_sphinx_theme"
html_title = "argmaxf"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"tutorial": []}  # one page, no section
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "github_url": "https://github.com/argmaxf/argmaxf",
    # Pages of wide tables have the whole width.
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in ("benchmarks", "other-packages", "notation", "warnings")},
    },
}

# The reference is written from the public list, so that no name can be missing from it.
ROOMS = {
    "Probabilities in, labels out": (
        "argmaxf.expected",
        "argmaxf.prior",
    ),
    "Labelled scores": ("argmaxf.empirical",),
    "Classifiers and their comparison": ("argmaxf.estimators", "argmaxf.comparison"),
    "Frames": ("argmaxf.frames",),
}
# Modules whose names are imported from them, as the pages show it.
IMPORTED = ("measures", "estimators", "frames")


def reference():
    """Yield each section of the reference with its names."""
    things = {name: getattr(argmaxf, name) for name in argmaxf.__all__ if name != "__version__"}
    modules = {name: thing for name, thing in things.items() if inspect.ismodule(thing)}
    left = set(things) - set(modules)
    for title, homes in ROOMS.items():
        found = (name for name in left if things[name].__module__.startswith(homes))
        names = sorted(found, key=str.swapcase)  # functions, then what they return
        left.difference_update(names)
        yield title, names
    yield "Others", sorted(left)
    for name, module in modules.items():
        yield f"argmaxf.{name}", [f"{name}.{each}" for each in module.__all__]
    for name in IMPORTED:
        module = import_module(f"argmaxf.{name}")
        told = [each for each in module.__all__ if each not in things and is_told(module, each)]
        yield f"argmaxf.{name}", [f"{name}.{each}" for each in told]


def is_told(module, name):
    """Say whether a name has a page: types and tables have none."""
    return inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))


def write_reference():
    """Write api.md, where autosummary finds the names."""
    parts = [
        "# API reference\n\nThe names of `argmaxf` itself (`dir(argmaxf)` lists them), then those "
        "of its modules that need no import, and at the end those that are imported from their "
        "module, as in `from argmaxf.measures import Tversky`.\n"
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
