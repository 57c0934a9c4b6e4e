package import FreshetModel
package import FreshetNATS

/// The buckets of a fleet in NATS JetStream: reads and conditional writes, each one request.
///
/// It uses no consumers, because each of them costs the server memory and processor time for each member. Reads are
/// `DIRECT.GET` (ADR-31 of NATS), conditional writes have the sequence number of the message that they replace (ADR-8),
/// and claims have a lifetime (`Nats-TTL`, ADR-43).
package struct FleetStore: Sendable {
    /// The bytes of a chunk: a small part of the largest message that a server accepts by default (1 MiB).
    package static let chunkSize = 128 << 10
    /// The most time for one answer.
    static let timeout: Duration = .seconds(5)

    let client: NATSClient
    /// The prefix of JetStream's subjects.
    private let api: String
    /// What the subjects of writes begin with; a leaf node passes them on to the domain that has the buckets.
    private let writes: String

    /// - Parameter domain: the domain of JetStream that has the buckets; nil: that of the server.
    package init(_ client: NATSClient, domain: String? = nil) {
        self.client = client
        api = domain.map { "$JS.\($0).API." } ?? "$JS.API."
        writes = domain.map { "$JS.\($0).API." } ?? ""
    }

    // MARK: Reading

    /// A stored message.
    package struct Stored: Sendable {
        package var subject: String
        package var sequence: UInt64
        package var time: WallTime
        package var message: NATSMessage
    }

    /// The last message of a subject; nil: there is none.
    package func last(_ bucket: FleetBucket, _ key: String) async throws(FleetStoreError) -> Stored? {
        let reply = try await request("\(api)DIRECT.GET.\(bucket.stream).\(bucket.prefix)\(key)")
        if reply.headers.status == 404 { return nil }
        return try Self.stored(reply) { $0 == "\(bucket.prefix)\(key)" }
    }

    /// The last message of a bucket; nil: there is none.
    package func newest(in bucket: FleetBucket) async throws(FleetStoreError) -> Stored? {
        let payload = Array("{\"last_by_subj\":\"\(bucket.prefix)>\"}".utf8)
        let reply = try await request("\(api)DIRECT.GET.\(bucket.stream)", payload)
        if reply.headers.status == 404 { return nil }
        return try Self.stored(reply) { $0.hasPrefix(bucket.prefix) }
    }

    /// The last messages of subjects that are newer than a sequence number, in the order of the stream.
    ///
    /// - Parameters:
    ///   - keys: at most 1,024 (nats-server answers 413 to more).
    ///   - sequence: 0: all.
    package func last(
        _ bucket: FleetBucket, _ keys: [String], after sequence: UInt64
    ) async throws(FleetStoreError) -> [Stored] {
        var payload = Array(#"{"multi_last":["#.utf8)
        for (index, key) in keys.enumerated() {
            if index > 0 { payload += ",".utf8 }
            // A key has no characters that JSON escapes.
            payload += "\"\(bucket.prefix)\(key)\"".utf8
        }
        payload += #"],"batch":1024"#.utf8
        if sequence > 0 { payload += ",\"seq\":\(sequence &+ 1)".utf8 }
        payload += "}".utf8
        return try await several(bucket, payload)
    }

    /// All last messages whose subjects match a pattern, in the order of the stream.
    ///
    /// - Parameters:
    ///   - pattern: a key with wildcards.
    ///   - start: messages that were stored before are left out; nil: all count.
    ///   - limit: the most messages that are read.
    ///   - most: the most messages of one answer.
    package func list(
        _ bucket: FleetBucket, _ pattern: String, since start: WallTime? = nil, limit: Int,
        inAnswersOf most: Int = Self.mostAnswers
    ) async throws(FleetStoreError) -> [Stored] {
        var stored: [Stored] = []
        var from = start.map { "\"start_time\":\"\(Timestamp.text($0))\"" } ?? "\"seq\":1"
        while stored.count < limit {
            // The server ends an answer after so many bytes, and the next one goes on.
            let limits = "\"batch\":\(most),\"max_bytes\":\(Self.mostBytes / 4)"
            let payload = "{\(from),\"next_by_subj\":\"\(bucket.prefix)\(pattern)\",\(limits)}"
            let batch = try await several(bucket, Array(payload.utf8))
            stored += batch
            guard let last = batch.last, last.sequence < .max else { break }
            from = "\"seq\":\(last.sequence + 1)"
        }
        return Array(stored.prefix(limit))
    }

    /// The most messages of one answer: with a thousand, 10,000 reports take three times as long.
    private static let mostAnswers = 10_000

    private static let mostBytes = 32 << 20

    /// A request with several answers. Members may store messages that cannot be used; they are left out.
    private func several(_ bucket: FleetBucket, _ payload: [UInt8]) async throws(FleetStoreError) -> [Stored] {
        let replies: [NATSMessage]
        do throws(NATSError) {
            replies = try await client.requestSeveral(
                try NATSSubject("\(api)DIRECT.GET.\(bucket.stream)"), payload, timeout: Self.timeout,
                limits: NATSReplyLimits(replies: Self.mostAnswers + 1, bytes: Self.mostBytes, skipsUnusable: true),
                isLast: { $0.headers.status != nil })
        } catch {
            throw .nats(error)
        }
        var stored: [Stored] = []
        // 204: the end; 404: there is none.
        for reply in replies where reply.headers.status != 404 && reply.headers.status != 204 {
            if let message = try? Self.stored(reply, where: { $0.hasPrefix(bucket.prefix) }) { stored.append(message) }
        }
        return stored
    }

    /// A message that was read, or that a stream has republished. Another user of the account can make the server send
    /// another message as the answer.
    static func stored(
        _ message: NATSMessage, where isWanted: (String) -> Bool = { _ in true }
    ) throws(FleetStoreError) -> Stored {
        if let status = message.headers.status {
            throw .refused(code: UInt64(status), reason: message.headers.statusText)
        }
        // The server appends its fields to those of the publisher, who may have written fields of the same names.
        func last(_ name: String) -> String? { message.headers.fields.last { $0.name == name }?.value }
        guard let subject = last("Nats-Subject"), isWanted(subject) else { throw .malformed("Nats-Subject") }
        guard let sequence = last("Nats-Sequence").flatMap({ UInt64($0) }) else {
            throw .malformed("Nats-Sequence")
        }
        guard let time = last("Nats-Time-Stamp").flatMap(Timestamp.parse) else {
            throw .malformed("Nats-Time-Stamp")
        }
        return Stored(subject: subject, sequence: sequence, time: time, message: message)
    }

    // MARK: Writing

    /// Stores a message.
    ///
    /// - Parameters:
    ///   - expected: the sequence number of the present last message of the subject, 0 if there is none; nil: whatever
    ///     it is.
    ///   - lifetime: whole seconds; nil: until it is replaced.
    /// - Returns: its sequence number.
    @discardableResult
    package func put(
        _ bucket: FleetBucket, _ key: String, _ payload: [UInt8] = [], headers: NATSHeaders = NATSHeaders(),
        replacing expected: UInt64? = nil, lifetime: Duration? = nil
    ) async throws(FleetStoreError) -> UInt64 {
        var headers = headers
        do throws(NATSError) {
            if let expected { try headers.append("Nats-Expected-Last-Subject-Sequence", "\(expected)") }
            if let lifetime { try headers.append("Nats-TTL", "\(max(1, lifetime.components.seconds))s") }
        } catch {
            throw .nats(error)
        }
        let answer = try Self.answer(try await request("\(writes)\(bucket.prefix)\(key)", payload, headers))
        guard let sequence = try? answer.number("seq") else { throw .malformed("seq") }
        return sequence
    }

    /// A conditional write whose answer may be lost.
    package func replace(
        _ bucket: FleetBucket, _ key: String, _ payload: [UInt8] = [], headers: NATSHeaders = NATSHeaders(),
        replacing expected: UInt64, lifetime: Duration? = nil
    ) async throws(FleetStoreError) -> FleetWriteResult {
        do throws(FleetStoreError) {
            return .stored(
                sequence: try await put(
                    bucket, key, payload, headers: headers, replacing: expected, lifetime: lifetime))
        } catch  where error.isConflict {
            return .conflict
        }
    }

    /// A new record in place of the one with this sequence number.
    func replace(
        _ bucket: FleetBucket, _ key: String, _ record: SignedRecord, replacing expected: UInt64
    ) async throws(FleetStoreError) -> FleetWriteResult {
        let headers: NATSHeaders
        do throws(NATSError) {
            headers = try record.headers()
        } catch {
            throw .nats(error)
        }
        return try await replace(bucket, key, headers: headers, replacing: expected)
    }

    /// Removes the last message of a subject: a marker takes its place.
    package func remove(
        _ bucket: FleetBucket, _ key: String, replacing expected: UInt64
    ) async throws(FleetStoreError) {
        let headers: NATSHeaders
        do throws(NATSError) {
            headers = try Self.removal()
        } catch {
            throw .nats(error)
        }
        try await put(bucket, key, headers: headers, replacing: expected)
    }

    private static func removal() throws(NATSError) -> NATSHeaders {
        var headers = NATSHeaders()
        try headers.append("KV-Operation", "PURGE")
        try headers.append("Nats-Rollup", "sub")
        return headers
    }

    /// The same without an answer, for a member that is about to close its connection; the server may not receive it.
    func removeUnanswered(
        _ bucket: FleetBucket, _ key: String, replacing expected: UInt64, on client: isolated NATSClient
    ) throws(NATSError) {
        var headers = try Self.removal()
        try headers.append("Nats-Expected-Last-Subject-Sequence", "\(expected)")
        try client.publish(try NATSSubject("\(writes)\(bucket.prefix)\(key)"), headers: headers)
    }

    /// The subjects of stored messages.
    func subjects(_ bucket: FleetBucket, matching pattern: String) async throws(FleetStoreError) -> [String] {
        let payload = Array("{\"subjects_filter\":\"\(bucket.prefix)\(pattern)\"}".utf8)
        return try await call("STREAM.INFO.\(bucket.stream)", payload).object("state")?.object("subjects")?.names ?? []
    }

    /// Removes all messages whose subjects begin with a key.
    package func purge(_ bucket: FleetBucket, below key: String) async throws(FleetStoreError) {
        let payload = Array("{\"filter\":\"\(bucket.prefix)\(key).>\"}".utf8)
        _ = try await call("STREAM.PURGE.\(bucket.stream)", payload)
    }

    /// Calls a function of JetStream's API, and returns its answer.
    func call(_ function: String, _ payload: [UInt8] = []) async throws(FleetStoreError) -> MemberReader {
        try Self.answer(try await request("\(api)\(function)", payload))
    }

    /// The members of an answer, unless it is an error.
    private static func answer(_ reply: NATSMessage) throws(FleetStoreError) -> MemberReader {
        guard let members = MemberReader(reply.payload) else { throw .malformed("answer") }
        if let error = members.object("error") {
            throw .refused(
                code: (try? error.number("err_code")) ?? 0,
                reason: (try? error.text("description")) ?? "no reason")
        }
        return members
    }

    private func request(
        _ subject: String, _ payload: [UInt8] = [], _ headers: NATSHeaders = NATSHeaders()
    ) async throws(FleetStoreError) -> NATSMessage {
        do throws(NATSError) {
            return try await client.request(
                try NATSSubject(subject), payload, headers: headers, timeout: Self.timeout)
        } catch {
            throw .nats(error)
        }
    }
}
