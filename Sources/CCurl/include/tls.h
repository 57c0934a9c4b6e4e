#pragma once
#include <curl/curl.h>
#include <stdint.h>

// openssl/ssl.h, of which this is all that is needed, brings headers of the system that hide names of Glibc's.
struct ssl_st;
struct ssl_ctx_st;
int SSL_has_pending(const struct ssl_st *session);
void SSL_set_shutdown(struct ssl_st *session, int mode);
long SSL_ctrl(struct ssl_st *session, int command, long number, void *pointer);
void SSL_CTX_set_msg_callback(
    struct ssl_ctx_st *context,
    void (*callback)(int sent, int version, int type, const void *, size_t, struct ssl_st *, void *argument));
struct x509_store_ctx_st;
int SSL_CTX_get_verify_mode(const struct ssl_ctx_st *context);
void SSL_CTX_set_verify(struct ssl_ctx_st *context, int mode, int (*callback)(int, struct x509_store_ctx_st *));
int SSL_get_ex_data_X509_STORE_CTX_idx(void);
struct ssl_ctx_st *SSL_get_SSL_CTX(const struct ssl_st *session);
int SSL_CTX_set_ex_data(struct ssl_ctx_st *context, int index, void *data);
void *SSL_CTX_get_ex_data(const struct ssl_ctx_st *context, int index);
void ERR_new(void);
void ERR_set_error(int library, int reason, const char *format, ...);

enum {
    freshet_ssl_ctrl_set_msg_callback_arg = 16,  // SSL_CTRL_SET_MSG_CALLBACK_ARG
    freshet_ssl_received_shutdown = 2,           // SSL_RECEIVED_SHUTDOWN
    freshet_ssl_handshake = 22,                  // SSL3_RT_HANDSHAKE
    freshet_ssl_header = 0x100,                  // SSL3_RT_HEADER
    freshet_ssl_inner_type = 0x101,              // SSL3_RT_INNER_CONTENT_TYPE
    freshet_err_lib_ssl = 20,                    // ERR_LIB_SSL
    freshet_ssl_unexpected_message = 244,        // SSL_R_UNEXPECTED_MESSAGE
    // The most handshake messages, and records that have them, from the peer in a connection. A handshake has about 20.
    // Later a peer sends a few session tickets, and a new key after millions of records. OpenSSL handles so many session
    // tickets in about 0.1 s.
    freshet_tls_message_limit = 1000,
};

// OpenSSL handles handshake messages in one call of SSL_connect or SSL_read for as long as they arrive: HelloRequest
// before the handshake has ended, session tickets and new keys after it. None of libcurl's callbacks is called in that
// time. So the messages of a session are counted here, in the argument of this callback. Records are counted too,
// because a peer can send a message in pieces of one byte. Too many end the session.
static inline void freshet_tls_count_message(
    int sent, int version, int type, const void *bytes, size_t size, struct ssl_st *session, void *count) {
    (void)version;
    int is_record = type == freshet_ssl_header || type == freshet_ssl_inner_type;
    if (is_record && size > 0) type = *(const unsigned char *)bytes;
    if (sent || type != freshet_ssl_handshake) return;
    uintptr_t received = (uintptr_t)count + 1;
    SSL_ctrl(session, freshet_ssl_ctrl_set_msg_callback_arg, 0, (void *)received);
    if (received <= freshet_tls_message_limit) return;
    SSL_set_shutdown(session, freshet_ssl_received_shutdown);
    // Without an error, libcurl would handle this like the regular end of the connection.
    ERR_new();
    ERR_set_error(freshet_err_lib_ssl, freshet_ssl_unexpected_message, NULL);
}

static inline CURLcode freshet_tls_limit_messages(CURL *easy, void *context, void *argument) {
    (void)easy, (void)argument;
    SSL_CTX_set_msg_callback(context, freshet_tls_count_message);
    return CURLE_OK;
}

// The connection's TLS library and session; NULL if libcurl has none.
static inline const struct curl_tlssessioninfo *freshet_curl_get_tls(CURL *easy) {
    const struct curl_tlssessioninfo *tls = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK || !tls) return NULL;
    return tls->backend == CURLSSLBACKEND_OPENSSL ? tls : NULL;
}
