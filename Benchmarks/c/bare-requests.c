// bare-requests ADDRESS PORT CONNECTIONS COUNT DIRECTORY: requests /items/0.json to /items/COUNT-1.json once each.
//
// The first time, each body becomes a durable file: written beside its name, flushed with 63 others, renamed; the
// directory is flushed at the end. The tags are kept in DIRECTORY/tags, and the next time all requests are conditional. Exits with 0 only if
// each answer is 200 (first) or 304 (then).
#include "bare.h"

#include <fcntl.h>
#include <sys/epoll.h>

enum { TAG = 64, BUFFER = 16384, MOST = 256, GROUP = 64 };
struct connection {
    int fd, item;
    size_t filled;
    char buffer[BUFFER];
};
static struct connection connections[MOST];
static char (*tags)[TAG];
static int conditional, count, next, answered;
static const char *directory;

static void ask(struct connection *connection) {
    char request[256];
    if (next == count) return;
    int item = connection->item = next++, length;
    connection->filled = 0;
    if (conditional)
        length = snprintf(request, sizeof request, "GET /items/%d.json HTTP/1.1\r\nHost: o\r\nIf-None-Match: %s\r\n\r\n",
                          item, tags[item]);
    else
        length = snprintf(request, sizeof request, "GET /items/%d.json HTTP/1.1\r\nHost: o\r\n\r\n", item);
    if (send(connection->fd, request, (size_t)length, MSG_NOSIGNAL) != length) exit(1);
}

/// Files that are written and not yet flushed: they are flushed together, because the disk then works on all of them.
static struct { int fd, item; } unflushed[GROUP];
static int waiting;

static void name_of(char *name, int item, const char *suffix) {
    if (snprintf(name, 512, "%s/%d.json%s", directory, item, suffix) >= 512) exit(2);
}

static void flush(void) {
    char name[512], final[512];
    for (int index = 0; index < waiting; index++)
        if (fdatasync(unflushed[index].fd) < 0 || close(unflushed[index].fd) < 0) exit(1);
    for (int index = 0; index < waiting; index++) {
        name_of(name, unflushed[index].item, ".new");
        name_of(final, unflushed[index].item, "");
        if (rename(name, final) < 0) exit(1);
    }
    waiting = 0;
}

static void keep(int item, const char *body, size_t size) {
    char name[512];
    name_of(name, item, ".new");
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, body, size) != (ssize_t)size) exit(1);
    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    unflushed[waiting].fd = fd, unflushed[waiting].item = item;
    if (++waiting == GROUP) flush();
}

/// Whether the answer is complete; then it is used.
static int complete(struct connection *connection) {
    connection->buffer[connection->filled] = 0;
    char *end = strstr(connection->buffer, "\r\n\r\n");
    if (!end) return 0;
    if (conditional) {
        if (strncmp(connection->buffer + 9, "304", 3) != 0) exit(1);
        return 1;
    }
    char *length = strstr(connection->buffer, "Content-Length: "), *tag = strstr(connection->buffer, "ETag: ");
    if (strncmp(connection->buffer + 9, "200", 3) != 0 || !length || !tag) exit(1);
    size_t size = strtoul(length + 16, NULL, 10);
    if (connection->filled - (size_t)(end + 4 - connection->buffer) < size) return 0;
    size_t written = strcspn(tag + 6, "\r");
    if (written >= TAG) exit(1);
    memcpy(tags[connection->item], tag + 6, written);
    keep(connection->item, end + 4, size);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    struct sockaddr_in origin = origin_named(argv[1], argv[2]);
    int width = atoi(argv[3]);
    count = atoi(argv[4]), directory = argv[5];
    if (width < 1 || width > MOST || count < 1 || count > 1000000) return 2;
    tags = calloc((size_t)count, TAG);
    char name[512];
    snprintf(name, sizeof name, "%s/tags", directory);
    int kept = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (!tags || kept < 0) return 1;
    size_t whole = (size_t)count * TAG;
    conditional = pread(kept, tags, whole, 0) == (ssize_t)whole;
    int poll = epoll_create1(EPOLL_CLOEXEC);
    for (int index = 0; index < width && next < count; index++) {
        struct connection *connection = &connections[index];
        connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(connection->fd, (struct sockaddr *)&origin, sizeof origin) < 0) return 1;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, connection->fd, &event) < 0) return 1;
        ask(connection);
    }
    while (answered < count) {
        struct epoll_event events[MOST];
        int ready = epoll_wait(poll, events, MOST, 5000);
        if (ready <= 0) return 1;
        for (int index = 0; index < ready; index++) {
            struct connection *connection = events[index].data.ptr;
            ssize_t got = read(connection->fd, connection->buffer + connection->filled,
                               BUFFER - 1 - connection->filled);
            if (got <= 0) return 1;
            connection->filled += (size_t)got;
            if (complete(connection)) answered++, ask(connection);
        }
    }
    if (!conditional) {
        flush();
        int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (pwrite(kept, tags, whole, 0) != (ssize_t)whole || fsync(kept) < 0 || fsync(folder) < 0) return 1;
    }
    return 0;
}
