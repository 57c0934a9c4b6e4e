// The functions of libcurl and libssl that Freshet calls, under their own names. The first call loads libcurl: its 40
// libraries take a seventh of the time until the daemon is ready, and the processes of the helpers never need them.
//
// Without the library, each function returns what it returns if it cannot do its work. No function of libssl is called
// then, since no handle exists.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

// Not exported: libcurl itself must not call these instead of its own functions.
#pragma GCC visibility push(hidden)
#include "shim.h"
#include "library.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

// FUNCTION(result, result without the library, name, parameters, arguments)
#define FUNCTIONS_WITH_RESULT(FUNCTION) \
    FUNCTION(CURL *, NULL, curl_easy_init, (void), ()) \
    FUNCTION(CURLcode, CURLE_FAILED_INIT, curl_easy_pause, (CURL * easy, int bits), (easy, bits)) \
    FUNCTION(CURLcode, CURLE_FAILED_INIT, curl_easy_recv, (CURL * easy, void *bytes, size_t size, size_t *count), \
        (easy, bytes, size, count)) \
    FUNCTION(CURLcode, CURLE_FAILED_INIT, curl_easy_send, (CURL * easy, const void *bytes, size_t size, size_t *count), \
        (easy, bytes, size, count)) \
    FUNCTION(const char *, "libcurl is not loaded", curl_easy_strerror, (CURLcode code), (code)) \
    FUNCTION(time_t, -1, curl_getdate, (const char *text, const time_t *unused), (text, unused)) \
    FUNCTION(CURLcode, CURLE_FAILED_INIT, curl_global_init, (long flags), (flags)) \
    FUNCTION(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_add_handle, (CURLM * multi, CURL * easy), (multi, easy)) \
    FUNCTION(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_cleanup, (CURLM * multi), (multi)) \
    FUNCTION(CURLMsg *, NULL, curl_multi_info_read, (CURLM * multi, int *left), (multi, left)) \
    FUNCTION(CURLM *, NULL, curl_multi_init, (void), ()) \
    FUNCTION(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_remove_handle, (CURLM * multi, CURL * easy), (multi, easy)) \
    FUNCTION(CURLMcode, CURLM_INTERNAL_ERROR, curl_multi_socket_action, \
        (CURLM * multi, curl_socket_t socket, int events, int *running), (multi, socket, events, running)) \
    FUNCTION(const char *, "libcurl is not loaded", curl_multi_strerror, (CURLMcode code), (code)) \
    FUNCTION(struct curl_slist *, NULL, curl_slist_append, (struct curl_slist * list, const char *text), (list, text)) \
    FUNCTION(CURLU *, NULL, curl_url, (void), ()) \
    FUNCTION(CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_get, (CURLU * url, CURLUPart part, char **text, unsigned int flags), \
        (url, part, text, flags)) \
    FUNCTION(CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_set, \
        (CURLU * url, CURLUPart part, const char *text, unsigned int flags), (url, part, text, flags)) \
    FUNCTION(const char *, "libcurl is not loaded", curl_url_strerror, (CURLUcode code), (code)) \
    FUNCTION(curl_version_info_data *, NULL, curl_version_info, (CURLversion age), (age))

#define FUNCTIONS_WITHOUT_RESULT(FUNCTION) \
    FUNCTION(curl_easy_cleanup, (CURL * easy), (easy)) \
    FUNCTION(curl_free, (void *bytes), (bytes)) \
    FUNCTION(curl_slist_free_all, (struct curl_slist * list), (list)) \
    FUNCTION(curl_url_cleanup, (CURLU * url), (url))

// libssl is a library that libcurl needs; if libcurl uses another one, none of these is called (freshet_curl_get_tls).
#define TLS_FUNCTIONS_WITH_RESULT(FUNCTION) \
    FUNCTION(int, 0, SSL_has_pending, (const struct ssl_st *session), (session)) \
    FUNCTION(long, 0, SSL_ctrl, (struct ssl_st * session, int command, long number, void *pointer), \
        (session, command, number, pointer)) \
    FUNCTION(int, 0, SSL_CTX_get_verify_mode, (const struct ssl_ctx_st *context), (context)) \
    FUNCTION(int, -1, SSL_get_ex_data_X509_STORE_CTX_idx, (void), ()) \
    FUNCTION(struct ssl_ctx_st *, NULL, SSL_get_SSL_CTX, (const struct ssl_st *session), (session)) \
    FUNCTION(int, 0, SSL_CTX_set_ex_data, (struct ssl_ctx_st * context, int index, void *data), (context, index, data)) \
    FUNCTION(void *, NULL, SSL_CTX_get_ex_data, (const struct ssl_ctx_st *context, int index), (context, index))

#define TLS_FUNCTIONS_WITHOUT_RESULT(FUNCTION) \
    FUNCTION(SSL_set_shutdown, (struct ssl_st * session, int mode), (session, mode)) \
    FUNCTION(SSL_CTX_set_msg_callback, \
        (struct ssl_ctx_st * context, \
            void (*callback)(int, int, int, const void *, size_t, struct ssl_st *, void *)), \
        (context, callback)) \
    FUNCTION(SSL_CTX_set_verify, \
        (struct ssl_ctx_st * context, int mode, int (*callback)(int, struct x509_store_ctx_st *)), \
        (context, mode, callback))

// The addresses of the library's functions. Written by one thread at a time, and read only after `is_complete`.
static struct {
#define ADDRESS(result, without, name, parameters, arguments) __typeof__(&name) name;
#define ADDRESS_WITHOUT_RESULT(name, parameters, arguments) __typeof__(&name) name;
    FUNCTIONS_WITH_RESULT(ADDRESS)
    FUNCTIONS_WITHOUT_RESULT(ADDRESS_WITHOUT_RESULT)
    TLS_FUNCTIONS_WITH_RESULT(ADDRESS)
    TLS_FUNCTIONS_WITHOUT_RESULT(ADDRESS_WITHOUT_RESULT)
    CURLcode (*curl_easy_setopt)(CURL *, CURLoption, ...);
    CURLcode (*curl_easy_getinfo)(CURL *, CURLINFO, ...);
    CURLMcode (*curl_multi_setopt)(CURLM *, CURLMoption, ...);
} real;
static atomic_bool is_complete;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char problem[256];

static bool find(void *library, const char *name, void *address) {
    void *found = dlsym(library, name);
    // A function's address fits into a pointer to data (POSIX, dlsym).
    memcpy(address, &found, sizeof found);
    return found;
}

static bool load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(problem, sizeof problem, "%s", reason ? reason : "libcurl.so.4 cannot be loaded");
        return false;
    }
    const char *missing = NULL;
#define FIND(result, without, name, parameters, arguments) FIND_NAME(name)
#define FIND_WITHOUT_RESULT(name, parameters, arguments) FIND_NAME(name)
#define FIND_NAME(name) \
    if (!find(library, #name, &real.name)) missing = #name;
    FUNCTIONS_WITH_RESULT(FIND)
    FUNCTIONS_WITHOUT_RESULT(FIND_WITHOUT_RESULT)
    FIND_NAME(curl_easy_setopt)
    FIND_NAME(curl_easy_getinfo)
    FIND_NAME(curl_multi_setopt)
#undef FIND_NAME
#define FIND_NAME(name) find(library, #name, &real.name);
    TLS_FUNCTIONS_WITH_RESULT(FIND)
    TLS_FUNCTIONS_WITHOUT_RESULT(FIND_WITHOUT_RESULT)
    if (missing) {
        snprintf(problem, sizeof problem, "libcurl.so.4 is too old: it has no function %s", missing);
        // The next attempt opens the file that is installed then. Nothing of this one is in use.
        dlclose(library);
        return false;
    }
    // Counted, and never undone: other parts of the process may use libcurl and libcrypto too.
    real.curl_global_init(CURL_GLOBAL_SSL);
    return true;
}

bool freshet_curl_is_loaded(void) { return atomic_load_explicit(&is_complete, memory_order_acquire); }

const char *freshet_curl_problem(void) {
    if (freshet_curl_is_loaded()) return NULL;
    pthread_mutex_lock(&mutex);
    bool is_now = freshet_curl_is_loaded() || load();
    if (is_now) atomic_store_explicit(&is_complete, true, memory_order_release);
    pthread_mutex_unlock(&mutex);
    return is_now ? NULL : problem;
}

static bool is_loaded(void) { return !freshet_curl_problem(); }

#define DEFINE(result, without, name, parameters, arguments) \
    result name parameters { return is_loaded() && real.name ? real.name arguments : without; }
#define DEFINE_WITHOUT_RESULT(name, parameters, arguments) \
    void name parameters { \
        if (is_loaded() && real.name) real.name arguments; \
    }
FUNCTIONS_WITH_RESULT(DEFINE)
FUNCTIONS_WITHOUT_RESULT(DEFINE_WITHOUT_RESULT)
TLS_FUNCTIONS_WITH_RESULT(DEFINE)
TLS_FUNCTIONS_WITHOUT_RESULT(DEFINE_WITHOUT_RESULT)

// The type of an option's value follows from its number (curl.h, CURLOPTTYPE_…). All that are not numbers are addresses.
#define PASS(function, handle, option) \
    va_list values; \
    va_start(values, option); \
    if ((long)option < CURLOPTTYPE_OBJECTPOINT) { \
        code = real.function(handle, option, va_arg(values, long)); \
    } else if ((long)option >= CURLOPTTYPE_OFF_T && (long)option < CURLOPTTYPE_BLOB) { \
        code = real.function(handle, option, va_arg(values, curl_off_t)); \
    } else { \
        code = real.function(handle, option, va_arg(values, void *)); \
    } \
    va_end(values);

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...) {
    CURLcode code = CURLE_FAILED_INIT;
    if (!is_loaded()) return code;
    PASS(curl_easy_setopt, easy, option)
    return code;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...) {
    CURLMcode code = CURLM_INTERNAL_ERROR;
    if (!is_loaded()) return code;
    PASS(curl_multi_setopt, multi, option)
    return code;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...) {
    if (!is_loaded()) return CURLE_FAILED_INIT;
    va_list values;
    va_start(values, info);
    // Each value is written to an address.
    CURLcode code = real.curl_easy_getinfo(easy, info, va_arg(values, void *));
    va_end(values);
    return code;
}
