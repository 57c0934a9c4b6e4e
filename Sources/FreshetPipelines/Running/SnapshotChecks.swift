/// Looks whether a snapshot may replace the copy (``CheckRules``). What has to be read of it is read by programs, in a
/// process of their own.
struct SnapshotChecks: Sendable {
    let rules: CheckRules
    /// What the programs of ``CheckRules`` are given.
    let format: ContentFormat
    let transformer: any Transforming
    /// The time of the check: wall-clock microseconds since 1970.
    let now: Int64

    /// - Parameter format: how the copy is written.
    init(_ rules: CheckRules, of format: ContentFormat, _ transformer: any Transforming, at now: Int64) {
        self.rules = rules
        self.format = rules.form == .text ? .text : format
        self.transformer = transformer
        self.now = now
    }

    /// What the snapshot would replace; it is asked for if that matters. Nil: there is no such thing.
    struct Copy {
        /// Bytes.
        var size: () async -> Int?
        var content: () async throws(FetchError) -> [UInt8]?
    }

    /// Passes, or throws why not.
    func pass(_ snapshot: FetchedBody, instead copy: Copy) async throws(FetchError) {
        if let refusal = rules.refusal(ofSnapshot: snapshot.size) { throw .failed(refusal) }
        if rules.readsContent, let bytes = snapshot.bytes {
            let contents = try await Contents(bytes, self)
            if let predicate = rules.jq, try await !transformer.holds(predicate, for: contents.json()) {
                throw refused("does not satisfy check.jq (\(predicate))")
            }
            try await passByCount(contents, instead: copy)
            try await passByTime(contents)
        }
        if let share = rules.shrink, !rules.countsItems, let before = await copy.size() {
            try pass(shrinking: before, to: snapshot.size, "bytes", share)
        }
    }

    /// - Parameter refusal: most checks look at nothing but the content.
    private func refused(_ why: String, _ refusal: RunFailure.Refusal = .lasting) -> FetchError {
        .failed(RunFailure(.content, "the snapshot \(why)", refusal: refusal))
    }

    // MARK: How many

    private func passByCount(_ snapshot: Contents, instead copy: Copy) async throws(FetchError) {
        guard rules.countsItems, rules.minItems != nil || rules.shrink != nil else { return }
        guard let count = try await snapshot.items() else { return }
        if let least = rules.minItems, count < least {
            throw refused("has \(count) items, fewer than check.min-items wants (\(least))")
        }
        guard let share = rules.shrink, let before = try await copy.content(), before != snapshot.bytes else { return }
        // A copy from before the checks were what they are now says nothing.
        guard let items = try? await Contents(before, self).items() else { return }
        try pass(shrinking: items, to: count, "items", share)
    }

    private func pass(shrinking before: Int, to now: Int, _ unit: String, _ share: Int) throws(FetchError) {
        guard before > now, Double(before - now) * 100 > Double(before) * Double(share) else { return }
        throw refused("has \(now) \(unit) after \(before): it lost more than check.shrink allows (\(share)%)", .passing)
    }

    // MARK: How old

    private func passByTime(_ snapshot: Contents) async throws(FetchError) {
        if let program = rules.validUntil {
            let (time, text) = try await snapshot.time(program, "check.valid-until")
            if time <= now { throw refused("was valid until \(text), which is over; see check.valid-until") }
        }
        guard let program = rules.madeAt else { return }
        let (time, text) = try await snapshot.time(program, "check.made-at")
        if time - now > Int64(CheckRules.clockTolerance / .microseconds(1)) {
            throw refused("says that it will be made at \(text); see check.made-at, and this machine's clock", .passing)
        }
        if let within = rules.madeWithin, now - time > Int64(within / .microseconds(1)) {
            throw refused("was made at \(text), longer ago than check.made-within allows")
        }
    }

    // MARK: What it holds

    /// A content that has the form that is wanted.
    private struct Contents {
        let bytes: [UInt8]
        private let checks: SnapshotChecks
        /// Of a form that is none of jq's.
        private let counted: Int?

        init(_ bytes: [UInt8], _ checks: SnapshotChecks) async throws(FetchError) {
            self.bytes = bytes
            self.checks = checks
            do throws(FetchError) {
                let (form, transformer) = (checks.rules.form, checks.transformer)
                if form == .json { try await transformer.requireJSON(bytes) }
                if form == .text { _ = try await transformer.json(ofText: bytes) }
                if let foreign = form?.foreign {
                    counted = try await transformer.items(of: bytes, as: foreign)
                } else {
                    counted = nil
                }
            } catch {
                throw error.prefixed("check.format: ")
            }
        }

        /// As programs read it.
        func json() async throws(FetchError) -> [UInt8] {
            try await checks.transformer.json(of: bytes, in: checks.format)
        }

        /// How many items it has; nil: there is no such thing as an item of it.
        func items() async throws(FetchError) -> Int? {
            if checks.rules.form?.foreign != nil { return counted }
            let whole = checks.format == .text ? CheckProgram.countOfLines : CheckProgram.countOfList
            let program = checks.rules.items.map(CheckProgram.count) ?? whole
            return try await outputs(program, "check.items").first.flatMap(Int.init)
        }

        /// The time that a program finds: wall-clock microseconds since 1970, and as people read it.
        func time(_ program: String, _ key: String) async throws(FetchError) -> (Int64, String) {
            let outputs = try await outputs(CheckProgram.time(of: program), key)
            guard outputs.count == 2, let seconds = Double(outputs[0]), abs(seconds) < Self.mostSeconds else {
                throw checks.refused("has no time of this age where \(key) looks for it")
            }
            return (Int64(seconds * 1_000_000), outputs[1])
        }

        /// So far from 1970 microseconds are still whole numbers in what jq calculates with: to the year 2255.
        private static let mostSeconds = 0x1p53 / 1_000_000

        private func outputs(_ program: String, _ key: String) async throws(FetchError) -> [String] {
            do throws(FetchError) {
                return try await checks.transformer.values(of: json(), by: program, variables: [])
                    .map { String(decoding: $0, as: UTF8.self) }
            } catch {
                throw error.prefixed("\(key): ")
            }
        }
    }
}

extension FetchError {
    /// The same, told with the name of what was looked at.
    fileprivate func prefixed(_ prefix: String) -> FetchError {
        guard case .failed(var failure) = self else { return self }
        failure.message = prefix + failure.message
        return .failed(failure)
    }
}

extension Transforming {
    /// Passes what holds one JSON text or more.
    fileprivate func requireJSON(_ bytes: [UInt8]) async throws(FetchError) {
        guard try await holds("true", for: bytes) else {
            throw .failed(RunFailure(.content, "there is no JSON in it"))
        }
    }
}
