import Glibc
import TestSupport
import Testing

/// The cost of each reader in relation to the length of its input.
@Suite("An input of twice the size costs at most two and a half times as much", .serialized, .hangLimit)
struct CostTests {
    /// Three doublings: eight times the size, for which a cost that grows with the square is 64 times as much.
    private static let doublings = 3
    /// 2.5 for each doubling.
    private static let most = 15.6
    /// Shorter measurements are only noise.
    private static let shortest: Duration = .microseconds(200)

    struct Case: Sendable, CustomTestStringConvertible {
        var target: FuzzTarget
        var shape: CostShape
        var testDescription: String { "\(target.name): \(shape.name)" }
    }

    static let cases = FuzzTargets.all.flatMap { target in target.shapes.map { Case(target: target, shape: $0) } }

    @Test("whatever grows in it", arguments: cases)
    func cost(_ example: Case) {
        let (read, shape) = (example.target.read, example.shape)
        let large = shape.input(ofBytes: shape.largest)
        let small = shape.input(ofBytes: shape.largest >> Self.doublings)
        // The shortest of several measurements has the least disturbance.
        var (least, base) = (Duration.seconds(1 << 30), Duration.seconds(1 << 30))
        for attempt in 0..<12 {
            base = min(base, time { read(small) })
            least = min(least, time { read(large) })
            let ratio = least / max(base, Self.shortest)
            if attempt >= 1, ratio <= Self.most { return }
            // The difference is far beyond the noise.
            if attempt >= 1, ratio > 2.5 * Self.most { break }
        }
        Issue.record("\(small.count) bytes take \(base), and \(large.count) bytes take \(least)")
    }

    /// The processor time of this thread.
    private func time(_ body: () -> Void) -> Duration {
        let start = used()
        body()
        return used() - start
    }

    private func used() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}
