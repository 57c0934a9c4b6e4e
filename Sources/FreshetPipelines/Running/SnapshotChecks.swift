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

    /// What the snapshot would replace. Nil: there is no such thing.
    struct Copy: Sendable {
        /// Bytes.
        var size: @Sendable () async -> Int?
        var content: @Sendable () async throws(FetchError) -> [UInt8]?
    }

    /// What the snapshot is compared with.
    enum Before: Sendable {
        /// It is asked for if that matters.
        case copy(Copy)
        /// What ``measure(_:)`` said of a copy.
        case measured(Int?)
    }

    /// How many items a copy has, or how many bytes if those are what counts; nil: there is none, or nobody compares.
    func measure(_ copy: Copy) async throws(FetchError) -> Int? {
        guard rules.shrink != nil else { return nil }
        guard rules.countsItems else { return await copy.size() }
        guard let content = try await copy.content() else { return nil }
        return await items(ofCopy: content)
    }

    /// A copy from before the checks were what they are now says nothing.
    private func items(ofCopy content: [UInt8]) async -> Int? {
        try? await Contents(content, self).items()
    }

    /// Passes, or throws why not.
    ///
    /// - Returns: when the content expires by ``CheckRules/validUntil`` and ``CheckRules/madeWithin``: wall-clock microseconds
    ///   since 1970; nil: by neither.
    @discardableResult
    func pass(_ snapshot: FetchedBody, instead before: Before) async throws(FetchError) -> Int64? {
        var expiry: Int64?
        if let refusal = rules.refusal(ofSnapshot: snapshot.size) { throw .failed(refusal) }
        if rules.readsContent, let bytes = snapshot.bytes {
            let contents = try await Contents(bytes, self)
            if let predicate = rules.jq, try await !transformer.holds(predicate, for: bytes, in: format) {
                throw refused("does not satisfy check.jq (\(predicate))")
            }
            try await passByCount(contents, instead: before)
            expiry = try await passByTime(contents)
        }
        guard let share = rules.shrink, !rules.countsItems else { return expiry }
        let size =
            switch before {
            case .copy(let copy): await copy.size()
            case .measured(let size): size
            }
        if let size { try pass(shrinking: size, to: snapshot.size, "bytes", share) }
        return expiry
    }

    /// - Parameter refusal: most checks look at nothing but the content.
    private func refused(_ why: String, _ refusal: RunFailure.Refusal = .lasting) -> FetchError {
        .failed(RunFailure(.content, "the snapshot \(why)", refusal: refusal))
    }

    // MARK: How many

    private func passByCount(_ snapshot: Contents, instead before: Before) async throws(FetchError) {
        guard rules.countsItems, rules.minItems != nil || rules.shrink != nil else { return }
        guard let count = try await snapshot.items() else { return }
        if let least = rules.minItems, count < least {
            throw refused("has \(count) items, fewer than check.min-items wants (\(least))")
        }
        guard let share = rules.shrink else { return }
        let items: Int?
        switch before {
        case .measured(let count): items = count
        case .copy(let copy):
            guard let content = try await copy.content(), content != snapshot.bytes else { return }
            items = await self.items(ofCopy: content)
        }
        if let items { try pass(shrinking: items, to: count, "items", share) }
    }

    private func pass(shrinking before: Int, to now: Int, _ unit: String, _ share: Int) throws(FetchError) {
        guard before > now, Double(before - now) * 100 > Double(before) * Double(share) else { return }
        throw refused("has \(now) \(unit) after \(before): it lost more than check.shrink allows (\(share)%)", .passing)
    }

    // MARK: How old

    /// - Returns: the earlier of the two times at which it would not pass any more.
    private func passByTime(_ snapshot: Contents) async throws(FetchError) -> Int64? {
        var expiry: Int64?
        if let program = rules.validUntil {
            let (time, text) = try await snapshot.time(program, "check.valid-until")
            if time <= now {
                throw refused("was valid until \(text), which is over; see check.valid-until", .passing)
            }
            expiry = time
        }
        guard let program = rules.madeAt else { return expiry }
        let (time, text) = try await snapshot.time(program, "check.made-at")
        if time - now > Int64(CheckRules.clockTolerance / .microseconds(1)) {
            throw refused("says that it will be made at \(text); see check.made-at, and this machine's clock", .passing)
        }
        guard let within = rules.madeWithin else { return expiry }
        let span = Int64(within / .microseconds(1))
        if now - time > span {
            throw refused("was made at \(text), longer ago than check.made-within allows", .passing)
        }
        let (end, overflow) = time.addingReportingOverflow(span)
        return overflow ? expiry : min(end, expiry ?? end)
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
                if form == .text { _ = try await transformer.holds("true", for: bytes, in: .text) }
                if let foreign = form?.foreign {
                    counted = try await transformer.items(of: bytes, as: foreign)
                } else {
                    counted = nil
                }
            } catch {
                throw error.prefixed("check.format: ")
            }
        }

        /// How many items it has; nil: there is no such thing as an item of it.
        func items() async throws(FetchError) -> Int? {
            if checks.rules.form?.foreign != nil { return counted }
            let whole = checks.format == .text ? CheckProgram.countOfLines : CheckProgram.countOfList
            let program = checks.rules.items.map(CheckProgram.count) ?? whole
            guard let count = try await outputs(program, "check.items").last.flatMap(Int.init) else {
                throw checks.refused("has no JSON in which items could be counted; see check.items")
            }
            return count
        }

        /// The time that a program finds: wall-clock microseconds since 1970, and as people read it.
        func time(_ program: String, _ key: String) async throws(FetchError) -> (Int64, String) {
            let outputs = try await outputs(CheckProgram.time(of: program), key).suffix(2)
            // The program lets no time pass whose microseconds would be too many.
            guard outputs.count == 2, let first = outputs.first, let text = outputs.last, let seconds = Double(first),
                let microseconds = Int64(exactly: (seconds * 1_000_000).rounded())
            else {
                throw checks.refused("has no time where \(key) looks for it")
            }
            return (microseconds, text)
        }

        /// What a program puts out. Of several JSON texts the last one's is last, and that is what counts, as with
        /// ``CheckRules/jq``.
        private func outputs(_ program: String, _ key: String) async throws(FetchError) -> [String] {
            do throws(FetchError) {
                return try await checks.transformer.values(of: bytes, in: checks.format, by: program, variables: [])
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
