import Glibc

/// Runs the calls of concurrent callers in groups, one group after another. Callers that come while a group runs form
/// the next group, which the first of them runs for all of them. A caller that is alone does not wait.
///
/// Each caller that waits has a semaphore: if the callers of a group shared a condition variable, all of them would then
/// wait for its lock. `Synchronization.Mutex` would spin first, and then use a lock with priority inheritance. Both cost
/// a fifth of all processor time when 32 commits wait for the index.
///
/// Safe to call from any thread; blocks the calling thread. A group runs without a lock of this object. A call must not
/// make a further call of the same object.
///
/// `@unchecked Sendable`: the mutable state is accessed only between `pthread_mutex_lock` and `unlock` of `mutex`, whose
/// pointer is set once, before the object is shared. The pointers to semaphores are valid while they are in that state:
/// each belongs to a thread that waits until it was posted, which happens once, after it was taken from there.
final class CallGroups<Call: Sendable>: @unchecked Sendable {
    private typealias Semaphore = UnsafeMutablePointer<sem_t>

    private struct Group {
        /// In the order in which they came.
        var calls: [Call]
        /// The caller that runs the group waits on it.
        var leader: Semaphore?
        var followers: [Semaphore] = []
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var isRunning = false
    /// The group that begins when the one in progress has ended; nil if no caller waits.
    private var next: Group?

    init() { pthread_mutex_init(mutex, nil) }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Returns when a group with this call has run.
    ///
    /// - Parameter run: runs a group, whose calls are in the order in which they came. One of the group's callers calls
    ///   it; all callers must pass an equivalent closure.
    func perform(_ call: Call, _ run: ([Call]) -> Void) {
        pthread_mutex_lock(mutex)
        guard isRunning else {
            isRunning = true
            pthread_mutex_unlock(mutex)
            run([call])
            return end()
        }
        let semaphore = Semaphore.allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
        defer {
            sem_destroy(semaphore)
            semaphore.deallocate()
        }
        let leads = next == nil
        if leads {
            next = Group(calls: [call], leader: semaphore)
        } else {
            next?.calls.append(call)
            next?.followers.append(semaphore)
        }
        pthread_mutex_unlock(mutex)
        // Interrupted by a signal, it returns an error.
        while sem_wait(semaphore) != 0 {}
        guard leads else { return }
        // `isRunning` has stayed set, so no other caller has taken the group.
        pthread_mutex_lock(mutex)
        let group = next.take() ?? Group(calls: [call])
        pthread_mutex_unlock(mutex)
        run(group.calls)
        end(group.followers)
    }

    /// A group has run: the next one begins, and the followers return.
    private func end(_ followers: [Semaphore] = []) {
        pthread_mutex_lock(mutex)
        let leader = next?.leader
        isRunning = leader != nil
        pthread_mutex_unlock(mutex)
        if let leader { sem_post(leader) }
        for follower in followers { sem_post(follower) }
    }

    /// The number of calls that wait for the group in progress.
    var waiting: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return next?.calls.count ?? 0
    }
}
