// bare-refresher SOCKET ADDRESS PORT: asks the origin for each byte that comes over a Unix socket, then answers it.
#include "bare.h"

#include <sys/un.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    struct sockaddr_in origin = origin_named(argv[2], argv[3]);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(argv[1]) >= sizeof name.sun_path) return 2;
    strcpy(name.sun_path, argv[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&name, sizeof name) < 0 || listen(listener, 16) < 0) return 1;
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0) return 1;
        char byte;
        while (read(client, &byte, 1) == 1) {
            fetch(&origin);
            if (send(client, "", 1, MSG_NOSIGNAL) != 1) break;
        }
        close(client);
    }
}
