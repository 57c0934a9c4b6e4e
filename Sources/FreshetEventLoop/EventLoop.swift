import CLinux
import Glibc
import Synchronization

/// The events for which a descriptor is watched.
public struct Interest: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// There is data to read, or a connection to accept.
    public static let read = Interest(rawValue: 1)
    /// There is space to write.
    public static let write = Interest(rawValue: 2)
}

/// The state of a descriptor: epoll(7)'s events under portable names.
public struct Readiness: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A read will not block (data, end of file, or an error to be read).
    public static let read = Readiness(rawValue: 1)
    /// A write will not block.
    public static let write = Readiness(rawValue: 2)
    /// The peer closed its end (EPOLLHUP, EPOLLRDHUP). Data may still be there to read.
    public static let hangup = Readiness(rawValue: 4)
    /// An error is pending on the descriptor (EPOLLERR).
    public static let error = Readiness(rawValue: 8)
}

/// One epoll(7) loop on one thread. It watches descriptors, keeps timers, and is an executor, so that an event and the
/// task that handles it run on the same thread.
///
/// An idle loop sleeps in `epoll_wait` without a timeout: it never wakes without a reason.
///
/// ```swift
/// let loop = try EventLoop()
/// let task = Task(executorPreference: loop) { … ; loop.stop() }
/// loop.run()                 // on this thread, until stop()
/// ```
///
/// **Threading.** All methods may be called from any thread. Handlers of descriptors and timers, and jobs of tasks and
/// actors that prefer the loop, run on the loop's thread, one at a time. A handler must not block; use a
/// ``WorkerPool`` for work that does.
public final class EventLoop: Sendable {
    /// The maximum number of events of one `epoll_wait`. Further events wait for the next iteration.
    static let eventsPerIteration = 128
    /// How many rounds of new jobs run in one iteration. A task that hops between actors is a series of such jobs, and
    /// a call of `epoll_wait` after each would cost more than the jobs.
    static let jobRoundsPerIteration = 32
    /// How long rounds of jobs run before the next `epoll_wait`, so that tasks that yield continuously do not starve
    /// timers and descriptors.
    static let jobTimePerIteration: Duration = .milliseconds(2)

    private struct Watch {
        /// Distinguishes this watch from an earlier one of the same descriptor number, whose events may still be in the
        /// current batch.
        var generation: UInt32
        var interest: Interest
        var name: String
        var handler: @Sendable (Readiness) -> Void
    }

    /// A handler that runs on the loop's thread, with its name for logs.
    private struct NamedHandler {
        var name: String
        var handle: @Sendable () -> Void
    }

    private struct ReadyJob {
        var job: UnownedJob
        /// The executor that the runtime gave the job to, and as which the loop runs the job.
        var executor: UnownedTaskExecutor?
        /// Whether the job is for an actor, to which it is isolated while it runs.
        var isOfActor = false
    }

    private struct State {
        var jobs: [ReadyJob] = []
        /// See ``EventLoop/serve(_:)``; nil: this loop.
        var taskExecutor: UnownedTaskExecutor?
        /// The number of jobs that have run or run now.
        var endedJobs = 0
        var watches: [Int32: Watch] = [:]
        var nextGeneration: UInt32 = 0
        var timers = TimerQueue()
        var timerHandlers: [TimerQueue.Identifier: NamedHandler] = [:]
        var nextTimer: TimerQueue.Identifier = 0
        /// The handlers of wake-ups, in the order in which they were registered.
        var wakeUpObservers: [(identifier: UInt64, observe: @Sendable () -> Bool)] = []
        var nextObserver: UInt64 = 0
        /// Closures that other threads want to run on the loop's thread.
        var calls: [NamedHandler] = []
        /// The last setting of the timer descriptor.
        var armed: TimerQueue.Nanoseconds?
        /// The loop sleeps or is about to sleep: another thread that adds work has to wake it, once.
        var needsWake = false
        var stopped = false

        /// Whether the caller has to wake the loop; true once for each sleep.
        mutating func takeWake() -> Bool {
            defer { needsWake = false }
            return needsWake
        }
    }

    /// The children that ``ChildProcess`` awaits.
    let children = ChildRegistry()
    let jobWatch: JobWatch
    private let epoll: OwnedDescriptor
    private let wakeUp: OwnedDescriptor
    private let timer: OwnedDescriptor
    private let state = Mutex(State())
    /// The executor of actors on this loop.
    let actorExecutor = LoopActorExecutor()
    /// `pthread_self()` of the running loop, 0 while it does not run.
    private let thread = Atomic<UInt>(0)
    private let iterations = Atomic<UInt64>(0)

    /// Makes a loop that does not run yet.
    public convenience init() throws(SystemCallError) {
        try self.init(jobClocks: .system)
    }

    /// - Parameter jobClocks: The clocks that measure jobs; tests have their own.
    init(jobClocks: JobTimer.Clocks) throws(SystemCallError) {
        jobWatch = JobWatch(jobClocks)
        epoll = try OwnedDescriptor(epoll_create1(Int32(EPOLL_CLOEXEC)), of: "epoll_create1")
        wakeUp = try OwnedDescriptor(
            eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)), of: "eventfd")
        // CLOCK_BOOTTIME continues while the machine sleeps: timers that became due in the meantime expire at resume.
        timer = try OwnedDescriptor(
            timerfd_create(CLOCK_BOOTTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK)), of: "timerfd_create")
        for descriptor in [wakeUp, timer] {
            try control(EPOLL_CTL_ADD, descriptor.rawValue, interest: .read, generation: 0)
        }
        actorExecutor.connect(to: self)
    }

    /// The loop's clock: boot time, like `ContinuousClock` on Linux; its sleeps are timers of this loop.
    public var clock: LoopClock { LoopClock(loop: self) }

    /// Whether the caller is on the loop's thread.
    public var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// The number of calls of `epoll_wait` that have returned: equal numbers mean the same iteration.
    package var iteration: UInt64 { iterations.load(ordering: .relaxed) }

    // MARK: Running

    /// Runs the loop on the calling thread until ``stop()``.
    ///
    /// Each iteration runs the ready jobs, waits for events, runs the observers of wake-ups (``observeWakeUps(_:)``),
    /// and then expired timers before descriptors' handlers. Jobs that jobs add run in the same iteration, up to
    /// `jobRoundsPerIteration` rounds and for `jobTimePerIteration`, so that descriptors are never starved.
    public func run() {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        defer { thread.store(0, ordering: .relaxed) }
        var events = [epoll_event](repeating: epoll_event(), count: Self.eventsPerIteration)
        while runReadyJobs() {
            let timeout = prepareToWait()
            let count = epoll_wait(epoll.rawValue, &events, Int32(events.count), timeout)
            let observers = state.withLock { state in
                state.needsWake = false
                return state.wakeUpObservers
            }
            iterations.add(1, ordering: .relaxed)
            jobWatch.iterationBegins()
            // Read the clock before the observers run: if the machine sleeps after they ran, timers that became due in
            // that sleep do not expire before the observers have run again.
            let now = ContinuousClock.Instant.now
            if !observers.isEmpty, notify(observers), !runReadyJobs() { return }
            expireTimers(until: now)
            // A negative count is EINTR (a debugger, or a stop with its SIGCONT): no event was delivered.
            guard count > 0 else { continue }
            for index in 0..<Int(count) { dispatch(events[index]) }
        }
    }

    /// Makes ``run()`` return after the current iteration. A stopped loop does not run again.
    public func stop() {
        let wake = state.withLock { state in
            state.stopped = true
            return state.takeWake()
        }
        if wake { wakeFromOutside() }
    }

    /// Starts a thread that runs the loop until ``stop()``; for programs whose main thread has other work.
    ///
    /// - Parameter name: The thread's name, at most 15 bytes (pthread_setname_np(3)).
    public func runInThread(named name: String = "event-loop") throws(SystemCallError) {
        try Thread.start(named: name) { self.run() }
    }

    /// Returns false if the loop was stopped.
    private func runReadyJobs() -> Bool {
        var began: ContinuousClock.Instant?
        for _ in 0..<Self.jobRoundsPerIteration {
            let (jobs, calls, taskExecutor, stopped) = state.withLock { state in
                let (jobs, calls) = (state.jobs, state.calls)
                state.jobs.removeAll(keepingCapacity: jobs.count <= 1_024)
                state.calls = []
                state.endedJobs += jobs.count
                return (jobs, calls, state.taskExecutor, state.stopped)
            }
            for call in calls {
                call.handle()
                jobWatch.jobEnded(call.name)
            }
            for ready in jobs {
                let executor = ready.executor ?? asUnownedTaskExecutor()
                if ready.isOfActor {
                    ready.job.runSynchronously(
                        isolatedTo: asUnownedSerialExecutor(), taskExecutor: taskExecutor ?? executor)
                } else {
                    ready.job.runSynchronously(on: executor)
                }
                jobWatch.jobEnded("task")
            }
            if stopped { return false }
            if jobs.isEmpty && calls.isEmpty { break }
            let now = ContinuousClock.Instant.now
            if let began, now - began > Self.jobTimePerIteration { break }
            began = began ?? now
        }
        return true
    }

    /// Arms the timer for the earliest deadline and returns the timeout for `epoll_wait`.
    private func prepareToWait() -> Int32 {
        let (deadline, change, timeout) = state.withLock { state -> (TimerQueue.Nanoseconds?, Bool, Int32) in
            let earliest = state.timers.earliest
            var change = earliest != state.armed
            // A timer that is already due needs no kernel timer: it expires after the next check of the descriptors.
            let isDue = if change, let earliest { earliest <= TimerQueue.nanoseconds(.now) } else { false }
            if isDue { change = false }
            if change { state.armed = earliest }
            let busy = !state.jobs.isEmpty || !state.calls.isEmpty || state.stopped || isDue
            state.needsWake = !busy
            return (earliest, change, busy ? 0 : -1)
        }
        if change { armTimer(at: deadline) }
        return timeout
    }

    private func armTimer(at deadline: TimerQueue.Nanoseconds?) {
        var setting = itimerspec()
        if let deadline {
            // At least one nanosecond: zero would disarm the timer.
            let wait = max(deadline.subtractingReportingOverflow(TimerQueue.nanoseconds(.now)).partialValue, 1)
            setting.it_value = timespec(tv_sec: Int(wait / 1_000_000_000), tv_nsec: Int(wait % 1_000_000_000))
        }
        timerfd_settime(timer.rawValue, 0, &setting, nil)
    }

    private func expireTimers(until now: ContinuousClock.Instant) {
        while true {
            let (handler, expired) = state.withLock { state -> (NamedHandler?, Bool) in
                guard let identifier = state.timers.popExpired(at: now) else { return (nil, false) }
                return (state.timerHandlers[identifier], true)
            }
            guard expired else { return }
            guard let handler else { continue }
            handler.handle()
            jobWatch.jobEnded(handler.name)
        }
    }

    private func dispatch(_ event: epoll_event) {
        let data = withUnsafePointer(to: event) { freshet_epoll_data($0) }
        let descriptor = Int32(truncatingIfNeeded: data)
        if descriptor == wakeUp.rawValue || descriptor == timer.rawValue {
            var count: UInt64 = 0
            _ = read(descriptor, &count, MemoryLayout<UInt64>.size)
            if descriptor == timer.rawValue { state.withLock { $0.armed = nil } }
            return
        }
        let watch = state.withLock { state -> Watch? in
            guard let watch = state.watches[descriptor], watch.generation == UInt32(data >> 32) else { return nil }
            return watch
        }
        guard let watch else { return }
        watch.handler(Readiness(epoll: event.events))
        jobWatch.jobEnded(watch.name)
    }

    // MARK: Descriptors

    /// Watches a descriptor, level-triggered: the handler runs on the loop's thread while the descriptor is ready.
    ///
    /// The caller keeps the descriptor and has to cancel the watch before it closes the descriptor. There is one watch
    /// for each descriptor: a second one fails with EEXIST.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor, which need not be in non-blocking mode.
    ///   - interest: the conditions to wait for.
    ///   - name: the name of the handler in logs if it is slow.
    ///   - handler: called with the conditions that hold.
    /// - Returns: The watch, which ends when it is cancelled or released.
    public func watch(
        _ descriptor: Int32, for interest: Interest, named name: String = "descriptor",
        _ handler: @escaping @Sendable (Readiness) -> Void
    ) throws(SystemCallError) -> DescriptorWatch {
        let generation = state.withLock { state in
            state.nextGeneration &+= 1
            return state.nextGeneration
        }
        try control(EPOLL_CTL_ADD, descriptor, interest: interest, generation: generation)
        state.withLock {
            $0.watches[descriptor] = Watch(
                generation: generation, interest: interest, name: name, handler: handler)
        }
        return DescriptorWatch(loop: self, descriptor: descriptor, generation: generation)
    }

    func change(_ descriptor: Int32, generation: UInt32, to interest: Interest) {
        let changed = state.withLock { state -> Bool in
            guard let watch = state.watches[descriptor], watch.generation == generation, watch.interest != interest
            else { return false }
            state.watches[descriptor]?.interest = interest
            return true
        }
        // A failure means that the descriptor was closed outside of this loop; there will be no more events.
        if changed { try? control(EPOLL_CTL_MOD, descriptor, interest: interest, generation: generation) }
    }

    func unwatch(_ descriptor: Int32, generation: UInt32) {
        let removed = state.withLock { state -> Watch? in
            guard state.watches[descriptor]?.generation == generation else { return nil }
            return state.watches.removeValue(forKey: descriptor)
        }
        // Release the handler's captures outside the lock, because they may call the loop again, and after the call,
        // because they may own the descriptor, whose number can be reused once it is closed.
        withExtendedLifetime(removed) {
            if removed != nil { epoll_ctl(epoll.rawValue, EPOLL_CTL_DEL, descriptor, nil) }
        }
    }

    private func control(
        _ operation: Int32, _ descriptor: Int32, interest: Interest, generation: UInt32
    ) throws(SystemCallError) {
        var event = epoll_event()
        event.events = interest.epoll
        freshet_epoll_set_data(&event, UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor)))
        guard epoll_ctl(epoll.rawValue, operation, descriptor, &event) == 0 else {
            throw SystemCallError("epoll_ctl", errno: errno, subject: "descriptor \(descriptor)")
        }
    }

    // MARK: Timers

    /// The number of timers and of armed timers, for tests.
    var timerCounts: (made: Int, armed: Int) { state.withLock { ($0.timerHandlers.count, $0.timers.count) } }

    func makeTimer(_ name: String, _ handler: @escaping @Sendable () -> Void) -> TimerQueue.Identifier {
        state.withLock { state in
            state.nextTimer += 1
            state.timerHandlers[state.nextTimer] = NamedHandler(name: name, handle: handler)
            return state.nextTimer
        }
    }

    func arm(_ timer: TimerQueue.Identifier, at deadline: ContinuousClock.Instant) {
        let wake = state.withLock { state -> Bool in
            state.timers.arm(timer, at: deadline)
            return state.timers.earliest == state.armed ? false : state.takeWake()
        }
        if wake { wakeFromOutside() }
    }

    func disarm(_ timer: TimerQueue.Identifier) {
        state.withLock { $0.timers.disarm(timer) }
    }

    func removeTimer(_ timer: TimerQueue.Identifier) {
        let removed = state.withLock { state in
            state.timers.disarm(timer)
            return state.timerHandlers.removeValue(forKey: timer)
        }
        withExtendedLifetime(removed) {}
    }

    // MARK: Wake-ups

    func addWakeUpObserver(_ observe: @escaping @Sendable () -> Bool) -> UInt64 {
        state.withLock { state in
            state.nextObserver += 1
            state.wakeUpObservers.append((state.nextObserver, observe))
            return state.nextObserver
        }
    }

    func removeWakeUpObserver(_ identifier: UInt64) {
        let removed = state.withLock { state in
            let index = state.wakeUpObservers.firstIndex { $0.identifier == identifier }
            return index.map { state.wakeUpObservers.remove(at: $0) }
        }
        // Release its captures outside the lock: they may call the loop again.
        withExtendedLifetime(removed) {}
    }

    /// Returns whether an observer requires the jobs to run before the timers.
    private func notify(_ observers: [(identifier: UInt64, observe: @Sendable () -> Bool)]) -> Bool {
        var mustRunJobs = false
        for observer in observers where observer.observe() { mustRunJobs = true }
        jobWatch.jobEnded("wake-up observer")
        return mustRunJobs
    }

    // MARK: Jobs

    /// Runs a closure on the loop's thread, in the next iteration; closures run in the order of the calls.
    ///
    /// Use it for objects that belong to that thread, such as a C object that may be used on one thread only. A stopped
    /// loop does not run the closure.
    ///
    /// - Parameters:
    ///   - name: the name of the closure in logs if it is slow.
    ///   - body: the closure.
    public func perform(named name: String = "call", _ body: @escaping @Sendable () -> Void) {
        let wake = state.withLock { state in
            if state.stopped { return false }
            state.calls.append(NamedHandler(name: name, handle: body))
            return state.takeWake()
        }
        if wake { wakeFromOutside() }
    }

    /// The number of jobs that have run or run now, for tests.
    package var jobCount: Int { state.withLock { $0.endedJobs } }

    /// Sets the executor that the runtime selects for tasks without a preference, if it uses this loop. Methods of an
    /// actor on this loop then call each other in one job.
    package func serve(_ executor: UnownedTaskExecutor) {
        state.withLock { $0.taskExecutor = executor }
    }

    /// - Parameters:
    ///   - executor: see ``enqueue(_:as:)``; nil: this loop.
    ///   - isOfActor: whether the job is for an actor whose executor is ``actorExecutor``.
    func enqueue(job: UnownedJob, as executor: UnownedTaskExecutor? = nil, isOfActor: Bool = false) {
        let wake = state.withLock { state in
            state.jobs.append(ReadyJob(job: job, executor: executor, isOfActor: isOfActor))
            return state.takeWake()
        }
        if wake { wakeFromOutside() }
    }

    private func wakeFromOutside() {
        var one: UInt64 = 1
        // It fails only when the counter is full; then the loop is awake.
        _ = write(wakeUp.rawValue, &one, MemoryLayout<UInt64>.size)
    }
}

extension Interest {
    var epoll: UInt32 {
        (contains(.read) ? EPOLLIN.rawValue | EPOLLRDHUP.rawValue : 0) | (contains(.write) ? EPOLLOUT.rawValue : 0)
    }
}

extension Readiness {
    init(epoll events: UInt32) {
        self = []
        if events & (EPOLLIN.rawValue | EPOLLPRI.rawValue) != 0 { insert(.read) }
        if events & EPOLLOUT.rawValue != 0 { insert(.write) }
        if events & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { insert(.hangup) }
        if events & EPOLLERR.rawValue != 0 { insert(.error) }
    }
}
