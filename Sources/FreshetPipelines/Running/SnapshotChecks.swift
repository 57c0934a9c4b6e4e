/// Checks whether a snapshot may replace the copy (``CheckRules``). Only programs in a separate process read its
/// content.
struct SnapshotChecks: Sendable {
    let rules: CheckRules
    /// The format of the input of the programs of ``CheckRules``.
    let format: ContentFormat
    let transformer: any Transforming
    /// The time of the check: wall-clock microseconds since 1970.
    let now: Int64

    /// - Parameter format: the format of the copy.
    init(_ rules: CheckRules, of format: ContentFormat, _ transformer: any Transforming, at now: Int64) {
        self.rules = rules
        self.format = rules.form == .text ? .text : format
        self.transformer = transformer
        self.now = now
    }

    /// The copy that the snapshot would replace. Its closures return nil if there is no copy.
    struct Copy: Sendable {
        /// The size in bytes.
        var size: @Sendable () async -> Int?
        var content: @Sendable () async throws(FetchError) -> [UInt8]?
    }

    /// The reference for the comparison.
    enum Before: Sendable {
        /// The copy, which is read only if a check needs it.
        case copy(Copy)
        /// The result of ``measure(_:)``.
        case measured(Int?)
    }

    /// The number of items of a copy, or of bytes if no items are defined; nil: there is no copy, or no comparison.
    func measure(_ copy: Copy) async throws(FetchError) -> Int? {
        guard rules.shrink != nil else { return nil }
        guard rules.countsItems else { return await copy.size() }
        guard let content = try await copy.content() else { return nil }
        return await items(ofCopy: content)
    }

    /// The number of items of the copy; nil if the current checks do not fit its content.
    private func items(ofCopy content: [UInt8]) async -> Int? {
        try? await Contents(content, self).items()
    }

    /// Runs the checks; throws if one rejects the snapshot.
    ///
    /// - - Returns: when the content expires by ``CheckRules/validUntil`` and ``CheckRules/madeWithin``: wall-clock
    ///   microseconds since 1970; nil: neither states an expiry.
    @discardableResult
    func pass(_ snapshot: FetchedBody, instead before: Before) async throws(FetchError) -> Int64? {
        var expiry: Int64?
        if let rejection = rules.rejection(ofSnapshot: snapshot.size) { throw .failed(rejection) }
        if rules.readsContent, let bytes = snapshot.bytes {
            let contents = try await Contents(bytes, self)
            if let predicate = rules.jq, try await !transformer.holds(predicate, for: bytes, in: format) {
                throw rejected("rejected by check.jq: `\(predicate)` is false")
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
        if let size { try pass(shrinking: size, to: snapshot.size, "byte", share) }
        return expiry
    }

    /// - Parameter rejection: lasting by default, since most checks depend on the content alone.
    private func rejected(_ why: String, _ rejection: RunFailure.Rejection = .lasting) -> FetchError {
        .failed(RunFailure(.content, why, rejection: rejection))
    }

    /// Text such as `1 item`, `2 items`.
    private static func count(_ number: Int, _ unit: String) -> String { "\(number) \(unit)\(number == 1 ? "" : "s")" }

    // MARK: Number of items

    private func passByCount(_ snapshot: Contents, instead before: Before) async throws(FetchError) {
        guard rules.countsItems, rules.minItems != nil || rules.shrink != nil else { return }
        guard let count = try await snapshot.items() else { return }
        if let least = rules.minItems, count < least {
            throw rejected("rejected by check.min-items: \(Self.count(count, "item")), at least \(least) required")
        }
        guard let share = rules.shrink else { return }
        let items: Int?
        switch before {
        case .measured(let count): items = count
        case .copy(let copy):
            guard let content = try await copy.content(), content != snapshot.bytes else { return }
            items = await self.items(ofCopy: content)
        }
        if let items { try pass(shrinking: items, to: count, "item", share) }
    }

    private func pass(shrinking before: Int, to now: Int, _ unit: String, _ share: Int) throws(FetchError) {
        guard before > now, Double(before - now) * 100 > Double(before) * Double(share) else { return }
        // Rounded up, so that the message never shows an allowed percentage.
        let lost = Int((Double(before - now) * 100 / Double(before)).rounded(.up))
        throw rejected(
            "\(Self.count(now, unit)), was \(before) (−\(lost) %); check.shrink allows −\(share) %", .passing)
    }

    // MARK: Age

    /// - Returns: the earlier of the two times at which the content expires.
    private func passByTime(_ snapshot: Contents) async throws(FetchError) -> Int64? {
        var expiry: Int64?
        if let program = rules.validUntil {
            let (time, text) = try await snapshot.time(program, "check.valid-until")
            if time <= now {
                throw rejected("rejected by check.valid-until: the content was valid until \(text)", .passing)
            }
            expiry = time
        }
        guard let program = rules.madeAt else { return expiry }
        let (time, text) = try await snapshot.time(program, "check.made-at")
        if time - now > Int64(CheckRules.clockTolerance / .microseconds(1)) {
            throw rejected(
                "rejected by check.made-at: the content is dated \(text), in the future; check this machine's clock",
                .passing)
        }
        guard let within = rules.madeWithin else { return expiry }
        let span = Int64(within / .microseconds(1))
        if now - time > span {
            throw rejected("rejected by check.made-within: the content is of \(text), which is too old", .passing)
        }
        let (end, overflow) = time.addingReportingOverflow(span)
        return overflow ? expiry : min(end, expiry ?? end)
    }

    // MARK: Content

    /// A content that has the required format.
    private struct Contents {
        let bytes: [UInt8]
        private let checks: SnapshotChecks
        /// The number of items of a format that jq cannot read.
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

        /// The number of items; nil: the format has no items.
        func items() async throws(FetchError) -> Int? {
            if checks.rules.form?.foreign != nil { return counted }
            let whole = checks.format == .text ? CheckProgram.countOfLines : CheckProgram.countOfList
            let program = checks.rules.items.map(CheckProgram.count) ?? whole
            guard let count = try await outputs(program, "check.items").last.flatMap(Int.init) else {
                throw checks.rejected("rejected by check.items: the items of the content cannot be counted")
            }
            return count
        }

        /// The time that a program gives: wall-clock microseconds since 1970, and as text for people.
        func time(_ program: String, _ key: String) async throws(FetchError) -> (Int64, String) {
            let outputs = try await outputs(CheckProgram.time(of: program), key).suffix(2)
            // The program rejects times whose microseconds do not fit.
            guard outputs.count == 2, let first = outputs.first, let text = outputs.last, let seconds = Double(first),
                let microseconds = Int64(exactly: (seconds * 1_000_000).rounded())
            else {
                throw checks.rejected("rejected by \(key): its program finds no time in the content")
            }
            return (microseconds, text)
        }

        /// The outputs of a program. With several JSON texts, the outputs of the last text are last and count, as with
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
    /// The same error with a prefix before its message.
    fileprivate func prefixed(_ prefix: String) -> FetchError {
        guard case .failed(var failure) = self else { return self }
        failure.message = prefix + failure.message
        return .failed(failure)
    }
}

extension Transforming {
    /// Throws unless the content has at least one JSON text.
    fileprivate func requireJSON(_ bytes: [UInt8]) async throws(FetchError) {
        guard try await holds("true", for: bytes) else {
            throw .failed(RunFailure(.content, "the content has no JSON text"))
        }
    }
}
