#!/usr/bin/env python3
"""Builds the documentation as a web site with search: these pages, pictures, and the reference.

usage: python3 docs/build_site.py [DIRECTORY]

Needs mkdocs-material (PyPI); a C++20 compiler (c++, or CXX) for the pictures and Doxygen for the
reference, which are left out without them. Pictures are what pictures.cpp draws; a page shows one
by a line `<!-- picture NAME: what it shows -->`. Writes DIRECTORY/site (default: build-site/site),
to be opened at index.html or copied to a server; search needs one, such as
`python3 -m http.server -d build-site/site`. Ends with an error if a page links to a page or a
heading that does not exist.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| \[([\w.]+)\.md\]\(\1\.md\) \| (.*) \|$", re.MULTILINE)
PICTURE = re.compile(r"^<!-- picture (\w+): (.*?) -->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def draw_pictures(folder):
    """Writes what pictures.cpp draws. Returns the names of the pictures; none without a compiler."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        print("no C++ compiler was found: the site has no pictures", file=sys.stderr)
        return set()
    folder.mkdir(parents=True)
    program = folder / "draw"
    subprocess.run([compiler, "-std=c++20", "-O0", "-pthread", f"-I{ROOT}/include",
                    ROOT / "docs/pictures.cpp", "-o", program], check=True)
    subprocess.run([program, folder], check=True)
    program.unlink()
    return {path.stem for path in folder.glob("*.svg")}


def page_text(path, pictures):
    """The text of a page, with its pictures and with links that stay within the site."""
    def shown(match):
        name, what = match.groups()
        if pictures and name not in pictures:
            sys.exit(f"{path.name}: pictures.cpp draws no {name}")
        return f"![{' '.join(what.split())}](pictures/{name}.svg)" if pictures else ""

    def within_site(match):
        text, target = match.groups()
        name, _, heading = target.partition("#")
        if "://" in target or not name:
            return match[0]
        found = (path.parent / name).resolve()
        if found == ROOT / "docs":
            return f"[{text}](contents.md)"
        if found.parent == ROOT / "docs" and found.suffix == ".md":
            page = "contents.md" if found.name == "README.md" else found.name
            if text in (found.name, f"docs/{found.name}"):
                text = title_of(found)
            return f"[{text}]({page}{'#' + heading if heading else ''})"
        return text  # a file of the source tree
    parts = re.split(r"(^```.*?^```$)", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(within_site, PICTURE.sub(shown, part))
                   for part in parts)


def title_of(path):
    return re.search(r"^# (.*)$", path.read_text(), re.MULTILINE)[1]


# Wide enough for the lines of code and the table of operations.
STYLE = """.md-grid { max-width: 90rem; }
.md-typeset pre > code { font-size: 0.75em; }
.md-typeset table:not([class]) { font-size: 0.6rem; }
"""


def configuration(folder, has_reference):
    """mkdocs.yml: JSON is YAML."""
    order = [name for name, _ in ROW.findall((ROOT / "docs/README.md").read_text())]
    missing = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README", *order}
    if missing:
        sys.exit(f"docs/README.md does not list {', '.join(sorted(missing))}")
    pages = [{"cleave": "index.md"}, {"Contents": "contents.md"}]
    pages += [{title_of(ROOT / f"docs/{name}.md"): f"{name}.md"} for name in order]
    if has_reference:
        pages.append({"Reference": "reference/html/namespaces.html"})
    return json.dumps({
        "site_name": "cleave", "docs_dir": str(folder / "pages"), "site_dir": str(folder / "site"),
        "use_directory_urls": False, "extra_css": ["style.css"], "nav": pages, "plugins": ["search"],
        "theme": {"name": "material", "font": False,
                  "features": ["content.code.copy", "toc.follow", "search.highlight"],
                  "palette": [{"scheme": "default", "primary": "blue grey"}]},
        "markdown_extensions": ["tables", "toc", "pymdownx.superfences", "pymdownx.highlight"],
        "validation": {"nav": {"not_found": "warn"},
                       "links": {"not_found": "warn", "anchors": "warn"}},
    })


def main(folder):
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    pictures = draw_pictures(pages / "pictures")
    (pages / "index.md").write_text(page_text(ROOT / "README.md", pictures))
    for path in sorted((ROOT / "docs").glob("*.md")):
        name = "contents.md" if path.name == "README.md" else path.name
        (pages / name).write_text(page_text(path, pictures))
    (pages / "style.css").write_text(STYLE)
    has_reference = shutil.which("doxygen") is not None
    if has_reference:
        settings = (ROOT / "docs/Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {pages}/reference\n"
        subprocess.run(["doxygen", "-"], cwd=ROOT, text=True, input=settings,
                       stdout=subprocess.DEVNULL, check=True)
    else:
        print("doxygen was not found: the site has no reference", file=sys.stderr)
    (folder / "mkdocs.yml").write_text(configuration(folder, has_reference))
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f",
                    str(folder / "mkdocs.yml")], check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    print(folder / "site/index.html")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build-site").resolve())
