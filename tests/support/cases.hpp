// What a test case can report besides its checks.
#pragma once

namespace cleave::testing {

/// Reports that the current case cannot run here, and why. A case without checks then counts as
/// skipped.
void skip(const char* reason);

}  // namespace cleave::testing
