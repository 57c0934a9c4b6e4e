#pragma once
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

// Writes a name of a certificate, the subject or the issuer, as text (RFC 2253, in UTF-8). Returns the number of bytes,
// 0 for an empty name or after an error. A longer name is cut.
static inline int freshet_x509_name(const X509_NAME *name, char *text, int size) {
    BIO *memory = name ? BIO_new(BIO_s_mem()) : NULL;
    if (!memory) return 0;
    int count = 0;
    if (X509_NAME_print_ex(memory, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0) {
        count = BIO_read(memory, text, size);
    }
    BIO_free(memory);
    return count > 0 ? count : 0;
}

// Seconds since 1970; 0: the time cannot be read.
static inline int64_t freshet_asn1_seconds(const ASN1_TIME *time) {
    struct tm parts;
    if (!time || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
    return timegm(&parts);
}

// Writes the host names and addresses of a certificate, one a line. Returns the number of bytes. Names that do not fit
// are left out.
static inline int freshet_x509_hosts(const X509 *certificate, char *text, int size) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    if (!names) return 0;
    int count = 0;
    for (int index = 0; index < sk_GENERAL_NAME_num(names); index++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
        char address[INET6_ADDRSTRLEN] = "";
        const char *host = address;
        int length = 0;
        if (name->type == GEN_DNS) {
            host = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
            length = ASN1_STRING_length(name->d.dNSName);
        } else if (name->type == GEN_IPADD) {
            int bytes = ASN1_STRING_length(name->d.iPAddress);
            if (bytes != 4 && bytes != 16) continue;
            inet_ntop(bytes == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), address, sizeof address);
            length = (int)strlen(address);
        }
        if (length <= 0 || length >= size - count) continue;
        for (int place = 0; place < length; place++) text[count++] = host[place] == '\n' ? ' ' : host[place];
        text[count++] = '\n';
    }
    GENERAL_NAMES_free(names);
    return count;
}
