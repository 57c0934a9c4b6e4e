import AsyncAlgorithms
import CMeasure
import FreshetSignals
import Glibc
import Synchronization

/// Scenarios that might crash, hang or leak: each runs in its own process, which prints one number.
enum Danger: String, CaseIterable {
    case flatMapLatest
    case flatMapLatestCancelled
    case debounceCancelled
    case ourRestart
    case ourRestartCancelled
    case ourDebounceCancelled

    /// How often each scenario runs, and its time limit.
    static let times = 3
    static let seconds: UInt32 = 2
    private static let restarts = 2_000
    private static let cancels = 200

    var name: String {
        switch self {
        case .flatMapLatest: "swift-async-algorithms, flatMapLatest: restarts"
        case .flatMapLatestCancelled: "swift-async-algorithms, flatMapLatest: cancelled"
        case .debounceCancelled: "swift-async-algorithms, debounce: cancelled"
        case .ourRestart: "Freshet, publish: restarts"
        case .ourRestartCancelled: "Freshet, publish: cancelled"
        case .ourDebounceCancelled: "Freshet, debounce: cancelled"
        }
    }

    /// The meaning of the number.
    var meaning: String {
        switch self {
        case .flatMapLatest, .ourRestart: "ns for each of \(Self.restarts)"
        default: "of \(Self.cancels) upstreams not released"
        }
    }

    /// The work of the child process.
    func run() async -> Double {
        switch self {
        case .flatMapLatest: await Self.restart { $0.flatMapLatest { _ in oneThenNothing() } }
        case .ourRestart: await Self.restart { stream in publish(onOutputFrom: stream) { oneThenNothing() } }
        case .flatMapLatestCancelled: await Self.cancel { $0.flatMapLatest { _ in oneThenNothing() } }
        case .ourRestartCancelled: await Self.cancel { stream in publish(onOutputFrom: stream) { oneThenNothing() } }
        case .debounceCancelled: await Self.cancel { $0.debounce(for: .milliseconds(1)) }
        case .ourDebounceCancelled: await Self.cancel { $0.debounce(for: .milliseconds(1), atMost: nil) }
        }
    }

    private static func restart<S: AsyncSequence & Sendable>(_ make: (AsyncStream<Int>) -> S) async -> Double {
        let stream = AsyncStream<Int>.makeStream()
        var iterator = make(stream.stream).makeAsyncIterator()
        let start = measure_now()
        for number in 0..<restarts {
            stream.continuation.yield(number)
            _ = try? await iterator.next(isolation: nil)
        }
        return Double(measure_now() - start) / Double(restarts)
    }

    private static func cancel<S: AsyncSequence & Sendable>(
        _ make: @escaping @Sendable (Watched) -> S
    ) async -> Double {
        let alive = Counter()
        for number in 0..<cancels {
            let stream = AsyncStream<Int>.makeStream()
            let task = Task {
                var iterator = make(Watched(stream: stream.stream, alive: alive)).makeAsyncIterator()
                while (try? await iterator.next(isolation: nil)) != nil {}
            }
            // Cancelled at many moments of its life.
            stream.continuation.yield(number)
            for _ in 0..<number % 20 { await Task.yield() }
            task.cancel()
            await task.value
        }
        // The rest of the clean-up gets one second.
        let end = measure_now() + 1_000_000_000
        while alive.value > 0, measure_now() < end { await Task.yield() }
        return Double(alive.value)
    }
}

/// A stream whose live iterators are counted.
private struct Watched: AsyncSequence, Sendable {
    let stream: AsyncStream<Int>
    let alive: Counter

    final class Witness: Sendable {
        let alive: Counter

        init(_ alive: Counter) {
            self.alive = alive
            alive.add()
        }

        deinit { alive.add(-1) }
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: AsyncStream<Int>.AsyncIterator
        let witness: Witness

        mutating func next(isolation: isolated (any Actor)? = #isolation) async -> Int? {
            await base.next(isolation: isolation)
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: stream.makeAsyncIterator(), witness: Witness(alive))
    }
}

/// Runs each scenario in child processes, and prints how they ended.
func watchDangers() {
    var lines = [["", "how each of \(Danger.times) processes ended, and its number"]]
    for danger in Danger.allCases {
        let ends = (0..<Danger.times).map { _ in end(of: measure_child("--child=" + danger.rawValue, Danger.seconds)) }
        lines.append([danger.name + ", " + danger.meaning, ends.joined(separator: "; ")])
    }
    print("\n### What crashes, hangs or leaks, in processes of its own\n")
    printLines(lines)
    fflush(nil)
}

private func end(of child: measure_child) -> String {
    guard child.started else { return "not started" }
    switch child.signal {
    case 0: return child.status == 0 ? rounded(child.result) : "exit status \(child.status)"
    case SIGALRM: return "hung"
    default: return "crashed (\(String(cString: strsignal(child.signal))))"
    }
}
