// What a test case may say about itself besides its checks.
#pragma once

namespace cleave::testing {

/// The current case cannot run here, and why: without any check it then counts as skipped.
void skip(const char* reason);

}  // namespace cleave::testing
