import Glibc

/// Descriptors 0, 1 and 2, which may be closed when a program starts.
public enum StandardDescriptors {
    /// Opens those that are closed, so that no other file gets their numbers: otherwise text for standard output could
    /// go to a socket or a database. Call it before the program opens anything.
    ///
    /// Writing to such a standard output still fails, with `EBADF`, since the text would be lost.
    public static func occupy() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // open(2) returns the lowest free number: this one.
            _ = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
