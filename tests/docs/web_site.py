#!/usr/bin/env python3
"""The documentation builds as a web site, without a link to a page or heading that does not exist.

usage: web_site.py SOURCE_ROOT
"""

import pathlib
import subprocess
import sys
import tempfile

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent / "support")
from cases import Cases


def main(root):
    cases = Cases()
    has_mkdocs = subprocess.run([sys.executable, "-c", "import material, mkdocs; "
                                 "assert mkdocs.__version__ >= '1.6'"],
                                stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not has_mkdocs:
        cases.skip("the site", "no mkdocs-material 9.5 was found (PyPI)")
        return cases.finish()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, root / "docs/build_site.py", folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        site = pathlib.Path(folder) / "site"
        pages = {path.stem for path in (root / "docs").glob("*.md")} - {"README"}
        cases.check("the site is built without a warning", done.returncode == 0, done.stdout)
        cases.check("it has all pages", all((site / f"{page}.html").exists() for page in pages))
        cases.check("it can be searched", (site / "search/search_index.json").exists())
        links = (site / "index.html").read_text() if done.returncode == 0 else ""
        cases.check("links name the titles of pages", ">Data parallelism</a>" in links)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
