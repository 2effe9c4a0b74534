"""How Sphinx builds the site: ``make docs``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Threads of OpenMP wait for one another in a busy loop, and on a busy machine for minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import polysift

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "polysift"
author = "The polysift developers"
project_copyright = author
version = release = polysift.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
    "notebook",
    "root_files",
]
exclude_patterns = ["_build", "results", "Thumbs.db", ".DS_Store"]
templates_path = ["_templates"]
highlight_language = "text"  # a block without a language is a command or an output
nitpicky = True

# Pages are Markdown that a code host shows as well; anchors are made as it makes them.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Formulas become MathML while the site is built: it needs no network to be read.
html_math_renderer = "mathml"

# The docstrings say what each thing is and of which type; signatures stay short.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# Names of others, in docstrings and in the code of examples, lead to their pages. What can be
# linked to is in short inventories (tools/inventories.py): the site is built without a network.
intersphinx_mapping = {
    name: (url, str(HERE / "_inventories" / f"{name}.inv"))
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
        "pandas": "https://pandas.pydata.org/docs/",
    }.items()
}
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = f"polysift {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "polysift",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
        "alt_text": "polysift: home",
    },
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navigation_depth": 2,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
if os.environ.get("READTHEDOCS"):  # where there is more than one version of the site
    _SITE = os.environ.get("POLYSIFT_SITE", "https://polysift.readthedocs.io/en/latest/")
    _NAMED = os.environ.get("READTHEDOCS_VERSION") == "latest"
    html_theme_options |= {
        "switcher": {
            "json_url": f"{_SITE}_static/switcher.json",
            "version_match": "latest" if _NAMED else release,
        },
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }
# Pages without pages below them need no list of such.
_LEAVES = ("tutorial", "cheatsheet", "coming-from", "choosing", "performance/README")
_LEAVES += ("measurements", "faq", "glossary", "contributing")
html_sidebars: dict[str, list[str]] = {page: [] for page in (*_LEAVES, "changelog")}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "subsection_order": [
        f"../examples/{name}" for name in ("basics", "tables", "quality", "scale")
    ],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("polysift",),
    "reference_url": {"polysift": None},
    "min_reported_time": 1,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "thumbnail_size": (400, 280),
}
