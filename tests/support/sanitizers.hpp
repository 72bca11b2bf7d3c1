// Which sanitizer the tests are compiled with, as told by the macros of g++ and clang++.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define CLEAVE_TEST_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define CLEAVE_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLEAVE_TEST_ASAN 1
#elif __has_feature(thread_sanitizer)
#define CLEAVE_TEST_TSAN 1
#endif
#endif
