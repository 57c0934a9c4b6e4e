#if FRESHET_PTHREAD_LOCKS
    internal import Glibc
#else
    public import Synchronization
#endif

/// A value that only one thread at a time can access.
///
/// It is `Synchronization.Mutex` behind another name, because the thread sanitizer does not recognise the futex calls
/// of that type and reports false races. A build with `-DFRESHET_PTHREAD_LOCKS` uses a pthread mutex instead, which the
/// sanitizer recognises, so that its reports are real.
///
/// It is inlinable, because a lock is so cheap that to look up the metadata of an unspecialized type would cost more.
/// Other modules specialize only a type that is `@usableFromInline` itself.
@usableFromInline
package struct Lock<Value: ~Copyable>: ~Copyable, Sendable {
    #if FRESHET_PTHREAD_LOCKS
        private let storage: Storage

        package init(_ initial: consuming sending Value) {
            storage = Storage(initial)
        }

        /// Runs `body` with exclusive access to the value.
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            pthread_mutex_lock(storage.mutex)
            defer { pthread_mutex_unlock(storage.mutex) }
            return try body(&storage.value.pointee)
        }

        /// The mutex and the value at addresses that do not move.
        ///
        /// `@unchecked Sendable`: `value` is only accessed by `withLock`, which holds `mutex`.
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
        @usableFromInline let mutex: Mutex<Value>

        @inlinable
        package init(_ initial: consuming sending Value) {
            mutex = Mutex(initial)
        }

        /// Runs `body` with exclusive access to the value.
        @inlinable
        package borrowing func withLock<Result: ~Copyable, Failure: Error>(
            _ body: (inout sending Value) throws(Failure) -> sending Result
        ) throws(Failure) -> sending Result {
            try mutex.withLock(body)
        }
    #endif
}
