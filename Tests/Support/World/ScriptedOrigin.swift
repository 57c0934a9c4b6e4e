package import FreshetModel
package import FreshetPipelines
import FreshetSignals
import FreshetTestKit

/// A source with scripted answers.
package final class ScriptedOrigin: Fetching {
    package enum Answer: Sendable {
        case content(String, type: String? = nil, tag: String? = nil)
        /// Content that is stored if the request has a store.
        case long(String, type: String? = nil, tag: String? = nil)
        case notModified
        /// The answer, and its remaining freshness.
        indirect case fresh(Duration, Answer)
        /// 304 if the request knows this version, else its content.
        case version(String, type: String? = nil, tag: String)
        case fails(RunFailure)
        /// It hangs until it is cancelled; then it takes this time to clean up.
        case hangs(cleanUp: Duration = .zero)
        indirect case after(Duration, Answer)
        /// It answers after this time, cancelled or not.
        indirect case stubborn(Duration, Answer)
    }

    package struct RecordedRequest: Sendable {
        package var at: Double
        /// With its placeholders filled.
        package var source: SourceDefinition
        package var validators: Validators?
        package var epoch: UInt64
    }

    private struct State {
        var answers: [Answer] = []
        var last = Answer.content("data")
        var asked: [RecordedRequest] = []
        var open = 0
        var sentContents: [(at: BootInstant, text: String)] = []
        /// The content under each tag.
        var versions: [String: String] = [:]
    }

    private let state = Lock(State())
    private let clock: ScriptedClock

    package init(clock: ScriptedClock) { self.clock = clock }

    /// The answers to the next requests; the last one is repeated forever.
    package func answers(_ answers: Answer...) {
        state.withLock { state in
            state.answers = answers
            state.last = answers.last ?? state.last
        }
    }

    /// Appends one answer; the last one is repeated forever.
    ///
    /// - Parameter first: earlier answers are dropped.
    package func add(_ answer: Answer, first: Bool = false) {
        state.withLock { state in
            if first { state.answers = [] }
            state.answers.append(answer)
            state.last = answer
        }
    }

    package var asked: [RecordedRequest] { state.withLock { $0.asked } }
    /// When it got requests, in seconds since the beginning.
    package var times: [Double] { asked.map(\.at) }
    /// The contents that it sent or confirmed last since an instant. There may be several: a cancelled client, or one
    /// that has ended, gets one too.
    package func sent(since instant: BootInstant) -> [String] {
        state.withLock { $0.sentContents.filter { $0.at >= instant }.map(\.text) }
    }

    private func send(_ text: String, as tag: String? = nil) {
        let now = clock.now
        state.withLock { state in
            if state.sentContents.count >= 16 { state.sentContents.removeFirst() }
            state.sentContents.append((now, text))
            if let tag { state.versions[tag] = text }
        }
    }
    /// The number of requests in progress.
    package var open: Int { state.withLock { $0.open } }

    package func fetch(_ request: FetchRequest) async throws(FetchError) -> FetchResult {
        request.asked()
        let asked = RecordedRequest(
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
            send(text, as: tag)
            request.progress(UInt64(text.utf8.count))
            return .content(
                FetchedContent(bytes: Array(text.utf8), mediaType: type, validators: Validators(entityTag: tag)))
        case .long(let text, let type, let tag):
            guard let bodyStore = request.bodyStore else {
                return try await give(.content(text, type: type, tag: tag), request)
            }
            send(text, as: tag)
            do throws(RunFailure) {
                let body = try await bodyStore.begin(expecting: nil)
                try await body.append(Array(text.utf8))
                return .content(
                    FetchedContent(
                        .kept(StoredBody(body, size: text.utf8.count)), mediaType: type,
                        validators: Validators(entityTag: tag)))
            } catch {
                throw .failed(error)
            }
        case .notModified:
            // The client's version is confirmed even if it is older than the last one sent, which need not have reached
            // its disk.
            let tag = request.validators?.entityTag
            if let text = state.withLock({ state in tag.flatMap { state.versions[$0] } }) { send(text) }
            return .notModified(nil)
        case .version(let text, let type, let tag):
            guard request.validators?.entityTag == tag else {
                return try await give(.content(text, type: type, tag: tag), request)
            }
            send(text)
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

    /// Not cancellable, since it is a separate task.
    private func sleepOn(_ wait: Duration) async {
        let sleep = Task(executorPreference: clock.executor) { [clock] in
            try? await clock.manual.sleep(for: wait)
        }
        await sleep.value
    }
}
