import FreshetEventLoop
import FreshetModel
import FreshetPipelines
import Glibc

/// The engine's clock: boot time, with timers of the event loop.
struct LoopEngineClock: EngineClock {
    let loop: EventLoop
    let zones: ZoneFiles

    init(loop: EventLoop, zones: ZoneFiles = ZoneFiles()) {
        self.loop = loop
        self.zones = zones
    }

    var now: BootInstant { .now }
    var wallNow: WallTime { .now }
    func zone(named name: String?) -> TimeZoneRules { zones.rules(named: name) }

    func makeTimer(_ handler: @escaping @Sendable () -> Void) -> any EngineTimer {
        LoopEngineTimer(LoopTimer(loop, named: "pipeline timer", handler))
    }
}

private final class LoopEngineTimer: EngineTimer {
    private let timer: LoopTimer

    init(_ timer: LoopTimer) { self.timer = timer }

    func arm(at instant: BootInstant) { timer.arm(at: instant.continuous) }
    func disarm() { timer.disarm() }
}

extension WallTime {
    /// The wall clock's time, in whole microseconds.
    static var now: WallTime { WallTime(microseconds: WallClock.now) }
}

/// The wall clock. The engine itself uses boot time; only the interfaces to users and storage use the wall clock.
enum WallClock {
    /// Microseconds since 1970-01-01 UTC.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    /// Converts an instant of the boot clock to wall-clock microseconds since 1970, by the current difference of the
    /// clocks.
    static func microseconds(at instant: BootInstant) -> Int64 {
        now + (instant - .now).microseconds
    }
}
