#pragma once

// Loads libcurl, if no call has done so before; this takes some milliseconds. May be called on any thread.
//
// Returns why it cannot be loaded, in the loader's words, for as long as the process runs; NULL: it is loaded.
const char *freshet_curl_problem(void);
