"""Print the conda-forge recipe of a built release: python tools/conda_recipe.py dist > recipe.yaml.

Version, dependencies and digest are those of the sdist in the folder, so that nothing is to be kept
in step by hand; it is to be attached to the release of its tag, from where the recipe takes it. The
recipe is of the format that rattler-build reads (version 1).
"""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import tomllib
from pathlib import Path

RECIPE = """\
schema_version: 1

context:
  name: polysift
  version: {version}
  python_min: "{python}"

package:
  name: ${{{{ name }}}}
  version: ${{{{ version }}}}

source:
  url: {source}/releases/download/v${{{{ version }}}}/polysift-${{{{ version }}}}.tar.gz
  sha256: {digest}

build:
  number: 0
  noarch: python
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
  python:
    entry_points:
      - {script}

requirements:
  host:
    - python ${{{{ python_min }}}}.*
    - pip
    - {backend}
  run:
    - python >=${{{{ python_min }}}}
{needed}

tests:
  - python:
      imports:
        - polysift
        - polysift.datasets
        - polysift.estimators
      python_version: ${{{{ python_min }}}}.*
      pip_check: true

about:
  homepage: {home}
  documentation: {documents}
  repository: {source}
  summary: {summary}
  license: MIT
  license_file: LICENSE

extra:
  recipe-maintainers:
    - polysift
"""


def main() -> None:
    """Print the recipe of the one sdist in the folder that is given."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = sorted(Path(sys.argv[1]).glob("polysift-*.tar.gz"))
    if len(found) != 1:
        sys.exit(
            f"{sys.argv[1]} must hold one sdist of polysift; got {len(found)}. Make it: make dist"
        )
    print(recipe(found[0]), end="")


def recipe(sdist: Path) -> str:
    """Return the recipe of an sdist."""
    metadata = _read_metadata(sdist)
    project = metadata["project"]
    urls = project["urls"]
    return RECIPE.format(
        version=sdist.name.removeprefix("polysift-").removesuffix(".tar.gz"),
        python=project["requires-python"].removeprefix(">="),
        digest=hashlib.sha256(sdist.read_bytes()).hexdigest(),
        script=f"polysift = {project['scripts']['polysift']}",
        backend=_spaced(metadata["build-system"]["requires"][0]),
        needed="\n".join(f"    - {_spaced(words)}" for words in project["dependencies"]),
        home=urls["Homepage"],
        documents=urls["Documentation"],
        source=urls["Source"],
        summary=project["description"],
    )


def _read_metadata(sdist: Path) -> dict:
    with tarfile.open(sdist) as archive:
        name = next(m for m in archive.getnames() if re.fullmatch(r"[^/]+/pyproject\.toml", m))
        found = archive.extractfile(name)
        assert found is not None
        return tomllib.loads(found.read().decode())


def _spaced(words: str) -> str:
    """Return ``numpy >=1.26`` for ``numpy>=1.26``."""
    return re.sub(r"^([\w-]+)(?=[<>=])", r"\1 ", words)


if __name__ == "__main__":
    main()
