// bare-answer SOCKET: answers each message that ends with a zero byte with a short one. The limit of `bare-load`.
#include "bare.h"

#include <sys/epoll.h>
#include <sys/un.h>

int main(int argc, char **argv) {
    static const char reply[] = "{\"parameters\":{}}";
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof name.sun_path) return 2;
    strcpy(name.sun_path, argv[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (bind(listener, (struct sockaddr *)&name, sizeof name) < 0 || listen(listener, 64) < 0
        || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event) < 0)
        return 1;
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, -1);
        for (int index = 0; index < ready; index++) {
            char message[65536];
            int fd = events[index].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                if (event.data.fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event) < 0) return 1;
                continue;
            }
            ssize_t got = read(fd, message, sizeof message);
            if (got <= 0) close(fd);
            else if (message[got - 1] == 0 && write(fd, reply, sizeof reply) != sizeof reply) return 1;
        }
    }
}
