#!/usr/bin/env python3
"""The documentation builds as a web site, without a link to a page or heading that does not exist.

usage: web_site.py SOURCE_ROOT
"""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent / "support")
from cases import Cases
from interpreter import python_that_runs


def ranks_in(picture):
    """How many elements of each rank a picture shows."""
    texts = [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]
    return [texts.count(rank) for rank in "0123"]


def check_pictures(cases, root, folder):
    spec = importlib.util.spec_from_file_location("build_site", root / "docs/build_site.py")
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    drawn = site.draw_pictures(folder)
    shown = {name for page in (root / "docs").glob("*.md")
             for name, _ in site.PICTURE.findall(page.read_text())}
    cases.check("all pictures that are drawn are on a page, and the reverse", drawn == shown,
                f"{drawn} are drawn, {shown} are shown")
    cases.check("an exchange of 7 rows of 9 keeps all elements, in chunks of 2, 2, 2 and 1 rows",
                ranks_in(folder / "exchange.svg") == [36, 36, 36, 18])
    # 4 · (16 + 16) elements with a star, 4 · 36 with a box
    cases.check("every rank of a periodic grid appears as often in the halos",
                ranks_in(folder / "halo.svg") == [68] * 4)
    texts = ElementTree.parse(folder / "halo.svg").getroot().itertext()
    cases.check("a rank receives 16 and 20 ghosts",
                re.findall(r"receives (\d+) bytes", " ".join(texts)) == ["64", "80"])


def main(root):
    cases = Cases()
    with tempfile.TemporaryDirectory() as folder:
        check_pictures(cases, root, pathlib.Path(folder) / "pictures")
    python = python_that_runs("import material, mkdocs; assert mkdocs.__version__ >= '1.6'")
    if python is None:
        cases.skip("the site", "no mkdocs-material 9.5 was found (PyPI)")
        return cases.finish()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, root / "docs/build_site.py", folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        site = pathlib.Path(folder) / "site"
        pages = {path.stem for path in (root / "docs").glob("*.md")} - {"README"}
        cases.check("the site is built without a warning", done.returncode == 0, done.stdout)
        cases.check("it has all pages", all((site / f"{page}.html").exists() for page in pages))
        cases.check("it can be searched", (site / "search/search_index.json").exists())
        links = (site / "index.html").read_text() if done.returncode == 0 else ""
        page = (site / "stencils.html").read_text() if done.returncode == 0 else ""
        cases.check("a page shows its picture", 'src="pictures/halo.svg"' in page)
        cases.check("links name the titles of pages", ">Data parallelism</a>" in links)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
