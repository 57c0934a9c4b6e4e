// What the bare programs share. They are the limit: as little as does the job, no more; an error ends them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static inline struct sockaddr_in origin_named(const char *address, const char *port) {
    struct sockaddr_in origin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, address, &origin.sin_addr) != 1) exit(2);
    return origin;
}

/// One conditional request, its answer read and thrown away.
static inline void fetch(const struct sockaddr_in *origin) {
    static const char request[] = "GET /x HTTP/1.1\r\nHost: origin\r\nIf-None-Match: \"1\"\r\n\r\n";
    char answer[4096];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) exit(1);
    if (connect(fd, (const struct sockaddr *)origin, sizeof *origin) == 0
        && send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1)
        while (read(fd, answer, sizeof answer) > 0) {}
    close(fd);
}
