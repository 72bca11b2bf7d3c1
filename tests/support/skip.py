#!/usr/bin/env python3
"""A test that cannot run here: counts as one case, skipped.

usage: skip.py REASON
"""

import sys

from cases import Cases

cases = Cases()
cases.skip("this test", sys.argv[1])
sys.exit(cases.finish())
