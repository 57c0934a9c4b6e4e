// bare-load SOCKET CONNECTIONS MILLISECONDS END REQUEST: sends the request on each connection, and again after each
// reply, which ends with the byte END. Prints how many replies came in a second. A request without a final zero byte
// gets one if END is 0.
#include "bare.h"

#include <sys/epoll.h>
#include <sys/un.h>
#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    static char reply[1 << 20];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (argc != 6 || strlen(argv[1]) >= sizeof name.sun_path) return 2;
    strcpy(name.sun_path, argv[1]);
    int width = atoi(argv[2]), poll = epoll_create1(EPOLL_CLOEXEC);
    double duration = atoi(argv[3]) / 1000.0;
    char end = (char)atoi(argv[4]);
    size_t length = strlen(argv[5]) + (end == 0);
    if (width < 1 || width > 64) return 2;
    for (int index = 0; index < width; index++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (connect(fd, (struct sockaddr *)&name, sizeof name) < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0
            || write(fd, argv[5], length) != (ssize_t)length)
            return 1;
    }
    double begun = seconds(), passed;
    long replies = 0;
    while ((passed = seconds() - begun) < duration) {
        struct epoll_event events[64];
        int ready = epoll_wait(poll, events, 64, 5000);
        if (ready <= 0) return 1;
        for (int index = 0; index < ready; index++) {
            ssize_t got = read(events[index].data.fd, reply, sizeof reply);
            if (got <= 0) return 1;
            if (reply[got - 1] != end) continue;
            replies++;
            if (write(events[index].data.fd, argv[5], length) != (ssize_t)length) return 1;
        }
    }
    printf("%.0f\n", (double)replies / passed);
    return 0;
}
