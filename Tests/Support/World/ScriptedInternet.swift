package import FreshetPipelines
import FreshetSignals
import FreshetTestKit

/// The network and its services: an origin for each URL, behind a link that comes and goes. Commands and files have an
/// origin each too, and need no link.
package final class ScriptedInternet: Fetching {
    private struct State {
        var origins: [String: ScriptedOrigin] = [:]
        var isUp = true
        /// Grows each time that the link is lost.
        var breaks = 0
        var open = 0
        var openByLabel: [String: Int] = [:]
        var mostOpen = 0
    }

    private let state = Lock(State())
    private let clock: ScriptedClock
    /// The portal for probes.
    package let portal: ScriptedPortal

    package init(clock: ScriptedClock) {
        self.clock = clock
        portal = ScriptedPortal(clock: clock)
    }

    /// The origin of a URL, of a path, or of a command's words with spaces between.
    package subscript(source: String) -> ScriptedOrigin {
        state.withLock { state in
            if let origin = state.origins[source] { return origin }
            let origin = ScriptedOrigin(clock: clock)
            state.origins[source] = origin
            return origin
        }
    }

    /// Without the link no connection is made, and existing connections are dead: they hang until they are cancelled.
    package var isUp: Bool {
        get { state.withLock { $0.isUp } }
        set {
            state.withLock { state in
                if state.isUp, !newValue { state.breaks += 1 }
                state.isUp = newValue
            }
        }
    }

    /// The existing connections are dead, as after a sleep; new ones can be made.
    package func breakConnections() {
        state.withLock { $0.breaks += 1 }
    }

    /// The number of requests in progress to URLs whose host begins with this label.
    package func requests(of label: String) -> Int { state.withLock { $0.openByLabel[label] ?? 0 } }

    /// The number of requests in progress, and its maximum.
    package var open: Int { state.withLock { $0.open } }
    package var mostOpen: Int { state.withLock { $0.mostOpen } }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        let (needsLink, name) =
            switch request.source {
            case .http(let source): (!source.isLocal, source.url)
            case .command(let words): (false, words.joined(separator: " "))
            case .file(let path), .copy(_, let path): (false, path)
            case .joined: (false, "")
            }
        let label = String(name.drop { $0 != "/" }.drop { $0 == "/" }.prefix { $0 != "." })
        let (isUp, breaks) = state.withLock { state in
            state.open += 1
            state.openByLabel[label, default: 0] += 1
            state.mostOpen = max(state.mostOpen, state.open)
            return (state.isUp, state.breaks)
        }
        defer {
            state.withLock { state in
                state.open -= 1
                state.openByLabel[label, default: 0] -= 1
            }
        }
        guard isUp || !needsLink else { throw .failed(RunFailure(.connection, "no route to the host")) }
        let result = try await self[name].fetch(request)
        if needsLink, state.withLock({ $0.breaks }) != breaks {
            try? await clock.manual.sleep(for: .seconds(1_000_000))
            throw .cancelled
        }
        return result
    }
    package func resolve(_ reference: String, against base: String) -> WebAddress? {
        ScriptedURLs.resolve(reference, against: base)
    }
}
