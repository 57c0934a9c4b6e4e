package import FreshetModel
package import FreshetPipelines
import FreshetSignals
package import FreshetTestKit

/// The engine's clock on a manual clock: its timers are tasks of the test's executor.
package final class ScriptedClock: EngineClock {
    package let manual: ManualClock
    package let executor: SerialTestExecutor
    /// The wall clock at the manual clock's start.
    package let wallStart: WallTime
    /// How far it was set since then, in microseconds.
    private let wallSteps = Lock<Int64>(0)
    /// How much later each reading of the wall clock is than the previous one, in microseconds: on a busy machine a
    /// thread may pause between two readings.
    package var lookTakes: Int64 {
        get { wallLook.withLock { $0 } }
        set { wallLook.withLock { $0 = newValue } }
    }
    private let wallLook = Lock<Int64>(0)

    package init(
        executor: SerialTestExecutor, start: BootInstant = .now, wallStart: WallTime = 1_700_000_000_000_000
    ) {
        manual = ManualClock(start: start.continuous)
        self.executor = executor
        self.wallStart = wallStart
    }

    package var start: BootInstant { BootInstant(manual.start) }
    package var now: BootInstant { BootInstant(manual.now) }
    package var wallNow: WallTime {
        let step = lookTakes
        let set = wallSteps.withLock { steps in
            defer { steps += step }
            return steps
        }
        return wallStart + (set + manual.elapsed.microseconds)
    }

    /// Sets the wall clock forward, or back.
    package func stepWall(by step: Duration) {
        wallSteps.withLock { $0 += step.microseconds }
    }

    package func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        Timer(clock: self, handler: handler)
    }

    private final class Timer: EngineTimer {
        let clock: ScriptedClock
        let handler: @Sendable () -> Void
        let task = Lock<Task<Void, Never>?>(nil)

        init(clock: ScriptedClock, handler: @escaping @Sendable () -> Void) {
            self.clock = clock
            self.handler = handler
        }

        func arm(at instant: BootInstant) {
            let sleep = Task(executorPreference: clock.executor) { [manual = clock.manual, handler] in
                do {
                    try await manual.sleep(until: instant.continuous)
                    handler()
                } catch {
                    // Withdrawn.
                }
            }
            replace(sleep)
        }

        func disarm() { replace(nil) }

        private func replace(_ new: Task<Void, Never>?) {
            let old = task.withLock { task in
                defer { task = new }
                return task
            }
            old?.cancel()
        }

        deinit { task.withLock { $0 }?.cancel() }
    }
}

/// Seconds, rounded to milliseconds, so that they can be compared.
package func seconds(_ duration: Duration) -> Double {
    let (seconds, attoseconds) = duration.components
    return ((Double(seconds) + Double(attoseconds) / 1e18) * 1000).rounded() / 1000
}
