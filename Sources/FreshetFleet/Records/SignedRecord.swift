package import FreshetModel
package import FreshetNATS

/// A record as it is stored: its text, who signed it, and the signature. Anybody may have made it; ``verified(by:for:)``
/// says whether it counts.
package struct SignedRecord: Hashable, Sendable {
    /// The header with the text of the record. News has headers only, so the record is not in the payload.
    package static let recordHeader = "Freshet-Record"
    /// The header with the signer's public key, a space, and the signature in Base64.
    package static let signatureHeader = "Freshet-Signature"
    /// What the signature is for; see `NKeySeed.signature(of:as:)`.
    private static let purpose: StaticString = "freshet fleet record"

    /// The text of the record.
    package let text: [UInt8]
    private let signer: String
    private let signature: [UInt8]

    /// Signs a record.
    ///
    /// - Returns: nil: libcrypto does not provide Ed25519, or the record is longer than a reader accepts.
    package init?(_ record: FleetRecord, signedBy seed: NKeySeed) {
        let text = record.text
        guard text.count <= FleetRecord.longestRecord, let signature = seed.signature(of: text, as: Self.purpose)
        else { return nil }
        self.text = text
        signer = seed.publicKey
        self.signature = signature
    }

    /// Reads the headers of a message.
    package init(_ headers: NATSHeaders) throws(RecordRejection) {
        // A second field of the same name would let two readers see two records.
        let fields = headers.fields
        guard fields.count(where: { $0.name == Self.recordHeader }) == 1, let record = headers[Self.recordHeader] else {
            throw .noRecord
        }
        guard record.utf8.count <= FleetRecord.longestRecord else { throw .malformed(.tooLong) }
        guard fields.count(where: { $0.name == Self.signatureHeader }) == 1,
            let signature = headers[Self.signatureHeader], signature.utf8.count <= 256
        else { throw .unsigned }
        let parts = signature.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2, let bytes = Base64.bytes(of: parts[1]), bytes.count == 64 else { throw .unsigned }
        text = Array(record.utf8)
        signer = String(parts[0])
        self.signature = bytes
    }

    /// The headers of a message with this record.
    package func headers() throws(NATSError) -> NATSHeaders {
        var headers = NATSHeaders()
        try headers.append(Self.recordHeader, String(decoding: text, as: UTF8.self))
        try headers.append(Self.signatureHeader, "\(signer) \(Base64.text(of: signature))")
        return headers
    }

    /// The record, if one of the publishers has signed it for this pipeline. The text is not read before its signature
    /// is verified.
    package func verified(
        by publishers: Set<NKeyPublicKey>, for subject: FleetSubject
    ) throws(RecordRejection) -> FleetRecord {
        guard let publisher = publishers.first(where: { $0.description == signer }) else {
            throw .unknownPublisher(signer)
        }
        guard publisher.isSigned(text, signature, as: Self.purpose) else { throw .wrongSignature(signer) }
        let record: FleetRecord
        do throws(RecordFormatError) {
            record = try FleetRecord(text: text)
        } catch {
            throw .malformed(error)
        }
        guard record.fleet == subject.fleet else { throw .otherFleet(record.fleet) }
        guard record.pipeline == subject.pipeline else { throw .otherPipeline(record.pipeline) }
        guard record.fingerprint == subject.fingerprint else { throw .otherDefinition(record.fingerprint) }
        return record
    }
}

/// What a record has to be about.
package struct FleetSubject: Hashable, Sendable {
    package var fleet: String
    package var pipeline: String
    /// See ``FleetRecord/fingerprint``.
    package var fingerprint: ContentDigest

    package init(fleet: String, pipeline: String, fingerprint: ContentDigest) {
        self.fleet = fleet
        self.pipeline = pipeline
        self.fingerprint = fingerprint
    }
}

/// Why a record does not count. Each is reported, and the copy stays.
package enum RecordRejection: Error, Hashable, Sendable, CustomStringConvertible {
    /// The message has no record, or several.
    case noRecord
    /// There is no signature, or it is not one.
    case unsigned
    /// Signed with a key that is not among `fleet.publishers`.
    case unknownPublisher(String)
    /// The signature is of another text, or was made with another key.
    case wrongSignature(String)
    case malformed(RecordFormatError)
    case otherFleet(String)
    case otherPipeline(String)
    /// The publisher has another definition of the pipeline.
    case otherDefinition(ContentDigest)
    /// A record with a higher number was seen before.
    case older(number: UInt64, seen: UInt64)
    /// Another record with the same number was seen before: two publishers, or a publisher that lost its state.
    case conflicting(number: UInt64)

    package var description: String {
        switch self {
        case .noRecord: "it has no record"
        case .unsigned: "it is not signed"
        case .unknownPublisher(let key): "it is signed by \(Self.shown(key)), which is not among fleet.publishers"
        case .wrongSignature(let key): "its signature by \(Self.shown(key)) is not valid"
        case .malformed(let error): error.description
        case .otherFleet(let name): "it is of the fleet '\(Self.shown(name))'"
        case .otherPipeline(let name): "it is of the pipeline '\(Self.shown(name))'"
        case .otherDefinition: "its publisher has another definition of the pipeline; compare the files"
        case .older(let number, let seen): "it has the number \(number), and \(seen) was seen before"
        case .conflicting(let number): "another record with the number \(number) was seen before"
        }
    }

    /// Untrusted text, short and without characters that move a cursor.
    private static func shown(_ text: String) -> String {
        text.utf8.prefix(64).reduce(into: "") { shown, byte in
            shown.unicodeScalars.append(Unicode.Scalar((0x20..<0x7F).contains(byte) ? byte : UInt8(ascii: "?")))
        }
    }
}
