#if FRESHET_PTHREAD_LOCKS
    internal import Glibc
#else
    internal import Synchronization
#endif

/// A value that one thread at a time may touch.
///
/// It is `Synchronization.Mutex`, behind a name of our own for one reason: the thread sanitizer does not see the
/// futex calls of that type and reports races that are none. A build with `-DFRESHET_PTHREAD_LOCKS` takes a pthread
/// mutex instead, which the sanitizer knows, so that what it then reports is real.
package struct Lock<Value: ~Copyable>: ~Copyable, Sendable {
    #if FRESHET_PTHREAD_LOCKS
        private let storage: Storage

        package init(_ initial: consuming sending Value) {
            storage = Storage(initial)
        }

        /// Runs `body` with the value while no other thread can.
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            pthread_mutex_lock(storage.mutex)
            defer { pthread_mutex_unlock(storage.mutex) }
            return try body(&storage.value.pointee)
        }

        /// The mutex and the value at addresses that do not move.
        ///
        /// `@unchecked Sendable`: `value` is reached through `withLock` alone, which holds `mutex` meanwhile.
        private final class Storage: @unchecked Sendable {
            let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
            let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

            init(_ initial: consuming sending Value) {
                pthread_mutex_init(mutex, nil)
                value.initialize(to: initial)
            }

            deinit {
                value.deinitialize(count: 1)
                value.deallocate()
                pthread_mutex_destroy(mutex)
                mutex.deallocate()
            }
        }
    #else
        private let mutex: Mutex<Value>

        package init(_ initial: consuming sending Value) {
            mutex = Mutex(initial)
        }

        /// Runs `body` with the value while no other thread can.
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            try mutex.withLock(body)
        }
    #endif
}
