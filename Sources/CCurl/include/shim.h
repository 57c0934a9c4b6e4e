#pragma once
// libcurl's setopt and getinfo are variadic, which Swift cannot call: one typed inline function for each shape.
#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>
#include <string.h>
#include <sys/socket.h>

#include "tls.h"

static inline CURLcode freshet_curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode freshet_curl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode freshet_curl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode freshet_curl_set_data_function(
    CURL *easy, CURLoption option, size_t (*value)(char *, size_t, size_t, void *)) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode freshet_curl_set_request_function(
    CURL *easy, int (*value)(void *, char *, char *, int, int)) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value);
}
static inline CURLcode freshet_curl_set_resolver_function(CURL *easy, int (*value)(void *, void *, void *)) {
    return curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, value);
}
static inline CURLcode freshet_curl_set_open_function(
    CURL *easy, curl_socket_t (*value)(void *, curlsocktype, struct curl_sockaddr *)) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}
static inline curl_socket_t freshet_curl_open(const struct curl_sockaddr *address) {
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}
static inline CURLcode freshet_curl_set_close_function(CURL *easy, int (*value)(void *, curl_socket_t)) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, value);
}
// Limits the handshake messages of the request's connections (tls.h). Ignored if libcurl uses another library.
static inline void freshet_curl_limit_tls_messages(CURL *easy) {
    if (!freshet_curl_get_tls(easy)) return;
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, freshet_tls_limit_messages);
}
// Calls a function before each TLS handshake of the request. Ignored if libcurl uses another library.
static inline void freshet_curl_set_tls_function(
    CURL *easy, CURLcode (*function)(CURL *, void *context, void *argument), void *argument) {
    if (!freshet_curl_get_tls(easy)) return;
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, function);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, argument);
}
// Whether the connection's TLS session has bytes that were read from the socket and not handed on.
static inline int freshet_curl_has_pending(CURL *easy) {
    const struct curl_tlssessioninfo *tls = freshet_curl_get_tls(easy);
    return tls && tls->internals && SSL_has_pending(tls->internals);
}
static inline CURLcode freshet_curl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode freshet_curl_get_off(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode freshet_curl_set_progress_function(
    CURL *easy, int (*value)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
    return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, value);
}
// CURLINFO_ACTIVESOCKET; CURL_SOCKET_BAD (-1): there is no connection.
static inline CURLcode freshet_curl_get_socket(CURL *easy, curl_socket_t *value) {
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value);
}
static inline CURLMcode freshet_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
static inline CURLMcode freshet_curl_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) {
    return curl_multi_setopt(multi, option, value);
}
static inline CURLMcode freshet_curl_multi_set_socket_function(
    CURLM *multi, int (*value)(CURL *, curl_socket_t, int, void *, void *)) {
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value);
}
static inline CURLMcode freshet_curl_multi_set_timer_function(CURLM *multi, int (*value)(CURLM *, long, void *)) {
    return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, value);
}
// The message's payload is a union whose meaning the message's kind gives; only this one exists.
static inline CURLcode freshet_curl_message_result(const CURLMsg *message) { return message->data.result; }
