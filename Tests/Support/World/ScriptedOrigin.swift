package import FreshetPipelines
import FreshetSignals
import FreshetTestKit

/// A source that answers as it was told to.
package final class ScriptedOrigin: Fetching {
    package enum Answer: Sendable {
        case content(String, type: String? = nil, tag: String? = nil)
        /// Content that is kept aside if the request says where.
        case long(String, type: String? = nil, tag: String? = nil)
        case notModified
        /// The answer, and for how much longer it is fresh.
        indirect case fresh(Duration, Answer)
        /// 304 if the request knows this version, else its content.
        case version(String, type: String? = nil, tag: String)
        case fails(RunFailure)
        /// Until it is cancelled; then it takes so long to clean up.
        case hangs(cleanUp: Duration = .zero)
        indirect case after(Duration, Answer)
        /// After so long, cancelled or not.
        indirect case stubborn(Duration, Answer)
    }

    package struct Asked: Sendable {
        package var at: Double
        /// With its places filled.
        package var source: SourceDefinition
        package var validators: Validators?
        package var epoch: UInt64
    }

    private struct State {
        var answers: [Answer] = []
        var last = Answer.content("data")
        var asked: [Asked] = []
        var open = 0
        var sayings: [(at: ContinuousClock.Instant, text: String)] = []
        /// What it gave under each tag.
        var versions: [String: String] = [:]
    }

    private let state = Lock(State())
    private let clock: ScriptedClock

    package init(clock: ScriptedClock) { self.clock = clock }

    /// The answers to the next requests; the last one is given for ever.
    package func answers(_ answers: Answer...) {
        state.withLock { state in
            state.answers = answers
            state.last = answers.last ?? state.last
        }
    }

    /// One answer more, after those that were told; the last one is given for ever.
    ///
    /// - Parameter first: those from before are forgotten.
    package func add(_ answer: Answer, first: Bool = false) {
        state.withLock { state in
            if first { state.answers = [] }
            state.answers.append(answer)
            state.last = answer
        }
    }

    package var asked: [Asked] { state.withLock { $0.asked } }
    /// When it was asked, in seconds since the beginning.
    package var times: [Double] { asked.map(\.at) }
    /// The last contents that it gave or confirmed since an instant. There may be several: whoever is cancelled, or is
    /// no more, is given one too.
    package func said(since instant: ContinuousClock.Instant) -> [String] {
        state.withLock { $0.sayings.filter { $0.at >= instant }.map(\.text) }
    }

    private func says(_ text: String, as tag: String? = nil) {
        let now = clock.now
        state.withLock { state in
            if state.sayings.count >= 16 { state.sayings.removeFirst() }
            state.sayings.append((now, text))
            if let tag { state.versions[tag] = text }
        }
    }
    /// How many requests have not returned yet.
    package var open: Int { state.withLock { $0.open } }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        request.asked()
        let asked = Asked(
            at: seconds(clock.manual.elapsed), source: request.source, validators: request.validators,
            epoch: request.epoch)
        let answer = state.withLock { state in
            state.asked.append(asked)
            state.open += 1
            return state.answers.isEmpty ? state.last : state.answers.removeFirst()
        }
        defer { state.withLock { $0.open -= 1 } }
        return try await give(answer, request)
    }

    package func resolve(_ reference: String, against base: String) -> WebAddress? {
        ScriptedURLs.resolve(reference, against: base)
    }

    private func give(_ answer: Answer, _ request: FetchRequest) async throws(FetchError) -> FetchResult {
        switch answer {
        case .content(let text, let type, let tag):
            says(text, as: tag)
            request.progress(UInt64(text.utf8.count))
            return .content(
                FetchedContent(bytes: Array(text.utf8), mediaType: type, validators: Validators(entityTag: tag)))
        case .long(let text, let type, let tag):
            guard let keeper = request.keeper else {
                return try await give(.content(text, type: type, tag: tag), request)
            }
            says(text, as: tag)
            do throws(RunFailure) {
                let body = try await keeper.begin(expecting: nil)
                try await body.append(Array(text.utf8))
                return .content(
                    FetchedContent(
                        .kept(StoredBody(body, size: text.utf8.count)), mediaType: type,
                        validators: Validators(entityTag: tag)))
            } catch {
                throw .failed(error)
            }
        case .notModified:
            // What the client has is confirmed, be it older than what was given last: that need not have reached its disk.
            let tag = request.validators?.entityTag
            if let text = state.withLock({ state in tag.flatMap { state.versions[$0] } }) { says(text) }
            return .notModified(nil)
        case .version(let text, let type, let tag):
            guard request.validators?.entityTag == tag else {
                return try await give(.content(text, type: type, tag: tag), request)
            }
            says(text)
            return .notModified(nil)
        case .fresh(let freshFor, let answer):
            switch try await give(answer, request) {
            case .notModified(let validators, _): return .notModified(validators, freshFor: freshFor)
            case .content(var content):
                content.freshFor = freshFor
                return .content(content)
            }
        case .fails(let failure): throw .failed(failure)
        case .hangs(let cleanUp):
            request.progress(3)
            try? await clock.manual.sleep(for: .seconds(1_000_000))
            if cleanUp > .zero { await sleepOn(cleanUp) }
            throw .cancelled
        case .after(let wait, let answer):
            do { try await clock.manual.sleep(for: wait) } catch { throw .cancelled }
            return try await give(answer, request)
        case .stubborn(let wait, let answer):
            await sleepOn(wait)
            return try await give(answer, request)
        }
    }

    /// Not to be cancelled, for it is a task of its own.
    private func sleepOn(_ wait: Duration) async {
        let sleep = Task(executorPreference: clock.executor) { [clock] in
            try? await clock.manual.sleep(for: wait)
        }
        await sleep.value
    }
}
