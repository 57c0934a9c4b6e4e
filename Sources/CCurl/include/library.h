#pragma once

#include <stdbool.h>

// Loads and initializes libcurl, if no call has done so before. It blocks on the library's files: some milliseconds, or
// as long as the disk takes. May be called on any thread.
//
// Returns why it cannot be loaded, in the loader's words, until this thread's next call, which tries again; NULL: it is
// loaded.
const char *freshet_curl_problem(void);

// Whether it is loaded. Never blocks.
bool freshet_curl_is_loaded(void);
