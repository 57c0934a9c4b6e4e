// bare-client SOCKET: asks bare-refresher once and waits for its answer.
#include "bare.h"

#include <sys/un.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(argv[1]) >= sizeof name.sun_path) return 2;
    strcpy(name.sun_path, argv[1]);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte = 0;
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) < 0) return 1;
    return write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1 ? 0 : 1;
}
