import Glibc

/// Descriptors 0, 1 and 2, which a program may be started without.
public enum StandardDescriptors {
    /// Takes those that are not open, so that nothing else is opened in their place: what is written to standard output
    /// would go to a socket or a database then. To be called before anything is opened.
    ///
    /// Writing to such a standard output still fails, with `EBADF`, since it does not arrive anywhere.
    public static func occupy() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // open(2) takes the lowest that is free: this one.
            _ = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}
