// bare-ready: says that it is ready at once, and waits to be ended.
#include "bare.h"

#include <sys/un.h>

int main(void) {
    static const char ready[] = "READY=1";
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || strlen(path) >= sizeof name.sun_path) return 2;
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, ready, sizeof ready - 1, 0, (struct sockaddr *)&name, sizeof name) < 0) return 1;
    for (;;) pause();
}
