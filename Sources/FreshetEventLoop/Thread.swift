import CLinux
import Glibc

/// A detached POSIX thread, for loops and workers.
enum Thread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a thread. It inherits the caller's signal mask (pthread_create(3)).
    static func start(named name: String, _ body: @escaping @Sendable () -> Void) throws(SystemCallError) {
        let argument = Unmanaged.passRetained(Body(body)).toOpaque()
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, argument)
        guard result == 0 else {
            Unmanaged<Body>.fromOpaque(argument).release()
            throw SystemCallError("pthread_create", errno: result, subject: name)
        }
        pthread_setname_np(thread, String(name.prefix(15)))
        pthread_detach(thread)
    }
}
