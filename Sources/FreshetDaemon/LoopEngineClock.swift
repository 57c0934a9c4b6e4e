import FreshetEventLoop
import FreshetPipelines
import Glibc

/// The engine's time, by the loop: boot time, and timers of the loop.
struct LoopEngineClock: EngineClock {
    let loop: EventLoop

    var now: ContinuousClock.Instant { .now }
    var wallNow: Int64 { WallClock.now }

    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        LoopTimer(loop, named: "pipeline timer", handler)
    }
}

extension LoopTimer: EngineTimer {}

/// The wall clock, read at the edge only.
enum WallClock {
    /// Microseconds since 1970-01-01 UTC.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    /// The moment of the wall clock at which the boot clock had, or will have, this instant, in microseconds since
    /// 1970, as the wall clock stands now.
    static func microseconds(at instant: ContinuousClock.Instant) -> Int64 {
        now + (instant - .now).microseconds
    }
}
