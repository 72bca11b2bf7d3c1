"""Cases of a script test. Prints each case with its outcome; the last line is read by tally.py.

    cases = Cases()
    cases.check("a sentence that holds", held, "what was seen instead")
    sys.exit(cases.finish())

A script that begins after CLEAVE_TEST_UNTIL, in seconds since the epoch, is skipped.
"""

import os
import sys
import time


class Cases:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        if time.time() > float(os.environ.get("CLEAVE_TEST_UNTIL", "inf")):
            self.skip("this test", "for lack of time")
            sys.exit(self.finish())

    def check(self, sentence, held, seen=""):
        """Records one case; prints what was seen only if the case failed."""
        if held:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {sentence}\n{seen}".rstrip(), flush=True)
        return held

    def skip(self, sentence, reason):
        self.skipped += 1
        print(f"skipped: {sentence}: {reason}", flush=True)

    def finish(self):
        """Prints the summary line. Returns the exit status of the script."""
        if self.passed + self.failed + self.skipped == 0:
            self.check("the script checks something", False)
        print(f"cleave-cases: {self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        sys.stdout.flush()
        return 1 if self.failed else 0
