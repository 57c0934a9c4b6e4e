package import FreshetModel

/// The configuration of the buckets.
package struct FleetBuckets: Sendable {
    /// The limits of one bucket.
    package struct Limits: Hashable, Sendable {
        /// Bytes. When a bucket is full, writes fail with a clear error. Without a limit, a full disk makes JetStream
        /// answer nothing until a restart.
        package var bytes: UInt64

        package init(bytes: UInt64) { self.bytes = bytes }
    }

    private let store: FleetStore
    /// The number of servers that keep each bucket.
    private let replicas: UInt32

    package init(_ store: FleetStore, replicas: UInt32 = 1) {
        self.store = store
        self.replicas = replicas
    }

    /// The limits that hold 10,000 pipelines with 4 GiB of content.
    package static func standardLimits(_ bucket: FleetBucket) -> Limits {
        switch bucket {
        case .head, .claim, .status, .report, .want: Limits(bytes: 256 << 20)
        case .body: Limits(bytes: 4 << 30)
        }
    }

    /// The configuration of a stream, as JetStream's API expects it.
    package static func configuration(_ bucket: FleetBucket, _ limits: Limits, replicas: UInt32) -> [UInt8] {
        var text = #"{"name":"\#(bucket.stream)","subjects":["\#(bucket.prefix)>"],"max_msgs_per_subject":1,"#
        text += #""max_bytes":\#(limits.bytes),"discard":"new","storage":"file","num_replicas":\#(replicas),"#
        text += #""retention":"limits","deny_delete":true,"allow_direct":true"#
        // A message with such a header may remove all others. Only a claim is removed before its time.
        text += #","allow_rollup_hdrs":\#(bucket == .claim)"#
        if let republished = bucket.republished {
            text += #","republish":{"src":"\#(bucket.prefix)>","dest":"\#(republished)>""#
            // The payload of a claim says who holds it, and that of a demand what is wanted.
            if bucket == .head { text += #","headers_only":true"# }
            text += "}"
        }
        // Nothing longer is read, and many long messages would exceed the limits of those who read all of them.
        if bucket != .body, bucket != .head { text += #","max_msg_size":8192"# }
        if bucket.hasLifetimes { text += #","allow_msg_ttl":true"# }
        // A claim ends by itself, and a marker says so.
        if bucket == .claim { text += #","subject_delete_marker_ttl":60000000000"# }
        return Array((text + "}").utf8)
    }

    /// The configuration of a site's mirror of a bucket. A mirror that is full forgets its oldest messages, which are then
    /// read from the domain of the bucket.
    package static func mirrorConfiguration(
        _ bucket: FleetBucket, _ limits: Limits, of domain: String, at site: String, replicas: UInt32
    ) -> [UInt8] {
        var text = #"{"name":"\#(bucket.stream)","mirror":{"name":"\#(bucket.stream)","#
        text += #""external":{"api":"$JS.\#(domain).API","deliver":"ft.mirror.\#(site)"}},"max_msgs_per_subject":1,"#
        text += #""max_bytes":\#(limits.bytes),"discard":"old","storage":"file","num_replicas":\#(replicas),"#
        text += #""retention":"limits","allow_direct":true"#
        if bucket.hasLifetimes { text += #","allow_msg_ttl":true"# }
        return Array((text + "}").utf8)
    }

    /// The result of a preparation.
    package enum Outcome: Hashable, Sendable {
        case created
        case present
        case changed
    }

    /// Creates a bucket, or changes its configuration to the present one.
    package func prepare(_ bucket: FleetBucket, _ limits: Limits) async throws(FleetStoreError) -> Outcome {
        try await prepare(bucket, Self.configuration(bucket, limits, replicas: replicas)) { before in
            before.limits == limits && before.fits(bucket)
        }
    }

    /// Creates a stream, or changes its configuration unless its state is right.
    private func prepare(
        _ bucket: FleetBucket, _ configuration: [UInt8], isRight: (State) -> Bool
    ) async throws(FleetStoreError) -> Outcome {
        let before: State?
        do throws(FleetStoreError) {
            before = try await state(bucket)
        } catch .refused(code: Self.notFound, _) {
            before = nil
        }
        guard let before else {
            _ = try await store.call("STREAM.CREATE.\(bucket.stream)", configuration)
            return .created
        }
        if isRight(before) { return .present }
        _ = try await store.call("STREAM.UPDATE.\(bucket.stream)", configuration)
        return .changed
    }

    /// Creates a site's mirror of a bucket, or changes its limits.
    ///
    /// - Parameters:
    ///   - domain: the domain of the bucket.
    ///   - site: the domain of the mirror, which is that of these buckets.
    package func prepareMirror(
        _ bucket: FleetBucket, _ limits: Limits, of domain: String, at site: String
    ) async throws(FleetStoreError) -> Outcome {
        let configuration = Self.mirrorConfiguration(bucket, limits, of: domain, at: site, replicas: replicas)
        return try await prepare(bucket, configuration) { $0.limits == limits && $0.mirror != nil }
    }

    /// The error of JetStream for a stream that does not exist.
    package static let notFound: UInt64 = 10_059

    /// How a mirror follows its bucket.
    package struct Mirror: Hashable, Sendable {
        /// The messages that it does not have yet.
        package var lag: UInt64
        /// Since when it has received nothing, not even a heartbeat; nil: it has received nothing since the server began.
        package var silence: Duration?

        /// JetStream sends a heartbeat each second.
        package var isConnected: Bool { silence.map { $0 < .seconds(30) } ?? false }
    }

    /// The error of JetStream for a user of an account without JetStream.
    package static let notInAccount: UInt64 = 10_039

    /// The state of a bucket, as the server states it.
    package struct State: Hashable, Sendable {
        /// The messages: one for each subject.
        package var messages: UInt64
        package var bytes: UInt64
        /// The sequence number of the last message.
        package var lastSequence: UInt64
        package var limits: Limits
        /// Whether messages may have a lifetime. A server before 2.11 ignores the setting without an error, and a claim
        /// there never ends.
        package var hasLifetimes: Bool
        package var isRepublished: Bool
        /// Whether a message may remove others.
        package var allowsRollup: Bool
        package var isReadDirectly: Bool
        /// The server's clock.
        package var time: WallTime
        /// How the stream follows the bucket; nil: it is the bucket itself.
        package var mirror: Mirror?

        /// Whether a fleet can use it.
        package func fits(_ bucket: FleetBucket) -> Bool {
            isReadDirectly && isRepublished == (bucket.republished != nil) && (hasLifetimes || !bucket.hasLifetimes)
                && allowsRollup == (bucket == .claim)
        }
    }

    package func state(_ bucket: FleetBucket) async throws(FleetStoreError) -> State {
        let members = try await store.call("STREAM.INFO.\(bucket.stream)")
        guard let configuration = members.object("config"), let state = members.object("state") else {
            throw .malformed("config")
        }
        guard let time = (try? members.text("ts")).flatMap(\.self).flatMap(Timestamp.parse) else {
            throw .malformed("ts")
        }
        return State(
            messages: (try? state.number("messages")) ?? 0, bytes: (try? state.number("bytes")) ?? 0,
            lastSequence: (try? state.number("last_seq")) ?? 0,
            limits: Limits(bytes: (try? configuration.number("max_bytes")) ?? 0),
            hasLifetimes: configuration.isTrue("allow_msg_ttl"),
            isRepublished: configuration.object("republish") != nil,
            allowsRollup: configuration.isTrue("allow_rollup_hdrs"),
            isReadDirectly: configuration.isTrue("allow_direct"), time: time,
            mirror: members.object("mirror").map { mirror in
                Mirror(
                    lag: (try? mirror.number("lag")) ?? 0,
                    // Nanoseconds; -1: never.
                    silence: (try? mirror.number("active")).map { .nanoseconds(Int64(clamping: $0)) })
            })
    }
}
