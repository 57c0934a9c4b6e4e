// bare-tell SOCKET: writes one datagram there. The least that a script can be started for.
#include "bare.h"

#include <sys/un.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    struct sockaddr_un ear = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(ear.sun_path, sizeof ear.sun_path, "%s", argv[1]);
    return fd < 0 || sendto(fd, "1", 1, MSG_NOSIGNAL, (struct sockaddr *)&ear, sizeof ear) != 1;
}
