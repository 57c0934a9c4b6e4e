import FreshetModel
import FreshetNATS

/// The text of a claim: a JSON object. It is not signed: rights decide who may claim, and a claim only delays.
extension FleetClaim.Holder {
    /// The longest text, in bytes.
    static let longest = 4_096

    /// The text of the claim.
    package var text: [UInt8] {
        var writer = MemberWriter()
        writer.add("machine", machine)
        writer.add("nonce", nonce)
        writer.add("pause-s", pause.map { UInt64($0.duration.components.seconds) })
        writer.add("failures", pause.map { UInt64($0.failures) })
        writer.add("reason", pause?.reason)
        return writer.finish()
    }

    /// Reads a text of another member; nil: it is not a claim.
    init?(text: [UInt8]) {
        guard text.count <= Self.longest, let reader = MemberReader(text), let machine = try? reader.machine("machine"),
            let nonce = try? reader.name("nonce")
        else { return nil }
        self.init(machine: machine, nonce: nonce)
        guard reader.has("pause-s") else { return }
        guard let seconds = try? reader.count("pause-s"), let failures = try? reader.count("failures") else {
            return nil
        }
        pause = FleetPause(
            duration: .seconds(Int64(seconds)), failures: failures, reason: ((try? reader.text("reason")) ?? nil) ?? "")
    }
}

extension FleetClaim {
    /// A claim that was read or that the stream has republished. A marker, and a message that is not a claim, mean that
    /// nobody holds it: a member with the right to claim could hold it anyway.
    init(_ stored: FleetStore.Stored) {
        self.init(sequence: stored.sequence, holder: Holder(text: stored.message.payload), storedAt: stored.time)
    }
}
