package import FreshetPipelines
import FreshetSignals
import FreshetTestKit

/// A portal before the internet: it lets probes through, answers them itself, or does not answer.
package final class ScriptedPortal: Probing {
    package enum Answer: Sendable {
        case lets
        case redirects
        case fails(RunFailure)
        /// It hangs until it is cancelled.
        case hangs
        indirect case after(Duration, Answer)
    }

    package struct RecordedRequest: Hashable, Sendable {
        package var at: Double
        package var url: String
        package var epoch: UInt64

        package init(at: Double, url: String, epoch: UInt64) {
            self.at = at
            self.url = url
            self.epoch = epoch
        }
    }

    private struct State {
        var answer = Answer.lets
        var asked: [RecordedRequest] = []
        var proofs: [Double] = []
        var open = 0
        var mostOpen = 0
    }

    private let state = Lock(State())
    private let clock: ScriptedClock

    package init(clock: ScriptedClock) { self.clock = clock }

    /// Its answer from now on.
    package func answers(_ answer: Answer) { state.withLock { $0.answer = answer } }

    package var asked: [RecordedRequest] { state.withLock { $0.asked } }
    /// When it got requests, in seconds since the beginning.
    package var times: [Double] { asked.map(\.at) }
    /// When it let a probe through.
    package var proofs: [Double] { state.withLock { $0.proofs } }
    /// The number of requests in progress, and its maximum.
    package var open: Int { state.withLock { $0.open } }
    package var mostOpen: Int { state.withLock { $0.mostOpen } }

    package func probe(_ probe: NetworkProbe, epoch: UInt64) async throws(FetchError) {
        let asked = RecordedRequest(at: seconds(clock.manual.elapsed), url: probe.url, epoch: epoch)
        let answer = state.withLock { state in
            state.asked.append(asked)
            state.open += 1
            state.mostOpen = max(state.mostOpen, state.open)
            return state.answer
        }
        defer { state.withLock { $0.open -= 1 } }
        try await give(answer)
    }

    private func give(_ answer: Answer) async throws(FetchError) {
        switch answer {
        case .lets:
            let now = seconds(clock.manual.elapsed)
            state.withLock { $0.proofs.append(now) }
        case .redirects: throw .failed(RunFailure(.refused, "answered 302 to http://portal.example/login"))
        case .fails(let failure): throw .failed(failure)
        case .hangs:
            try? await clock.manual.sleep(for: .seconds(1_000_000))
            throw .cancelled
        case .after(let wait, let answer):
            do { try await clock.manual.sleep(for: wait) } catch { throw .cancelled }
            try await give(answer)
        }
    }
}

extension NetworkProbe {
    /// The probe of tests, and its log messages.
    package static let scripted = NetworkProbe(url: "http://probe.example/204", host: "probe.example")
    package static let scriptedRefusal =
        "the network does not reach http://probe.example/204: answered 302 to http://portal.example/login"
}
